package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"farmhand/evaluate"
	"farmhand/evaluate/report"
	"farmhand/internal/atomicfile"
	"farmhand/sim/workload"
)

func reportGeneralCmd() *cobra.Command {
	var f refereeFlags
	var o generalOptions
	cmd := &cobra.Command{
		Use: "general FILE...", Short: "Judge policies for any farm on scenarios that they have not seen, and write docs/RESULTS-general.md",
		Long: `Judge general policies: each file was learned on the training half of the scenarios
(farmhand train --general), and serves the test half, twenty seeds of each,
beside one rule that was calibrated on the training half too. It also stands beside the
law that is the cheapest when calibrated for the scenario itself, where one was
calibrated, and the plan oracle. Of several files the median and the worst are named.
The training half is told of too, and counts for nothing. What was computed is kept, as
by report peers: begun again, it goes on where it ended.`,
		Example: "  farmhand report general --traces traces g-1.safetensors g-2.safetensors g-3.safetensors",
		RunE:    func(cmd *cobra.Command, files []string) error { return runReportGeneral(cmd, &f, &o, files) },
	}
	f.add(cmd)
	o.add(cmd, filepath.Join("docs", "RESULTS-general.md"))
	flags := cmd.Flags()
	flags.StringSliceVar(&f.scenarios, "scenario", nil, "these of the two halves only; without all of the test half there is no score")
	flags.StringVar(&o.peer, "peer", "", "the rule, as law:parameter=value,... (default: "+pooledLaw+", calibrated on the training half)")
	return cmd
}

type generalOptions struct {
	judgeOptions
	peer string
}

