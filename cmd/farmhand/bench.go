package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"farmhand/cmd/farmhand/internal/bench"
)

func benchCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure the product on this machine"}
	cmd.AddCommand(benchQueueCmd(), benchDispatchCmd(), benchFootprintCmd(), benchControllerCmd(), benchScaleCmd(), benchLiveCmd(), benchSimCmd(), benchRLCmd(), benchWorkerCmd())
	return cmd
}

func benchQueueCmd() *cobra.Command {
	c := bench.QueueConfig{Tasks: 100_000, Window: 50, Runs: 5, Open: 4 * time.Second}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "queue", Short: "Drain and open-loop latency of the queue on a real Redis, beside asynq", Args: exactly(),
		Example: "  farmhand bench queue --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			if c.Peer == "" {
				c.Peer = buildPeer(cmd)
			}
			r, err := bench.Queue(cmd.Context(), c)
			if err != nil {
				return err
			}
			return printReport(cmd, r, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Tasks, "tasks", c.Tasks, "tasks a run")
	f.IntVar(&c.Window, "window", c.Window, "live leases at most")
	f.IntVar(&c.Runs, "runs", c.Runs, "counted runs of each side")
	f.StringVar(&c.Peer, "asynq", "", "program that does the same with asynq (default: built from bench/)")
	f.Uint64Var(&c.Seed, "seed", 1, "recorded; this benchmark draws nothing")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func benchDispatchCmd() *cobra.Command {
	c := bench.DispatchConfig{Stack: "stack.yml", Replicas: 4, Tasks: 5000, Runs: 5, Open: 5 * time.Second}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "dispatch", Short: "The way of a task through gateway, dispatcher and worker processes", Args: exactly(),
		Example: "  farmhand bench dispatch --prebuilt bin/functions --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			r, err := bench.Dispatch(cmd.Context(), c)
			if err != nil {
				return err
			}
			return printReport(cmd, r, asJSON)
		},
	}
	dispatchFlags(cmd, &c)
	cmd.Flags().IntVar(&c.Tasks, "tasks", c.Tasks, "tasks of a capacity run")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func dispatchFlags(cmd *cobra.Command, c *bench.DispatchConfig) {
	f := cmd.Flags()
	f.StringVar(&c.Stack, "stack", c.Stack, "stack file")
	f.StringVar(&c.Prebuilt, "prebuilt", "", "folder of built functions (default: they are built)")
	f.IntVar(&c.Replicas, "replicas", c.Replicas, "workers")
	f.IntVar(&c.Runs, "runs", c.Runs, "counted runs")
	f.Uint64Var(&c.Seed, "seed", 1, "recorded; this benchmark draws nothing")
}

