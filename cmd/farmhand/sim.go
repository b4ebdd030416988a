package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"farmhand/cmd/farmhand/internal/bench"
	"farmhand/evaluate"
	"farmhand/evaluate/report"
	"farmhand/internal/atomicfile"
	"farmhand/policy/guard"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// simOptions are the flags of sim.
type simOptions struct {
	scenario, policy string
	seed             uint64
	seeds            int
	horizon          time.Duration
	own              ownTrace
	timeline         string
	unguarded        bool
	asJSON           bool
}

// ownTrace are the flags that say what a CSV file of one's own does not.
type ownTrace struct {
	traces   string
	deadline time.Duration
	service  string
}

func (f *ownTrace) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.traces, "traces", "", "folder of traces (default $FARMHAND_TRACES)")
	flags.DurationVar(&f.deadline, "deadline", 0, "of a .csv file's tasks")
	flags.StringVar(&f.service, "service", "", "of a .csv file without durations: a time or a law, as {lognormal: {mean: 40ms, cv: 0.6}}")
}

// check that flags which say what a file does not have a file to say it of.
func (f *ownTrace) check(names ...string) error {
	isCSV := func(name string) bool { return strings.EqualFold(filepath.Ext(name), ".csv") }
	if (f.deadline > 0 || f.service != "") && !slices.ContainsFunc(names, isCSV) {
		return usage("--deadline and --service are for .csv files: %s has its own", strings.Join(names, ", "))
	}
	return nil
}

// find the scenario of a name or file.
func (f *ownTrace) find(name string) (*workload.Scenario, error) {
	if err := f.check(name); err != nil {
		return nil, err
	}
	return f.load(name)
}

func (f *ownTrace) load(name string) (*workload.Scenario, error) {
	if name == "" {
		return nil, usage("no --scenario: see docs/scenarios.md")
	}
	o := workload.Options{Traces: f.traces, Deadline: f.deadline.Seconds()}
	if f.deadline < 0 {
		return nil, usage("--deadline %v: want more than 0", f.deadline)
	}
	if f.service != "" {
		law, err := workload.ParseLaw(f.service, o)
		if err != nil {
			return nil, usage("--service: %v", err)
		}
		if !(law.Mean() > 0) {
			return nil, usage("--service %s: want a mean above 0", f.service)
		}
		o.Service = law
	}
	s, err := workload.Find(name, o)
	if err != nil {
		return nil, usage("--scenario: %v", err)
	}
	return s, nil
}

func simCmd() *cobra.Command {
	o := simOptions{policy: "staffing", seed: 1, seeds: 1}
	cmd := &cobra.Command{
		Use: "sim", Short: "Play one policy on a simulated farm, and tell what it cost and how late work was", Args: exactly(),
		Long: `Play one policy on a simulated farm, and tell what it cost and how late work was.

A scenario is the name of a built-in one, trace:NAME, a .yaml file, or a .csv file of
a load of your own; docs/scenarios.md describes them. The guard of a live farm limits
the policy here too. farmhand eval compares policies.`,
		Example: `  farmhand sim --scenario burst-cron-150ms --policy staffing:down=15
  farmhand sim --scenario own.csv --deadline 2s --policy static:n=8 --timeline run.svg`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runSim(cmd, &o) },
	}
	o.own.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.scenario, "scenario", "", "name or file of the scenario")
	f.StringVar(&o.policy, "policy", o.policy, "policy, as law:parameter=value,…, or a file that farmhand train wrote")
	f.Uint64Var(&o.seed, "seed", o.seed, "of the tasks and the platform")
	f.IntVar(&o.seeds, "seeds", o.seeds, "runs, with this seed and those after it")
	f.DurationVar(&o.horizon, "horizon", 0, "how long (default: as long as the scenario says)")
	f.StringVar(&o.timeline, "timeline", "", "write the first run, decision by decision, to a .csv or .svg file")
	f.BoolVar(&o.unguarded, "unguarded", false, "let no guard limit the policy")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	return cmd
}

func runSim(cmd *cobra.Command, o *simOptions) error {
	if err := checkSeeds(o.seed, o.seeds); err != nil {
		return err
	}
	if o.horizon < 0 || o.horizon == 0 && cmd.Flags().Changed("horizon") {
		return usage("--horizon %v: want more than 0", o.horizon)
	}
	draw, err := timelineFormat(o.timeline)
	if err != nil {
		return err
	}
	if err := checkFiles("--timeline", o.timeline); err != nil {
		return err
	}
	scenario, err := o.own.find(o.scenario)
	if err != nil {
		return err
	}
	if o.horizon > 0 {
		scenario.Horizon = o.horizon.Seconds()
		if err := scenario.Fits(); err != nil {
			return usage("--horizon: %v", err)
		}
	}
	contender, err := simContender(o.policy)
	if err != nil {
		return usage("--policy: %v", err)
	}
	run := playing{scenario: scenario, contender: contender}
	if !o.unguarded {
		run.guard = &guard.Settings{}
	}
	if err := run.play(cmd.Context(), o.seed, o.seeds); err != nil {
		return err
	}
	if draw != nil {
		if err := writeTimeline(o.timeline, draw, &run); err != nil {
			return err
		}
	}
	if !o.asJSON {
		return run.tell(cmd.OutOrStdout())
	}
	return printJSON(cmd.OutOrStdout(), struct {
		Rows     []evaluate.Row     `json:"rows"`
		Episodes []evaluate.Episode `json:"episodes"`
		*bench.Report
	}{[]evaluate.Row{run.entry.Row()}, run.entry.Episodes, bench.NewReport(o.seed)})
}

