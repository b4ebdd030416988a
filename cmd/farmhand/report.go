package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"farmhand/cmd/farmhand/internal/bench"
	"farmhand/evaluate"
	"farmhand/evaluate/report"
	"farmhand/internal/atomicfile"
	"farmhand/policy/guard"
	"farmhand/sim/workload"
)

func reportCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "report", Short: "Write what was measured as a document"}
	cmd.AddCommand(reportPeersCmd(), reportLearnedCmd(), reportGeneralCmd(), reportPaperCmd())
	return cmd
}

type reportOptions struct {
	quick bool
	out   string
	only  []string
}

func reportPeersCmd() *cobra.Command {
	var f refereeFlags
	o := reportOptions{out: filepath.Join("docs", "RESULTS.md")}
	cmd := &cobra.Command{
		Use: "peers", Short: "Calibrate all laws on all scenarios, judge and bound them, and write docs/RESULTS.md", Args: exactly(),
		Long: `Calibrate all laws on all built-in scenarios, and on the eight traces where their folder
is known, judge them beside their defaults and the oracles, and write a document with
drawings. It takes about an hour on two cores; --quick, which leaves the traces out,
about five minutes. What was computed is kept: begun again, it goes on where it ended,
and only what has changed is computed anew; the law under way begins anew.`,
		Example: "  farmhand report peers --traces traces",
		RunE:    func(cmd *cobra.Command, _ []string) error { return runReportPeers(cmd, &f, &o) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.quick, "quick", false, "built-in scenarios only, a smaller search, fewer seeds")
	flags.StringVar(&o.out, "out", o.out, "the document; drawings go to a folder of its name")
	flags.StringSliceVar(&o.only, "scenario", nil, "these scenarios only")
	return cmd
}

// reported are the scenarios of the report: the built-in ones, then the traces.
func (o *reportOptions) reported() (names []string) {
	if len(o.only) > 0 {
		return o.only
	}
	names = workload.Names()
	for _, name := range append(slices.Clone(workload.Training), workload.Test...) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func runReportPeers(cmd *cobra.Command, f *refereeFlags, o *reportOptions) error {
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return usage("--out: %v", err)
	}
	if err := checkFiles("--out", o.out); err != nil {
		return err
	}
	settings, shut, err := f.open()
	if err != nil {
		return err
	}
	defer shut() //nolint:errcheck // every line is written when it is put
	x := &evaluate.Examiner{Settings: settings, Budget: evaluate.FullBudget(), Seeds: evaluate.EvaluationSeeds(), Laws: peers(),
		OracleSeeds: oracleSeeds, Effort: evaluate.PlanEffort}
	if o.quick {
		x.Budget, x.Seeds, x.OracleSeeds, x.Effort = evaluate.QuickBudget(), x.Seeds[:5], 2, x.Effort/4
	}
	d := &report.Results{Command: command(o), Quick: o.quick, Training: x.Budget.Seeds, Judging: x.Seeds, Oracle: x.OracleSeeds}
	d.Machine, d.Commit = whereAndWhat(cmd.Context())
	scenarios, err := f.atHand(o, d)
	if err != nil {
		return err
	}
	also, err := pooled(cmd.Context(), x, scenarios)
	if err != nil {
		return broken(cmd.Context(), o.out, len(d.Examinations), len(scenarios), err)
	}
	for i, s := range scenarios {
		var bar *progress
		x.Ran, bar = ticker(cmd.ErrOrStderr(), fmt.Sprintf("%s (%d of %d), runs", s.Name, i+1, len(scenarios)), 0)
		e, err := x.Examine(cmd.Context(), s, also...)
		bar.finish()
		if err != nil {
			return broken(cmd.Context(), o.out, len(d.Examinations), len(scenarios), err)
		}
		d.Examinations, d.Pending = append(d.Examinations, e), nil
		for _, later := range scenarios[i+1:] {
			d.Pending = append(d.Pending, later.Name)
		}
		if err := drawAll(cmd.Context(), e, o.out); err != nil {
			return err
		}
		if err := writeResults(d, o.out); err != nil { // as far as it is: it takes long
			return err
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d scenarios\n", o.out, len(d.Examinations))
	return nil
}

// broken says after an interrupt how far the document is.
func broken(ctx context.Context, out string, done, all int, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted: %s has %d of %d scenarios; begun again, it goes on, but a calibration under way begins anew", out, done, all)}
}

// command is what makes the document anew.
func command(o *reportOptions) string {
	s := "farmhand report peers --traces DIR"
	if o.quick {
		s = "farmhand report peers --quick"
	}
	if len(o.only) > 0 {
		s += " --scenario " + strings.Join(o.only, ",")
	}
	return s
}

// atHand finds the scenarios; the document says which traces are missing.
func (f *refereeFlags) atHand(o *reportOptions, d *report.Results) ([]*workload.Scenario, error) {
	names := o.reported()
	if _, err := (workload.Options{Traces: f.own.traces}).Folder(); len(o.only) == 0 && (o.quick || err != nil) {
		why := "a quick run leaves them out"
		if err != nil {
			why = err.Error()
		}
		names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "trace:") })
		d.Missing = append(d.Missing, "the traces: "+why)
	}
	return f.find(names)
}

// pooled is the rule for the training scenarios that are at hand; none for fewer than two.
func pooled(ctx context.Context, x *evaluate.Examiner, scenarios []*workload.Scenario) ([]evaluate.Contender, error) {
	list := slices.DeleteFunc(slices.Clone(scenarios), func(s *workload.Scenario) bool { return !slices.Contains(workload.Training, s.Name) })
	if len(list) < 2 {
		return nil, nil
	}
	one, err := pool(ctx, evaluate.Calibrator{Settings: x.Settings, Budget: x.Budget}, list)
	return []evaluate.Contender{one}, err
}

// pool is one configuration of the default law that serves all the scenarios: what a
// general policy competes with.
func pool(ctx context.Context, c evaluate.Calibrator, scenarios []*workload.Scenario) (evaluate.Contender, error) {
	family, err := evaluate.LawFamily(pooledLaw)
	if err != nil {
		return evaluate.Contender{}, err
	}
	found, err := c.Calibrate(ctx, family, scenarios)
	if err != nil {
		return evaluate.Contender{}, err
	}
	return found.Contender(family, found.Best)
}

const pooledLaw = "staffing"

// whereAndWhat are the machine and the commit.
func whereAndWhat(ctx context.Context) (machine, commit string) {
	r := bench.NewReport(0)
	m := r.Machine
	machine = fmt.Sprintf("%d × %s, %s/%s, %s", m.CPUs, m.Model, m.OS, m.Arch, m.Go)
	if commit = r.Commit; commit == "unknown" { // built without the version
		if out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output(); err == nil {
			commit = strings.TrimSpace(string(out))
		}
	}
	return machine, commit
}

func writeResults(d *report.Results, out string) error {
	var b bytes.Buffer
	if err := d.Write(&b, func(scenario, kind string) string { return filepath.ToSlash(drawing("", out, scenario, kind)) }); err != nil {
		return err
	}
	return atomicfile.Write(out, b.Bytes(), 0o644)
}

// drawing is the path of a drawing, seen from a folder.
func drawing(from, out, scenario, kind string) string {
	folder := strings.ToLower(strings.TrimSuffix(filepath.Base(out), filepath.Ext(out)))
	return filepath.Join(from, folder, strings.NewReplacer(":", "-", "/", "-").Replace(scenario)+"-"+kind+".svg")
}

// lively is the cheapest contender on target that scales now and then, for a time line
// on which something can be seen; else the peer.
func lively(e *evaluate.Examination) evaluate.Contender {
	for _, p := range report.Rank(e.Entries)[0].Places {
		if p.OnTarget() && p.Parameters != string(evaluate.Bound) && p.Values[evaluate.Actions].Mean > 20 {
			return evaluate.Contender{Name: p.Policy, Spec: p.Specification}
		}
	}
	return e.Peer.Contender
}

// drawAll draws what the peers came to, and ten minutes of a policy.
func drawAll(ctx context.Context, e *evaluate.Examination, out string) error {
	save := func(kind string, draw func(io.Writer) error) error {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			return err
		}
		path := drawing(filepath.Dir(out), out, e.Scenario.Name, kind)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return atomicfile.Write(path, b.Bytes(), 0o644)
	}
	fronts := map[string]evaluate.Front{}
	if len(e.Front) > 1 {
		fronts["front of "+e.Peer.Contender.Name] = e.Front
	}
	if err := save("pareto", func(w io.Writer) error { return report.Pareto(w, e.Scenario.Name, e.Entries, fronts) }); err != nil {
		return err
	}
	if len(e.Peer.Episodes) == 0 {
		return nil
	}
	p := &playing{scenario: e.Scenario, contender: lively(e)}
	if !e.Unguarded {
		p.guard = &guard.Settings{}
	}
	if err := p.play(ctx, e.Peer.Episodes[0].Seed, 1); err != nil {
		return err
	}
	if from, to := 600.0, 1200.0; e.Scenario.Horizon >= to {
		p.moments = slices.DeleteFunc(p.moments, func(m moment) bool { return m.At < from || m.At > to })
	}
	return save("timeline", func(w io.Writer) error { return timelineSVG(w, p) })
}
