package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"farmhand/cmd/farmhand/internal/bench"
)

// longestBench in simulated seconds: 200 tasks in each.
const longestBench = 100_000

func benchSimCmd() *cobra.Command {
	c := bench.SimConfig{Horizon: 3600, Runs: 7}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "sim", Short: "Events and control steps a second of the simulator, beside a farm on container/heap", Args: exactly(),
		Example: "  farmhand bench sim --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !(c.Horizon > 0 && c.Horizon <= longestBench) || c.Runs < 1 {
				return usage("--horizon %g, --runs %d: want above 0 up to %d seconds, and 1 or more", c.Horizon, c.Runs, longestBench)
			}
			c.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			r, err := bench.Sim(cmd.Context(), c)
			if err != nil {
				return err
			}
			return printReport(cmd, r, asJSON)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&c.Horizon, "horizon", c.Horizon, "simulated seconds a run")
	f.IntVar(&c.Runs, "runs", c.Runs, "counted runs")
	f.Uint64Var(&c.Seed, "seed", 1, "of arrivals, services and the platform")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