func runReportGeneral(cmd *cobra.Command, f *refereeFlags, o *generalOptions, files []string) error {
	if err := o.check(files); err != nil {
		return err
	}
	if f.unguarded {
		return usage("--unguarded: general policies are judged behind the guard")
	}
	d := &report.General{Command: o.command(f.scenarios), Judging: evaluate.EvaluationSeeds()[:o.seeds]}
	if !o.noOracle {
		d.Oracle = min(oracleSeeds, o.seeds)
	}
	policies, err := general(files, d)
	if err != nil {
		return err
	}
	test, training, err := f.halves(d)
	if err != nil {
		return err
	}
	list := slices.Concat(test, training)
	if err := checkFiles("--out", o.out); err != nil {
		return err
	}
	settings, shut, err := f.open()
	if err != nil {
		return err
	}
	defer shut() //nolint:errcheck // every line is written when it is put
	if d.Rule, err = f.rule(cmd.Context(), cmd.ErrOrStderr(), settings, o.peer); err != nil {
		return broken(cmd.Context(), o.out, 0, len(list), err)
	}
	d.Machine, d.Commit = whereAndWhat(cmd.Context())
	j := &generalJudge{settings: settings, report: d, policies: policies}
	for i, s := range list {
		var bar *progress
		j.settings.Ran, bar = ticker(cmd.ErrOrStderr(), fmt.Sprintf("%s (%d of %d), runs", s.Name, i+1, len(list)), 0)
		c, err := j.examine(cmd.Context(), s)
		bar.finish()
		if err != nil {
			return broken(cmd.Context(), o.out, i, len(list), err)
		}
		if i < len(test) {
			d.Test = append(d.Test, *c)
		} else {
			d.Training = append(d.Training, *c)
		}
		d.Pending = nil
		for _, later := range list[i+1:] {
			d.Pending = append(d.Pending, later.Name)
		}
		var b bytes.Buffer
		if err := d.Write(&b); err != nil {
			return err
		}
		if err := atomicfile.Write(o.out, b.Bytes(), 0o644); err != nil { // as far as it is: it takes long
			return err
		}
	}
	if o.record {
		var found []standing
		for _, c := range slices.Concat(d.Test, d.Training) {
			found = append(found, standing{c.Policies, c.Rule})
		}
		if err := recordRows(files, found); err != nil {
			return err
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d policies on %d scenarios\n", o.out, len(files), len(list))
	return nil
}

// command is what makes the document anew.
func (o *generalOptions) command(only []string) string {
	s := "farmhand report general --traces DIR"
	if len(only) > 0 {
		s += " --scenario " + strings.Join(only, ",")
	}
	if n := len(evaluate.EvaluationSeeds()); o.seeds != n {
		s += fmt.Sprintf(" --seeds %d", o.seeds)
	}
	if o.noOracle {
		s += " --no-oracle"
	}
	if o.peer != "" {
		s += " --peer " + o.peer
	}
	return s + " FILE..."
}

// general reads the policy files. One that was learned on the test half is refused: it
// would be judged by what it has seen.
func general(files []string, d *report.General) (list []evaluate.Contender, err error) {
	for _, file := range files {
		c, p, err := judgedFile(file)
		if err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(p.Scenario, ",") {
			if slices.Contains(workload.Test, name) {
				return nil, usage("%s was learned on %s, which is of the test half: want one that farmhand train --general made", file, name)
			}
		}
		if i := slices.IndexFunc(list, func(o evaluate.Contender) bool { return o.Spec == c.Spec }); i >= 0 {
			return nil, usage("%s and %s hold the same policy: want each once", files[i], file)
		}
		list = append(list, c)
		d.Policies = append(d.Policies, report.GeneralPolicy{File: filepath.Base(file), Seeds: p.Seeds(), Note: howLearned(c.Name, p)})
	}
	return list, nil
}

// halves finds the scenarios to be judged: all of both halves, of which traces that
// cannot be read are left out, as the document says; or those that are named.
func (f *refereeFlags) halves(d *report.General) (test, training []*workload.Scenario, err error) {
	all := slices.Concat(workload.Test, workload.Training)
	for _, name := range f.scenarios {
		if !slices.Contains(all, name) {
			return nil, nil, usage("--scenario %q is of neither half: want one or more of %s", name, strings.Join(all, ", "))
		}
	}
	if err := f.own.check(all...); err != nil {
		return nil, nil, err
	}
	for _, name := range all {
		if len(f.scenarios) > 0 && !slices.Contains(f.scenarios, name) {
			continue
		}
		s, err := workload.Find(name, workload.Options{Traces: f.own.traces})
		switch {
		case err != nil && len(f.scenarios) > 0:
			return nil, nil, usage("--scenario: %v", err)
		case err != nil:
			d.Missing = append(d.Missing, fmt.Sprintf("%s: %v", name, err))
		case slices.Contains(workload.Test, name):
			test = append(test, s)
		default:
			training = append(training, s)
		}
	}
	return test, training, nil
}

// rule that the policies compete with: the one that is named, or the pooled one.
func (f *refereeFlags) rule(ctx context.Context, stderr io.Writer, settings evaluate.Settings, named string) (evaluate.Contender, error) {
	if named != "" {
		c, err := evaluate.Law(named, evaluate.Given)
		if err != nil {
			return c, usage("--peer: %v", err)
		}
		return c, nil
	}
	var half []*workload.Scenario
	for _, name := range workload.Training {
		s, err := workload.Find(name, workload.Options{Traces: f.own.traces})
		if err != nil {
			return evaluate.Contender{}, usage("the rule is calibrated on all of the training half: %v; or name a rule with --peer", err)
		}
		half = append(half, s)
	}
	var bar *progress
	settings.Ran, bar = ticker(stderr, "calibrating "+pooledLaw+" on the training half, runs", 0)
	defer bar.finish()
	return pool(ctx, evaluate.Calibrator{Settings: settings, Budget: evaluate.FullBudget()}, half)
}

// generalJudge runs the policies and what they are compared with.
type generalJudge struct {
	settings evaluate.Settings
	report   *report.General
	policies []evaluate.Contender
}

// examine a scenario.
func (j *generalJudge) examine(ctx context.Context, s *workload.Scenario) (*report.GeneralCase, error) {
	study := evaluate.Study{Settings: j.settings, Seeds: j.report.Judging}
	run := func(list ...evaluate.Contender) ([]evaluate.Entry, error) {
		return study.Run(ctx, []evaluate.Case{{Scenario: s, Contenders: list}})
	}
	entries, err := run(append(slices.Clone(j.policies), j.report.Rule)...)
	if err != nil {
		return nil, err
	}
	n := len(j.policies)
	c := &report.GeneralCase{Policies: entries[:n:n], Rule: entries[n]}
	field := &field{calibrator: evaluate.Calibrator{Settings: j.settings, Budget: evaluate.FullBudget()}}
	own, err := field.known(ctx, s, peers())
	if err != nil {
		return nil, err
	}
	if own != nil {
		if entries, err = run(*own); err != nil {
			return nil, err
		}
		c.Own = &entries[0]
	}
	if j.report.Oracle > 0 {
		study.Seeds = study.Seeds[:j.report.Oracle]
		if entries, err = run(evaluate.Plan(ctx, evaluate.PlanEffort)); err != nil {
			return nil, err
		}
		c.Oracle = &entries[0]
	}
	return c, nil
}