// mostSeeds is far beyond what anybody waits for, and fits into memory.
const mostSeeds = 10_000

// checkSeeds that follow one another.
func checkSeeds(first uint64, n int) error {
	if n < 1 || n > mostSeeds {
		return usage("--seeds %d: want 1 or more, up to %d", n, mostSeeds)
	}
	if last := first + uint64(n-1); last < first {
		return usage("--seed %d: %d seeds from there are too many", first, n)
	}
	return nil
}

// simContender is a law with its parameters, or a policy file.
func simContender(text string) (evaluate.Contender, error) {
	if filepath.Ext(text) == policyExt {
		return policyFile(text)
	}
	c, err := evaluate.Law(text, evaluate.Given)
	if err != nil && !strings.Contains(text, ":") {
		err = fmt.Errorf("%w, or a %s file", err, policyExt)
	}
	return c, err
}

// playing is a policy on a scenario, seed by seed.
type playing struct {
	scenario  *workload.Scenario
	contender evaluate.Contender
	guard     *guard.Settings

	entry   evaluate.Entry
	load    float64  // of the first run: slots busy in the mean, had all tasks been served
	moments []moment // of the first run
}

// moment is what a time line shows of a decision.
type moment struct {
	report.Moment
	late   float64 // tasks in the last interval
	reason string
}

// play watches the first run, and lets the others follow.
func (p *playing) play(ctx context.Context, seed uint64, seeds int) error {
	tasks := p.scenario.Draw(seed)
	for _, x := range tasks.Service {
		p.load += (x + p.scenario.Platform.Overhead) / tasks.Horizon
	}
	config := sim.Config{Scenario: p.scenario, Tasks: tasks, Seed: seed}
	driver, err := p.contender.Driver(p.guard, config)
	if err != nil {
		return err
	}
	driver.Step = p.watch
	first, err := sim.Run(ctx, config, driver)
	if err != nil {
		return err
	}
	study := evaluate.Study{Settings: evaluate.Settings{Guard: p.guard, Jobs: runtime.GOMAXPROCS(0)}}
	for i := 1; i < seeds; i++ {
		study.Seeds = append(study.Seeds, seed+uint64(i))
	}
	rest, err := study.Run(ctx, []evaluate.Case{{Scenario: p.scenario, Contenders: []evaluate.Contender{p.contender}}})
	if err != nil {
		return err
	}
	p.entry = evaluate.Entry{Scenario: p.scenario, Contender: p.contender, Episodes: []evaluate.Episode{{Seed: seed, Result: first}}}
	for _, e := range rest {
		p.entry.Episodes = append(p.entry.Episodes, e.Episodes...)
	}
	return nil
}

func (p *playing) watch(s *sim.Step) {
	o := s.Observation
	m := moment{late: o.Last.Late, reason: s.Wish.Reason}
	m.Moment = report.Moment{At: s.At, Arrivals: o.Last.Rate().Or(0), Waiting: o.Waiting.Or(0),
		Wanted: float64(s.Outcome.Replicas), Ready: float64(o.Ready), P95: math.NaN()}
	if o.Last.Sojourn.N > 0 {
		m.P95 = o.Last.Sojourn.P95
	}
	p.moments = append(p.moments, m)
}

// timelineFormat is how a file of that name is written; nil: there is none.
func timelineFormat(file string) (func(io.Writer, *playing) error, error) {
	switch filepath.Ext(file) {
	case ".csv":
		return timelineCSV, nil
	case ".svg":
		return timelineSVG, nil
	}
	if file == "" {
		return nil, nil
	}
	return nil, usage("--timeline %s: want a .csv or .svg file", file)
}

func writeTimeline(file string, draw func(io.Writer, *playing) error, p *playing) error {
	var b bytes.Buffer
	if err := draw(&b, p); err != nil {
		return err
	}
	return atomicfile.Write(file, b.Bytes(), 0o644)
}

func timelineSVG(w io.Writer, p *playing) error {
	var run []report.Moment
	for _, m := range p.moments {
		run = append(run, m.Moment)
	}
	return report.Timeline(w, p.scenario.Name+", "+p.contender.Spec, run, p.scenario.Farm.Deadline)
}

