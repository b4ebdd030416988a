package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"farmhand/controller"
	"farmhand/policy"
)

// What is not known is shown as nothing, never as 0.
const unknown = "-"

func numberText(m policy.Maybe) string {
	if !m.Known() {
		return unknown
	}
	return fmt.Sprintf("%.0f", float64(m))
}

func shareText(m policy.Maybe) string {
	if !m.Known() {
		return unknown
	}
	return fmt.Sprintf("%.1f %%", 100*float64(m))
}

// secondsText writes seconds for people: 150ms, 2.7s, 3m5s.
func secondsText(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// waitText is how long the first task has waited, of the time it may take.
func waitText(s *controller.Summary) string {
	wait := unknown
	if s.OldestWait.Known() {
		wait = secondsText(float64(s.OldestWait))
	}
	if s.Deadline > 0 {
		wait += " of " + secondsText(s.Deadline)
	}
	return wait
}

func timeText(t time.Time) string { return t.Local().Format(timeFormat) }

// stepText is a count, or the step to it.
func stepText(before, after int) string {
	if before == after {
		return fmt.Sprint(after)
	}
	return fmt.Sprintf("%d→%d", before, after)
}

// oneLine makes a line of text that a terminal cannot be confused by.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// standsOut names what is not as it should be. That a farm is paused says its
// mode.
func standsOut(v controller.FarmView) string {
	var list []string
	if n := len(v.Problems); n > 0 {
		list = append(list, fmt.Sprintf("invalid settings: %d", n))
	}
	for _, name := range conditionNames(v) {
		c := v.Conditions[name]
		switch {
		case name == controller.PausedBy, name == controller.Scaling, c.Status == (name == controller.Healthy):
			continue
		case name == controller.Healthy:
			list = append(list, oneLine("not healthy: "+c.Reason))
		default:
			list = append(list, strings.TrimSuffix(oneLine(strings.ToLower(name)+": "+c.Reason), ":"))
		}
	}
	return cmp.Or(strings.Join(list, "; "), unknown)
}

// conditionNames are those of a farm, the most telling first.
func conditionNames(v controller.FarmView) []string {
	order := []string{controller.Healthy, controller.Limited, controller.Fallback, controller.PausedBy, controller.Scaling}
	rank := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	return slices.SortedFunc(maps.Keys(v.Conditions), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
	})
}

func originText(s controller.Setting) string {
	if s.Until.IsZero() {
		return s.Origin
	}
	return s.Origin + " until " + timeText(s.Until)
}

// writeSettings lists settings with where they come from.
func writeSettings(out io.Writer, v controller.FarmView, names []string) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tORIGIN")
	for _, name := range names {
		s := v.Settings[name]
		fmt.Fprintf(w, "%s\t%s\t%s\n", name, oneLine(s.Value), originText(s))
	}
	_ = w.Flush() // standard output
}

// writeProblems says which settings do not hold.
func writeProblems(out io.Writer, v controller.FarmView) {
	for _, p := range v.Problems {
		fmt.Fprintf(out, "invalid  %s\n", oneLine(p))
	}
}
