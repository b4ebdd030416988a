package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"farmhand/evaluate"
	"farmhand/evaluate/report"
	"farmhand/internal/atomicfile"
	"farmhand/policy/learned"
	"farmhand/sim/workload"
)

func reportLearnedCmd() *cobra.Command {
	var f refereeFlags
	var o judgeOptions
	cmd := &cobra.Command{
		Use: "learned FILE...", Short: "Judge policy files beside the calibrated peers, and write docs/RESULTS-learned.md",
		Long: `Judge what farmhand train wrote: each policy serves the work of twenty seeds that
neither it nor the laws have seen, beside the calibrated peer of its scenario, timer,
and the oracles. Of the policies for one scenario, which were learned with different
seeds, the median and the worst are named. The peers must have been calibrated
(farmhand report peers, or calibrate). What was computed is kept, as by report peers.`,
		Example: "  farmhand report learned p-1.safetensors p-2.safetensors p-3.safetensors",
		RunE:    func(cmd *cobra.Command, files []string) error { return runReportLearned(cmd, &f, &o, files) },
	}
	f.add(cmd)
	f.addScenarios(cmd)
	o.add(cmd, filepath.Join("docs", "RESULTS-learned.md"))
	return cmd
}

// judgeOptions are those of the reports that judge policy files.
type judgeOptions struct {
	out      string
	seeds    int
	noOracle bool
	record   bool
}

func (o *judgeOptions) add(cmd *cobra.Command, out string) {
	flags := cmd.Flags()
	flags.StringVar(&o.out, "out", out, "the document")
	flags.IntVar(&o.seeds, "seeds", len(evaluate.EvaluationSeeds()), "seeds to judge on")
	flags.BoolVar(&o.noOracle, "no-oracle", false, "leave out the plan oracle, which takes half a minute a seed")
	flags.BoolVar(&o.record, "record", false, "write the rows of a policy and of whom it is compared with into its file too")
}

func (o *judgeOptions) check(files []string) error {
	if len(files) == 0 {
		return usage("want the policy files that farmhand train wrote")
	}
	if o.seeds < 1 || o.seeds > len(evaluate.EvaluationSeeds()) {
		return usage("--seeds %d: want 1 to %d", o.seeds, len(evaluate.EvaluationSeeds()))
	}
	return nil
}

// judged are the policy files of a scenario.
type judged struct {
	scenario *workload.Scenario
	policies []evaluate.Contender
	hidden   []evaluate.Contender // ablations: learned without some features
	notes    []string             // a line for each
}