func timelineCSV(w io.Writer, p *playing) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"seconds", "arrivals_per_s", "waiting", "wanted", "ready", "late", "p95_s", "reason"}) // Error tells
	for _, m := range p.moments {
		var row []string
		for _, x := range []float64{m.At, m.Arrivals, m.Waiting, m.Wanted, m.Ready, m.late, m.P95} {
			text := strconv.FormatFloat(x, 'g', 6, 64)
			if math.IsNaN(x) {
				text = ""
			}
			row = append(row, text)
		}
		_ = out.Write(append(row, m.reason))
	}
	out.Flush()
	return out.Error()
}

// tell the result to people.
func (p *playing) tell(out io.Writer) error {
	r := &p.entry.Episodes[0].Result
	s := p.scenario
	guarded := "guarded"
	if p.guard == nil {
		guarded = "unguarded"
	}
	fmt.Fprintln(out, strings.TrimSuffix(s.Name+": "+s.Doc, ": "))
	fmt.Fprintf(out, "%s, %s, seed %d, %s simulated; %.3g slots busy in the mean if all is served, %d replicas at most\n\n",
		p.contender.Spec, guarded, p.entry.Episodes[0].Seed, secondsText(s.Horizon), p.load, s.Farm.Max)
	p.draw(out)
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	line := func(what, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", what, fmt.Sprintf(format, args...)) }
	line("tasks", "%d: %d done, %d dead, %d unfinished", r.Tasks, r.Done, r.Dead, r.Unfinished)
	line("on time", "%s of those with a due, %s wanted; %d of %d intervals below", shareText(r.OnTime()), percentText(s.Farm.Target), r.Violating, r.Windows)
	line("sojourn", "p50 %s, p95 %s, p99 %s, at most %s", secondsText(r.P50), secondsText(r.P95), secondsText(r.P99), secondsText(r.MaxSojourn))
	line("wait, service", "%s, %s in the mean", secondsText(r.Wait), secondsText(r.Service))
	line("workers", "%.2f in the mean, %d at most; %.0f worker-seconds, %s busy", r.MeanWorkers, r.PeakWorkers, r.WorkerSeconds, percentText(r.BusyFraction))
	line("actions", "%d, with %d starts and %d flaps", r.Actions, r.Starts, r.Flaps)
	if r.HandBacks > 0 {
		line("handed back", "%d times: the policy's fallback decided then", r.HandBacks)
	}
	if r.Crashes+r.Lost+r.Busy > 0 {
		line("trouble", "%d crashes, %d attempts lost, %d busy answers", r.Crashes, r.Lost, r.Busy)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Saturated {
		fmt.Fprintf(out, "overloaded: the work is more than %d replicas can do\n", s.Farm.Max)
	}
	if len(p.entry.Episodes) > 1 {
		fmt.Fprintln(out)
		return p.tellSeeds(out)
	}
	return nil
}

// tellSeeds says how the runs differ.
func (p *playing) tellSeeds(out io.Writer) error {
	row := p.entry.Row()
	fmt.Fprintf(out, "over %d seeds, with the 95 %% interval of the mean\n", row.Seeds)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, m := range []evaluate.Measure{evaluate.OnTime, evaluate.P95, evaluate.P99, evaluate.MeanWorkers, evaluate.PeakWorkers, evaluate.Actions, evaluate.Starts} {
		v := row.Values[m]
		fmt.Fprintf(w, "%s\t%.4g\t%.4g … %.4g\n", m, float64(v.Mean), float64(v.Lo), float64(v.Hi))
	}
	return w.Flush()
}

// timelineWidth in characters.
const timelineWidth = 72

// draw the first run, a character for some decisions: the largest of each value.
func (p *playing) draw(out io.Writer) {
	n := len(p.moments)
	cells := min(n, timelineWidth)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, l := range []struct {
		name string
		of   func(m *moment) float64
	}{
		{"arrivals/s", func(m *moment) float64 { return m.Arrivals }},
		{"waiting", func(m *moment) float64 { return m.Waiting }},
		{"wanted", func(m *moment) float64 { return m.Wanted }},
		{"ready", func(m *moment) float64 { return m.Ready }},
		{"late", func(m *moment) float64 { return m.late }},
	} {
		most := 0.0
		counts := make([]int, cells)
		for i := range p.moments {
			x := l.of(&p.moments[i])
			most = max(most, x)
			c := i * cells / n
			counts[c] = max(counts[c], int(math.Ceil(x)))
		}
		fmt.Fprintf(w, "%s\t%s\t0 … %.0f\n", l.name, sparkline(counts), most)
	}
	_ = w.Flush() // standard output
	fmt.Fprintf(out, "%s a character, the most in it\n", secondsText(p.scenario.Horizon/float64(max(1, cells))))
}

func percentText(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }
