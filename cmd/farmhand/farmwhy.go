package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"farmhand/controller"
	"farmhand/policy"
)

// How many receipts are asked for: those of a minute or so, and as many as the
// controller shows, for the last change.
const (
	fewReceipts  = 20
	manyReceipts = 2000
)

func farmWhyCmd() *cobra.Command {
	var c connection
	var n int
	cmd := &cobra.Command{
		Use: "why WORKER", Short: "Tell why a farm has as many workers as it has", Args: exactly("WORKER"),
		Long: "Tell why a farm has as many workers as it has: the last decision that changed\n" +
			"the count, among those that the controller shows, and the last ones in short.",
		Example: "  farmhand farm why thumbnail -n 10",
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 0 {
				return usage("-n %d: want 0 or more", n)
			}
			return c.withFarms(func(client *farmClient) error {
				v, err := client.farm(cmd.Context(), args[0], fewReceipts)
				if err == nil && lastChange(v.Receipts) < 0 && len(v.Receipts) >= fewReceipts {
					v, err = client.farm(cmd.Context(), args[0], manyReceipts) // it was longer ago
				}
				if err != nil {
					return err
				}
				list := []controller.Receipt{}
				for _, r := range v.Receipts {
					if len(list) < n || !cmd.Flags().Changed("decisions") {
						list = append(list, r)
					}
				}
				return c.print(cmd, list, func() { writeWhy(cmd.OutOrStdout(), v, n) })
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().IntVarP(&n, "decisions", "n", 5, "how many of the last decisions to list; with --json: how many receipts (default: all there are)")
	return cmd
}

// writeWhy explains the last change, and lists the last n decisions.
func writeWhy(out io.Writer, v controller.FarmView, n int) {
	fmt.Fprintf(out, "%s: %d of %d replicas ready, policy %s, mode %s\n\n", v.Name, v.Ready, v.Desired, v.Policy, v.Mode)
	list := v.Receipts
	if len(list) == 0 {
		fmt.Fprintln(out, "nothing has been decided yet")
		return
	}
	i := lastChange(list)
	if i < 0 {
		fmt.Fprintf(out, "no decision since %s changed the count; the last one:\n\n", timeText(list[len(list)-1].At))
		i = 0
	}
	writeReceipt(out, list, i)
	if n == 0 {
		return
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "DECISION\tCOUNT\tWHY")
	for _, r := range list[:min(n, len(list))] {
		fmt.Fprintf(w, "%s\t%s\t%s\n", timeText(r.At), stepText(r.Before, r.Replicas), shortWhy(&r))
	}
	_ = w.Flush() // standard output
}

// lastChange is the newest decision that changed the count, or met a change that
// somebody else made; -1 where there is none. Receipts are newest first.
func lastChange(list []controller.Receipt) int {
	for i, r := range list {
		if r.Before != r.Replicas || r.Foreign != nil {
			return i
		}
	}
	return -1
}

// callOf finds the scale call that a decision led to: it stands in the receipt
// after its end.
func callOf(list []controller.Receipt, i int) *controller.Acted {
	for j := i - 1; j >= 0; j-- {
		if a := list[j].Acted; a != nil && a.To == list[i].Replicas {
			return a
		}
		if list[j].Before != list[j].Replicas {
			return nil // another decision took its place
		}
	}
	return nil
}

// writeReceipt explains one decision.
func writeReceipt(out io.Writer, list []controller.Receipt, i int) {
	r := &list[i]
	fmt.Fprintf(out, "%s  %s\n", timeText(r.At), stepText(r.Before, r.Replicas))
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", what, oneLine(fmt.Sprintf(format, args...)))
	}
	if f := r.Foreign; f != nil {
		line("foreign", "somebody else changed the count %d→%d; it was adopted", f.From, f.To)
	}
	o := &r.Observation
	line("seen", "waiting %s, running %s, oldest wait %s, ready %d", numberText(o.Waiting), numberText(o.Running),
		waitText(&controller.Summary{OldestWait: o.OldestWait, Deadline: o.Deadline}), o.Ready)
	noted := ""
	if r.Mode == controller.Shadow && r.Policy != r.Fallback {
		noted = " (only noted: the rule scales)"
	}
	line("wish", "%s by %s: %s%s", wishText(r.Wish), wisher(r), r.Wish.Reason, noted)
	if b := r.HandedBack; b != nil {
		line("back", "handed back for %s, %s: %s", secondsText(b.Pause), b.Cause, b.Reason)
	}
	if r.Policy != r.Fallback && r.Decider() != r.Fallback || noted != "" {
		line("rule", "%s by %s: %s", wishText(r.Rule), r.Fallback, r.Rule.Reason)
	}
	if d := r.Advice; d != nil && r.Decider() != r.Fallback {
		line("advice", "%s by %s: %s", wishText(*d), r.Adviser, d.Reason)
	}
	if d := r.ShadowWish; d != nil {
		line("shadow", "%s by %s: %s", wishText(*d), cmp.Or(r.Beside.Version, r.Beside.Spec), d.Reason)
	}
	for _, l := range r.Outcome.Limits {
		line("limit", "%s %d→%d: %s", l.Name, l.From, l.To, l.Reason)
	}
	if c := r.Capacity; c != nil {
		line("limit", "capacity %d→%d: %d for all farms", c.From, c.To, c.Capacity)
	}
	if r.Outcome.Alarm {
		line("alarm", "80 %% of the day's budget are used")
	}
	switch a := callOf(list, i); {
	case !r.Mode.Acts() && r.Outcome.Hold:
		line("call", "none: mode %s", r.Mode)
	case !r.Mode.Acts():
		line("call", "none: mode %s; else %d", r.Mode, r.Outcome.Replicas)
	case r.Before == r.Replicas:
		line("call", "none needed")
	case a == nil:
		line("call", "not known to have ended yet")
	default:
		line("call", "%s", callText(a))
	}
	_ = w.Flush() // standard output
}

// wisher is the policy whose wish a receipt has.
func wisher(r *controller.Receipt) string {
	switch {
	case r.Learned == nil:
		return r.Policy
	case r.Mode != controller.Shadow:
		return r.Decider()
	}
	return cmp.Or(r.Learned.Version, r.Policy)
}

func callText(a *controller.Acted) string {
	if a.Error != "" {
		return fmt.Sprintf("%d→%d at %s failed after %s: %s", a.From, a.To, timeText(a.At), secondsText(a.Seconds), a.Error)
	}
	s := fmt.Sprintf("%d→%d at %s, read back %d after %s", a.From, a.To, timeText(a.At), a.ReadBack, secondsText(a.Seconds))
	if a.ReadBack != a.To {
		s += ": the platform keeps to bounds of its own"
	}
	return s
}

// wishText is the count that was wished for.
func wishText(d policy.Decision) string {
	if d.Hold {
		return fmt.Sprintf("keep %d", d.Replicas)
	}
	return fmt.Sprint(d.Replicas)
}

// shortWhy is a decision in a line, with what else its receipt tells.
func shortWhy(r *controller.Receipt) string {
	s := r.Why()
	if f := r.Foreign; f != nil {
		s = fmt.Sprintf("somebody else %d→%d; %s", f.From, f.To, s)
	}
	if a := r.Acted; a != nil {
		s += "; call " + callText(a)
	}
	return oneLine(s)
}
