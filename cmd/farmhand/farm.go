package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"farmhand/controller"
)

// farmCmd holds the commands that talk to the controller.
func farmCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "farm", Short: "Look at farms, why they have the workers they have, and change their settings",
		Example: "  farmhand farm list\n  farmhand farm why thumbnail",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no %s %s; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(farmListCmd(), farmShowCmd(), farmWhyCmd(), farmSetCmd(), farmUnsetCmd(), farmPauseCmd(), farmResumeCmd())
	return cmd
}

func farmListCmd() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use: "list", Short: "List the farms: what scales them, how many workers, how long tasks wait", Args: exactly(),
		Example: "  farmhand farm list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withFarms(func(client *farmClient) error {
				v, err := client.overview(cmd.Context())
				if err != nil {
					return err
				}
				tellStatus(cmd.ErrOrStderr(), v.Status)
				return c.print(cmd, v, func() {
					if len(v.Farms) == 0 {
						fmt.Fprintln(cmd.ErrOrStderr(), `there is no farm: a function becomes one by the label farmhand.worker: "true"`)
						return
					}
					writeFarms(cmd.OutOrStdout(), v.Farms)
				})
			})
		},
	}
	c.flags(cmd)
	return cmd
}

// tellStatus says when the controller itself is not doing well.
func tellStatus(out io.Writer, s controller.Status) {
	switch {
	case s.Error != "" && s.Updated.IsZero():
		fmt.Fprintf(out, "the controller has not seen the farms yet: %s\n", oneLine(s.Error))
	case s.Error != "":
		fmt.Fprintf(out, "the controller decides nothing since %s: %s\n", timeText(s.Updated), oneLine(s.Error))
	}
}

func writeFarms(out io.Writer, farms []controller.FarmView) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "FARM\tPOLICY\tMODE\tREADY\tWAITING\tRUNNING\tOLDEST WAIT\tON TIME\tSTANDS OUT")
	for _, f := range farms {
		waiting, running, wait, onTime := unknown, unknown, unknown, unknown
		if s := f.Last; s != nil {
			waiting, running, wait, onTime = numberText(s.Waiting), numberText(s.Running), waitText(s), shareText(s.OnTime)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d/%d\t%s\t%s\t%s\t%s\t%s\n", f.Name, f.Policy, f.Mode, f.Ready, f.Desired, waiting, running, wait, onTime, standsOut(f))
	}
	_ = w.Flush() // standard output
}

func farmShowCmd() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use: "show WORKER", Short: "Show a farm: settings and where they come from, conditions, budget", Args: exactly("WORKER"),
		Example: "  farmhand farm show thumbnail",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withFarms(func(client *farmClient) error {
				v, err := client.farm(cmd.Context(), args[0], fewReceipts)
				if err != nil {
					return err
				}
				return c.print(cmd, v, func() { writeFarm(cmd.OutOrStdout(), v) })
			})
		},
	}
	c.flags(cmd)
	return cmd
}

func writeFarm(out io.Writer, v controller.FarmView) {
	fmt.Fprintf(out, "%s: %d of %d replicas ready, policy %s, mode %s\n", v.Name, v.Ready, v.Desired, v.Policy, v.Mode)
	budget := ""
	if b, ok := v.Settings["budget"]; ok && b.Value != "none" {
		budget = " of " + b.Value
	}
	fmt.Fprintf(out, "used today: %.2f%s worker-hours\n", v.BudgetUsed, budget)
	if v.Owner != "" {
		fmt.Fprintf(out, "controller: %s\n", oneLine(v.Owner))
	}
	writeLearned(out, v)
	writeProblems(out, v)
	fmt.Fprintln(out)
	writeSettings(out, v, slices.Sorted(maps.Keys(v.Settings)))
	if len(v.Conditions) > 0 {
		fmt.Fprintln(out)
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "CONDITION\tSTATUS\tSINCE\tREASON")
		for _, name := range conditionNames(v) {
			c := v.Conditions[name]
			fmt.Fprintf(w, "%s\t%t\t%s\t%s\n", name, c.Status, timeText(c.Since), cmp.Or(oneLine(c.Reason), unknown))
		}
		_ = w.Flush() // standard output
	}
	fmt.Fprintln(out)
	if s := v.Last; s == nil {
		fmt.Fprintln(out, "nothing has been decided yet")
	} else {
		fmt.Fprintf(out, "last decision %s: %s  %s\n", timeText(s.At), stepText(s.Before, s.Replicas), oneLine(s.Why))
		fmt.Fprintf(out, "waiting %s, running %s, oldest wait %s, on time %s\n", numberText(s.Waiting), numberText(s.Running), waitText(s), shareText(s.OnTime))
	}
}