func benchFootprintCmd() *cobra.Command {
	c := bench.FootprintConfig{Tasks: 100_000, Images: 2000, Bytes: 2 << 20, Idle: 20 * time.Second}
	c.Dispatch = bench.DispatchConfig{Stack: "stack.yml", Replicas: 4, Runs: 5}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "footprint", Short: "Processor at rest, memory under large jobs, size and start of a function", Args: exactly(),
		Example: "  farmhand bench footprint --prebuilt bin/functions",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := bench.Footprint(cmd.Context(), c)
			if err != nil {
				return err
			}
			return printReport(cmd, r, asJSON)
		},
	}
	dispatchFlags(cmd, &c.Dispatch)
	f := cmd.Flags()
	f.IntVar(&c.Tasks, "tasks", c.Tasks, "tasks of the large job")
	f.IntVar(&c.Images, "images", c.Images, "images streamed; 0 leaves them out")
	f.IntVar(&c.Bytes, "image-bytes", c.Bytes, "size of an image, about")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func benchControllerCmd() *cobra.Command {
	c := bench.ControlConfig{Tick: 200, Farms: 1000, Loop: time.Minute, Idle: 20 * time.Second, Runs: 5}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "controller", Short: "A tick over many farms, how late ticks are, and the processor at rest", Args: exactly(),
		Example: "  farmhand bench controller --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			r, err := bench.Control(cmd.Context(), c)
			if err != nil {
				return err
			}
			return printReport(cmd, r, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Tick, "tick-farms", c.Tick, "farms of the timed tick")
	f.IntVar(&c.Farms, "farms", c.Farms, "farms of the loop")
	f.DurationVar(&c.Loop, "loop", c.Loop, "how long the loop runs")
	f.IntVar(&c.Runs, "runs", c.Runs, "counted ticks")
	f.Uint64Var(&c.Seed, "seed", 1, "recorded; this benchmark draws nothing")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func benchScaleCmd() *cobra.Command {
	c := bench.ScaleConfig{Stack: "stack.yml", Policies: []string{"staffing:down=15", "staffing", "reactive-average"}, Statics: []int{5, 6, 7, 8, 9, 10},
		Rest: 125 * time.Second, Cycles: 4, Quiet: time.Minute, Busy: 30 * time.Second}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "scale", Short: "Policies and fixed counts side by side under an alternating load, on real processes", Args: exactly(),
		Example: "  farmhand bench scale --prebuilt bin/functions",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			r, rows, err := bench.Scale(cmd.Context(), c)
			if err != nil {
				return err
			}
			for _, row := range rows {
				c.Log("%-24s %5.1f %% on time, %5.2f workers in the mean, %2d at most, %2d actions", row.Policy, 100*row.OnTime, row.MeanWorkers, row.PeakWorkers, row.Actions)
			}
			return printReport(cmd, r, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Stack, "stack", c.Stack, "stack file")
	f.StringVar(&c.Prebuilt, "prebuilt", "", "folder of built functions (default: they are built)")
	f.StringSliceVar(&c.Policies, "policy", c.Policies, "policies; the first is the one that is compared")
	f.IntSliceVar(&c.Statics, "static", c.Statics, "fixed counts beside them")
	f.DurationVar(&c.Rest, "rest", c.Rest, "before the load; no farm shrinks in its first two minutes")
	f.IntVar(&c.Cycles, "cycles", c.Cycles, "of a quiet and a busy stretch")
	f.DurationVar(&c.Quiet, "quiet", c.Quiet, "length of a quiet stretch: 5 tasks a second")
	f.DurationVar(&c.Busy, "busy", c.Busy, "length of a busy stretch: 40 tasks a second")
	f.Uint64Var(&c.Seed, "seed", 1, "of arrivals and services")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func benchWorkerCmd() *cobra.Command {
	return &cobra.Command{
		Use: "worker", Short: "The worker of bench scale; the platform runs it", Args: exactly(), Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return bench.Worker(cmd.Context()) },
	}
}

// buildPeer builds the peer's program where its source is at hand.
func buildPeer(cmd *cobra.Command) string {
	if _, err := os.Stat(filepath.Join("bench", "go.mod")); err != nil {
		return ""
	}
	out, err := filepath.Abs(filepath.Join("bin", "bench-asynq"))
	if err != nil {
		return ""
	}
	build := exec.CommandContext(cmd.Context(), "go", "build", "-o", out, "./asynq")
	build.Dir = "bench"
	build.Stderr = cmd.ErrOrStderr()
	if err := build.Run(); err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "asynq cannot be built:", err)
		return ""
	}
	return out
}

// printReport prints the figures with their spread, or everything as JSON.
func printReport(cmd *cobra.Command, r *bench.Report, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	for _, name := range r.Names() {
		s, repeated := r.Spread[name]
		if !repeated {
			fmt.Fprintf(cmd.OutOrStdout(), "%-36s %12.4g\n", name, r.Figures[name])
			continue
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%-36s %12.4g  (%.4g – %.4g, %d runs)\n", name, r.Figures[name], s.Min, s.Max, s.Runs)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), note)
	}
	return nil
}
