package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"farmhand/cmd/farmhand/internal/bench"
	"farmhand/sim/workload"
)

// liveOptions are the flags of bench live beside those of bench.LiveConfig.
type liveOptions struct {
	scenario, traces string
	mean             float64
	length           time.Duration
	keep             string
	asJSON           bool
}

func benchLiveCmd() *cobra.Command {
	c := bench.LiveConfig{Stack: "stack.yml", Policies: []string{"static:n=9", "staffing:down=15", "timer"}, Together: 3, Rest: 130 * time.Second, Sims: 20}
	o := liveOptions{length: 10 * time.Minute}
	cmd := &cobra.Command{
		Use: "live", Short: "Play a scenario on the local platform and in the simulator, and compare", Args: exactly(),
		Long: `Play a scenario on the local platform and in the simulator, and compare.

Gateway, dispatcher, controller, Redis and worker processes are real; workers sleep
for the service times that are drawn, and starts take as long as the scenario says.
The simulator plays the same tasks under the same policies. docs/live.md tells more.`,
		Example: `  farmhand bench live --prebuilt bin/functions --scenario burst-cron-150ms --policy static:n=9 --policy timer
  farmhand bench live --prebuilt bin/functions --scenario trace:huawei_private_f104 --mean 40 --traces DIR`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBenchLive(cmd, &c, &o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.scenario, "scenario", "burst-cron-150ms", "name of the scenario, trace:NAME, or .yaml file")
	f.StringVar(&o.traces, "traces", "", "folder of traces (default $FARMHAND_TRACES)")
	f.Float64Var(&o.mean, "mean", 0, "tasks a second of trace:NAME, over what is played")
	f.StringArrayVar(&c.Policies, "policy", c.Policies, "policy, as law:parameter=value,…, or .safetensors file; again for more")
	f.DurationVar(&o.length, "for", o.length, "how long the load lasts")
	f.DurationVar(&c.Rest, "rest", c.Rest, "before the load; no farm shrinks in its first two minutes")
	f.IntVar(&c.Together, "together", c.Together, "farms that run at the same time")
	f.IntVar(&c.Sims, "sims", c.Sims, "simulated runs of each row")
	f.Uint64Var(&c.Seed, "seed", 1, "of the tasks, the starts and the simulator")
	f.StringVar(&c.Stack, "stack", c.Stack, "stack file")
	f.StringVar(&c.Prebuilt, "prebuilt", "", "folder of built functions (default: they are built)")
	f.StringVar(&o.keep, "keep", "", "folder for figures and telemetry")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	return cmd
}

func runBenchLive(cmd *cobra.Command, c *bench.LiveConfig, o *liveOptions) error {
	switch {
	case o.length < 10*time.Second:
		return usage("--for %v: want 10s or more", o.length)
	case c.Rest < 0:
		return usage("--rest %v: want 0 or more", c.Rest)
	case c.Together < 1 || c.Sims < 1:
		return usage("--together %d, --sims %d: want 1 or more", c.Together, c.Sims)
	case o.mean < 0 || o.mean > 0 && !strings.HasPrefix(o.scenario, "trace:"):
		return usage("--mean %g: want tasks a second of trace:NAME; %s has its own", o.mean, o.scenario)
	case len(c.Policies) == 0:
		return usage("no --policy")
	}
	var err error
	if c.Scenario, err = workload.Find(o.scenario, workload.Options{Traces: o.traces, Mean: o.mean, Length: o.length.Seconds()}); err != nil {
		return usage("--scenario: %v", err)
	}
	c.Scenario.Horizon, c.Mean = o.length.Seconds(), o.mean
	if err := c.Check(); err != nil {
		return usage("%v", err)
	}
	c.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
	var runs []*bench.LiveRun
	c.Done = func(r *bench.LiveRun) error {
		runs = append(runs, r)
		if o.keep == "" {
			return nil
		}
		return r.Keep(filepath.Join(o.keep, fmt.Sprintf("%02d", len(runs))))
	}
	failed := bench.Live(cmd.Context(), *c)
	if len(runs) == 0 {
		return failed
	}
	if o.asJSON {
		err = printJSON(cmd.OutOrStdout(), struct {
			Runs []*bench.LiveRun `json:"runs"`
			*bench.Report
		}{runs, liveReport(c.Seed, runs)})
	} else {
		err = tellLive(cmd.OutOrStdout(), runs)
	}
	if failed != nil {
		return failed
	}
	return err
}

// liveReport has the largest differences.
func liveReport(seed uint64, runs []*bench.LiveRun) *bench.Report {
	r := bench.NewReport(seed)
	for _, run := range runs {
		for _, row := range run.Rows {
			r.Figures["live_on_time_difference_points_max"] = max(r.Figures["live_on_time_difference_points_max"], row.OnTimeDifference, -row.OnTimeDifference)
			r.Figures["live_mean_workers_difference_pct_max"] = max(r.Figures["live_mean_workers_difference_pct_max"], row.WorkersDifference, -row.WorkersDifference)
		}
	}
	return r
}

// tellLive prints the table for people.
func tellLive(out io.Writer, runs []*bench.LiveRun) error {
	for _, run := range runs {
		fmt.Fprintf(out, "%s for %s, seed %d\n", run.Scenario, secondsText(run.Length), run.Seed)
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "policy\ton time, live\tsimulated\tdifference\tworkers, live\tsimulated\tdifference\tactions\tsimulated\tp95, live\tsimulated\tsignal age\tcall, settling")
		for _, r := range run.Rows {
			fmt.Fprintf(w, "%s\t%.2f %%\t%.2f (%.2f–%.2f)\t%+.2f points\t%.2f\t%.2f (%.2f–%.2f)\t%+.1f %%\t%.0f\t%.0f\t%s\t%s\t%s\t+%.2f, %.2f ms\n", r.Policy,
				100*r.Live.OnTime, 100*r.Sim.OnTime, 100*r.Lo.OnTime, 100*r.Hi.OnTime, r.OnTimeDifference,
				r.Live.MeanWorkers, r.Sim.MeanWorkers, r.Lo.MeanWorkers, r.Hi.MeanWorkers, r.WorkersDifference,
				r.Live.Actions, r.Sim.Actions, secondsText(r.Live.P95), secondsText(r.Sim.P95), secondsText(r.Live.SignalAge), 1000*r.Overhead.Call, 1000*r.Overhead.Settle)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		m := &run.Measured
		fmt.Fprintf(out, "measured: %d starts, %s in the median; %d scale calls, %s; tasks were handed over in %s\n",
			m.Starts, secondsText(median(m.Startup)), m.Calls, secondsText(median(m.Call)), secondsText(m.Handover))
		fmt.Fprintf(out, "sender: late by %s in the median, %s at p99, %s at most\n\n", secondsText(m.LatenessP50), secondsText(m.LatenessP99), secondsText(m.LatenessMax))
	}
	return nil
}

// median of a table of quantiles.
func median(table []float64) float64 {
	if len(table) == 0 {
		return 0
	}
	return table[len(table)/2]
}