func runReportLearned(cmd *cobra.Command, f *refereeFlags, o *judgeOptions, files []string) error {
	if err := o.check(files); err != nil {
		return err
	}
	groups, err := f.judged(files)
	if err != nil {
		return err
	}
	if err := checkFiles("--out", o.out); err != nil {
		return err
	}
	settings, shut, err := f.open()
	if err != nil {
		return err
	}
	defer shut() //nolint:errcheck // every line is written when it is put
	d := &report.Learned{Command: "farmhand report learned FILE...", Judging: evaluate.EvaluationSeeds()[:o.seeds], Oracle: min(oracleSeeds, o.seeds)}
	if len(f.scenarios) > 0 {
		d.Command += " --scenario " + strings.Join(f.scenarios, ",")
	}
	d.Machine, d.Commit = whereAndWhat(cmd.Context())
	for i, g := range groups {
		ran, bar := ticker(cmd.ErrOrStderr(), fmt.Sprintf("%s (%d of %d), runs", g.scenario.Name, i+1, len(groups)), 0)
		c, err := g.examine(cmd.Context(), settings, d.Judging, ran, o.noOracle)
		bar.finish()
		if err != nil {
			return err
		}
		d.Cases = append(d.Cases, *c)
		var b bytes.Buffer
		if err := d.Write(&b); err != nil {
			return err
		}
		if err := atomicfile.Write(o.out, b.Bytes(), 0o644); err != nil { // as far as it is
			return err
		}
	}
	if o.record {
		var found []standing
		for i := range d.Cases {
			c := &d.Cases[i]
			found = append(found, standing{slices.Concat(c.Policies, c.Others), c.Peer})
		}
		if err := recordRows(files, found); err != nil {
			return err
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d policies on %d scenarios\n", o.out, len(files), len(groups))
	return nil
}

// judged reads policy files: each is judged on the scenarios asked for, or, without any,
// on those that it was learned for.
func (f *refereeFlags) judged(files []string) (groups []*judged, err error) {
	of := map[string]*judged{}
	for _, file := range files {
		c, p, err := judgedFile(file)
		if err != nil {
			return nil, err
		}
		names := f.scenarios
		if len(names) == 0 {
			names = strings.Split(p.Scenario, ",")
		}
		for _, name := range names {
			if of[name] == nil {
				s, err := f.own.find(name)
				if err != nil {
					return nil, usage("%s was learned for %q: %v; name another with --scenario", file, p.Scenario, err)
				}
				of[name] = &judged{scenario: s}
				groups = append(groups, of[name])
			}
			of[name].notes = append(of[name].notes, howLearned(c.Name, p))
			if len(p.Hidden) > 0 {
				of[name].hidden = append(of[name].hidden, c)
			} else {
				of[name].policies = append(of[name].policies, c)
			}
		}
	}
	for _, g := range groups {
		if len(g.policies) == 0 {
			return nil, usage("%s: all of its policies were learned with features hidden: want one that sees all", g.scenario.Name)
		}
	}
	return groups, nil
}

// judgedFile reads a policy file. Rows name it by how it was learned, so that what was
// computed is found again under another name of the file.
func judgedFile(file string) (evaluate.Contender, *learned.Policy, error) {
	p, err := learned.Read(file)
	if err != nil {
		return evaluate.Contender{}, nil, usage("%v", err)
	}
	c, err := policyFile(file)
	if err != nil {
		return c, nil, err
	}
	c.Name = fmt.Sprintf("%s, %s", p.Learner, p.Seeds())
	if len(p.Hidden) > 0 {
		c.Name += ", " + strings.Join(p.Hidden, " and ") + " hidden"
	}
	return c, p, nil
}

// howLearned is a line about a policy, for the notes of a report.
func howLearned(name string, p *learned.Policy) string {
	return fmt.Sprintf("%s: `%s`, %d steps of %s on %s, advised by `%s`", name, p.Name(), p.Steps, p.Environment, p.Scenario, p.File.Rule)
}

// examine runs the policies of a scenario, and what they are compared with.
func (g *judged) examine(ctx context.Context, settings evaluate.Settings, seeds []uint64, ran func(), noOracle bool) (*report.LearnedCase, error) {
	field := &field{calibrator: evaluate.Calibrator{Settings: settings, Budget: evaluate.FullBudget()}}
	if peer, _, err := field.calibrated(ctx, g.scenario, peers()); err != nil {
		return nil, err
	} else if peer == nil {
		return nil, usage("no law is calibrated for %s, to compare with: want farmhand calibrate --law all first", g.scenario.Name)
	}
	rival, err := field.rival(ctx, g.scenario, "best")
	if err != nil {
		return nil, err
	}
	peer, err := field.known(ctx, g.scenario, []string{rival.law})
	if err != nil {
		return nil, err
	}
	others := slices.Clone(g.hidden)
	for _, name := range []string{"timer", "regime-oracle"} {
		c, err := field.known(ctx, g.scenario, []string{name})
		if err != nil {
			return nil, err
		}
		if c != nil {
			others = append(others, *c)
		}
	}
	settings.Ran = ran
	study := evaluate.Study{Settings: settings, Seeds: seeds}
	run := func(list ...evaluate.Contender) ([]evaluate.Entry, error) {
		return study.Run(ctx, []evaluate.Case{{Scenario: g.scenario, Contenders: list}})
	}
	c := &report.LearnedCase{Notes: g.notes}
	if c.Policies, err = run(g.policies...); err != nil {
		return nil, err
	}
	free := c.Median().Contender
	free.Name, free.Spec, free.Unguarded = free.Name+", unguarded", free.Spec+", unguarded", true
	if c.Others, err = run(append(others, free)...); err != nil {
		return nil, err
	}
	entries, err := run(*peer)
	if err != nil {
		return nil, err
	}
	c.Peer = entries[0]
	if err := rival.run(ctx, study, g.scenario); err != nil {
		return nil, err
	}
	c.Front = rival.front
	if !noOracle {
		study.Seeds = seeds[:min(oracleSeeds, len(seeds))]
		bound, err := run(evaluate.Plan(ctx, evaluate.PlanEffort))
		if err != nil {
			return nil, err
		}
		c.Others = append(c.Others, bound...)
	}
	return c, nil
}

// standing is what policies came to on a scenario, beside their peer.
type standing struct {
	policies []evaluate.Entry
	peer     evaluate.Entry
}

// recordRows writes into each policy file what its policy and the peer came to on every
// scenario.
func recordRows(files []string, found []standing) error {
	for _, file := range files {
		p, err := learned.Read(file)
		if err != nil {
			return err
		}
		var rows []evaluate.Row
		for _, c := range found {
			for _, e := range c.policies {
				if e.Contender.Spec == p.Name() {
					rows = append(rows, e.Row(), c.peer.Row())
				}
			}
		}
		if p.Evaluation, err = json.Marshal(rows); err != nil {
			return err
		}
		var b bytes.Buffer
		if err := p.File.Write(&b); err != nil {
			return err
		}
		if err := atomicfile.Write(file, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
