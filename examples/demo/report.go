package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"text/tabwriter"
	"time"
)

// report counts the results of every job and prints the table. It returns an
// error where the demo proved less than it should.
func report(ctx context.Context, f *farm, s *show, d done, wall time.Duration) error {
	fmt.Println()
	for _, k := range d.killed {
		fmt.Println("killed with SIGKILL:", k)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "farm\ttasks\tdone\tdead\tlost\taccepted twice\tattempts lost\ton time\tmean workers\tworker-seconds\tpeak\tscale calls\tstarts\t")
	bad := 0
	for _, name := range farms {
		var t tally
		for _, j := range d.jobs {
			if j.worker != name {
				continue
			}
			if err := t.count(ctx, f, j); err != nil {
				return err
			}
		}
		bad += t.lost + t.twice + t.dead
		onTime := "–" // it has no deadline
		if f.settings[name]["farmhand.deadline"] != "" {
			onTime = fmt.Sprintf("%.1f %%", math.Floor(1000*float64(t.tasks-t.late)/float64(t.tasks))/10) // 100 only if none was late
		}
		c := s.courses[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%.2f\t%.0f\t%d\t%d\t%d\t\n", name, t.tasks, t.done, t.dead, t.lost, t.twice, t.again,
			onTime, c.mean(), c.workerSeconds, c.peak, c.ups+c.downs, c.starts)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, name := range []string{byRule, byPolicy} {
		fmt.Printf("%s: deadline %s, %s\n", name, f.settings[name]["farmhand.deadline"], s.courses[name].deciders())
	}
	if back := s.courses[byPolicy].back; back != "" {
		fmt.Printf("the learned policy was handed back to its rule: %s\n", back)
	}
	fmt.Printf("wall time %s; durability of the queue: %s\n", wall.Round(100*time.Millisecond), d.jobs[0].durability)
	c := s.courses[montecarlo]
	switch {
	case bad > 0:
		return fmt.Errorf("%d tasks were lost, dead, or accepted twice", bad)
	case f.ce && c.peak > mostOfCE:
		return fmt.Errorf("%d workers, and plain CE has %d at most", c.peak, mostOfCE)
	case c.ups == 0:
		return errors.New("nothing was scaled up")
	case c.downs == 0:
		return errors.New("nothing was scaled down")
	case len(d.killed) < 3:
		return fmt.Errorf("only %d processes were killed: the demo proved less than it should", len(d.killed))
	}
	return nil
}
