package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"farmhand/cmd/farmhand/internal/bench"
)

func benchRLCmd() *cobra.Command {
	c := bench.RLConfig{Steps: 20_000, Runs: 5}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "rl", Short: "Environment steps a second of learners, and how long a learned policy takes to decide", Args: exactly(),
		Example: "  farmhand bench rl --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.Steps < 1 || c.Runs < 1 {
				return usage("--steps %d, --runs %d: want 1 or more", c.Steps, c.Runs)
			}
			c.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			r, err := bench.RL(cmd.Context(), c)
			if err != nil {
				return err
			}
			return printReport(cmd, r, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Steps, "steps", c.Steps, "environment steps a run of each learner")
	f.IntVar(&c.Runs, "runs", c.Runs, "counted runs")
	f.Uint64Var(&c.Seed, "seed", 1, "of learners and farms")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
