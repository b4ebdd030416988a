package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"farmhand/internal/problem"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
	"farmhand/skeleton/ledger"
)

func deadCmd() *cobra.Command {
	var c connection
	var limit int
	cmd := &cobra.Command{
		Use: "dead WORKER", Short: "List a farm's dead letters and why they died", Args: exactly("WORKER"),
		Example: "  farmhand dead thumbnail",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := atLeastOne(limit); err != nil {
				return err
			}
			return c.with(cmd, func(client *jobclient.Client) error {
				list := jobapi.DeadList{Dead: []ledger.DeadLetter{}}
				for after := ""; len(list.Dead) < limit; {
					page, err := client.Dead(cmd.Context(), args[0], after, min(1000, limit-len(list.Dead)))
					if err != nil {
						return err
					}
					list.Dead = append(list.Dead, page.Dead...)
					if after = page.Next; after == "" {
						break
					}
				}
				return c.print(cmd, list, func() {
					w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
					fmt.Fprintln(w, "REF\tJOB\tTASK\tDIED\tATTEMPTS\tREASON")
					for _, d := range list.Dead {
						fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%s\n", d.Ref, d.Job, d.Index, d.Died.Local().Format(timeFormat), d.Attempts, why(d))
					}
					_ = w.Flush() // standard output
				})
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 100, "how many at most")
	return cmd
}

// why a task died, on one line: what a worker says in a problem document is
// read out of it.
func why(d ledger.DeadLetter) string {
	var p problem.Problem
	reason := d.Reason
	if json.Unmarshal([]byte(d.Answer), &p) == nil && p.Detail != "" {
		what, _, _ := strings.Cut(reason, ": {")
		reason = what + ": " + p.Error()
	}
	return strings.Join(strings.Fields(reason), " ")
}

// redriver is what redrive calls.
type redriver interface {
	Redrive(ctx context.Context, worker string, refs []string) (int, error)
	Farm(ctx context.Context, worker string) (jobapi.FarmView, error)
}

// redrive puts dead letters back: those named, or all that there are by now.
// The dispatcher takes a part of them in one call. What dies meanwhile is not
// put back again and again.
func redrive(ctx context.Context, client redriver, worker string, refs []string) (n int, err error) {
	if len(refs) > 0 {
		return client.Redrive(ctx, worker, refs)
	}
	farm, err := client.Farm(ctx, worker)
	if err != nil {
		return 0, err
	}
	for n < farm.Queue.Dead {
		some, err := client.Redrive(ctx, worker, nil)
		n += some
		if err != nil || some == 0 { // the rest is of cancelled jobs
			return n, err
		}
	}
	return n, nil
}

func distinct(list []string) int {
	list = slices.Clone(list)
	slices.Sort(list)
	return len(slices.Compact(list))
}

func redriveCmd() *cobra.Command {
	var c connection
	var all bool
	cmd := &cobra.Command{
		Use: "redrive WORKER [REF...]", Short: "Put dead letters back into the queue",
		Example: "  farmhand redrive thumbnail --all",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || all == (len(args) > 1) {
				return usage("redrive takes a WORKER, and either REFs (see farmhand dead) or --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, func(client *jobclient.Client) error {
				n, err := redrive(cmd.Context(), client, args[0], args[1:])
				if err != nil {
					if n > 0 {
						fmt.Fprintf(cmd.ErrOrStderr(), "%d were redriven before\n", n)
					}
					return err
				}
				r := jobapi.Redriven{Redriven: n, NotFound: max(0, distinct(args[1:])-n)}
				if err := c.print(cmd, r, func() { fmt.Fprintf(cmd.OutOrStdout(), "%d redriven\n", n) }); err != nil {
					return err
				}
				if r.NotFound > 0 {
					fmt.Fprintf(cmd.ErrOrStderr(), "%d not found: no dead letters (any more), or of a cancelled job; see farmhand dead %s%s\n", r.NotFound, args[0], c.hint())
				}
				if r.NotFound > 0 && n == 0 {
					return &exitError{code: exitFailed}
				}
				return nil
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all of them")
	return cmd
}
