package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"farmhand/controller"
	"farmhand/policy"
)

// choiceText names a policy, and the learned one that it stands for.
func choiceText(c *controller.Choice) string {
	s := c.Spec
	if c.Version != "" {
		s += fmt.Sprintf(" (%s, %s)", c.Version, c.Origin)
	}
	if c.Note != "" {
		s += ": " + c.Note
	}
	return oneLine(s)
}

// The setting without which learned policies do not know a farm, as the controller shows it.
const (
	settingDeadline = "deadline"
	noDeadline      = "none"
)

// writeLearned tells of a farm's learned policy, of its shadow, and what rule and
// shadow would have come to.
func writeLearned(out io.Writer, v controller.FarmView) {
	if c := v.Learned; c != nil {
		fmt.Fprintf(out, "policy: %s\n", choiceText(c))
		if v.Settings[settingDeadline].Value == noDeadline {
			fmt.Fprintf(out, "no deadline: a learned policy knows only farms that have one, and is handed back (farmhand farm set %s deadline=2s)\n", oneLine(v.Name))
		}
	}
	if h := v.Hand; h != nil && h.Back() {
		fmt.Fprintf(out, "handed back: the rule decides for %s more: %s: %s\n", secondsText(h.Left), h.Cause, oneLine(h.Reason))
	}
	if c := v.Shadow; c != nil {
		fmt.Fprintf(out, "shadow: %s\n", choiceText(c))
	}
	r := v.Review
	if r == nil {
		return
	}
	if r.Problem != "" {
		fmt.Fprintf(out, "reviewed: not possible: %s\n", oneLine(r.Problem))
		return
	}
	fmt.Fprintf(out, "reviewed %s: %s, %.0f tasks, %s on time as measured; in a model of the farm:\n\n", timeText(r.At), secondsText(r.Actual.Seconds), r.Actual.Tasks, shareText(r.OnTime))
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "BY\tON TIME\tMEAN WORKERS")
	for _, e := range estimates(r) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", oneLine(e.by), shareText(e.OnTime), workersText(e.Estimate))
	}
	_ = w.Flush() // standard output
}

// estimate is what a policy would have come to.
type estimate struct {
	by string
	*policy.Estimate
}

// estimates of a review, what was done first.
func estimates(r *controller.Review) (list []estimate) {
	for _, e := range []estimate{{cmp.Or(r.Policy, "as it was"), &r.Actual}, {"its rule", r.Rule}, {"shadow " + r.Beside, r.Shadow}} {
		if e.Estimate != nil {
			list = append(list, e)
		}
	}
	return list
}

func workersText(e *policy.Estimate) string {
	if e.Seconds <= 0 {
		return unknown
	}
	return fmt.Sprintf("%.2f", e.WorkerSeconds/e.Seconds)
}

// reviewText is a review in a line; "" where there is nothing to compare with.
func reviewText(r *controller.Review) string {
	if r == nil || r.Problem != "" {
		return ""
	}
	var list []string
	for _, e := range estimates(r) {
		list = append(list, fmt.Sprintf("%s %s on time with %s workers", e.by, shareText(e.OnTime), workersText(e.Estimate)))
	}
	return oneLine("in a model: " + strings.Join(list, "; "))
}
