package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"farmhand/evaluate"
	"farmhand/evaluate/report"
	"farmhand/internal/atomicfile"
	"farmhand/sim/workload"
	"farmhand/train"
)

func fileExt(name string) string { return filepath.Ext(name) }

// draw the learning curves, with lines of what does not learn.
func (o *trainOptions) draw(ctx context.Context, runs []*training, talk io.Writer) error {
	c := runs[0].cfg
	var learners []report.Progress
	for _, r := range runs {
		l := report.Progress{Name: fmt.Sprintf("%s, seed %d", c.Learner, r.cfg.Seed)}
		for _, p := range r.curve {
			l.Points = append(l.Points, report.Looked{Steps: float64(p.Steps), OnTime: p.OnTime, Workers: p.Workers})
		}
		if len(l.Points) > 0 {
			learners = append(learners, l)
		}
	}
	if len(learners) == 0 {
		return nil
	}
	var levels []report.Level
	if !c.Blend && !c.Randomise && !c.Rests { // else a policy is looked at with other work
		var err error
		if levels, err = o.levels(ctx, &c); err != nil {
			return err
		}
	}
	var names []string
	target := 0.0
	for _, s := range c.Scenarios {
		names = append(names, s.Name)
		target += s.Farm.Target / float64(len(c.Scenarios))
	}
	var b bytes.Buffer
	if err := report.Learning(&b, strings.Join(names, ", "), learners, levels, target); err != nil {
		return err
	}
	path := o.curve
	if path == "" {
		path = strings.TrimSuffix(o.out, fileExt(o.out)) + ".svg"
	}
	if err := atomicfile.Write(path, b.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(talk, "%s: the learning curve\n", path)
	return nil
}

// levels are what the rule comes to on the work that the policy was looked at with, the
// calibrated peer, and the oracle that knows the load; the last two where all scenarios
// were calibrated for.
func (o *trainOptions) levels(ctx context.Context, c *train.Config) ([]report.Level, error) {
	f := refereeFlags{jobs: o.jobs, cache: o.cache}
	settings, shut, err := f.open()
	if err != nil {
		return nil, err
	}
	defer shut() //nolint:errcheck // it is only read
	field := &field{calibrator: evaluate.Calibrator{Settings: settings, Budget: evaluate.FullBudget()}}
	rule, err := evaluate.Law(c.Rule, evaluate.Given)
	if err != nil {
		return nil, err
	}
	list := []struct {
		name string
		of   func(*workload.Scenario) (*evaluate.Contender, error)
	}{
		{"rule: " + rule.Spec, func(*workload.Scenario) (*evaluate.Contender, error) { return &rule, nil }},
		{"calibrated peer", func(s *workload.Scenario) (*evaluate.Contender, error) { return field.known(ctx, s, peers()) }},
		{"regime-oracle", func(s *workload.Scenario) (*evaluate.Contender, error) {
			return field.known(ctx, s, []string{"regime-oracle"})
		}},
	}
	settings.Store = nil // runs take seconds
	study := evaluate.Study{Settings: settings, Seeds: c.Seeds}
	var levels []report.Level
next:
	for _, l := range list {
		var cases []evaluate.Case
		for _, s := range c.Scenarios {
			contender, err := l.of(s)
			if err != nil {
				return nil, err
			}
			if contender == nil {
				continue next
			}
			cases = append(cases, evaluate.Case{Scenario: s, Contenders: []evaluate.Contender{*contender}})
		}
		entries, err := study.Run(ctx, cases)
		if err != nil {
			return nil, err
		}
		level := report.Level{Name: l.name}
		for i := range entries {
			level.OnTime += entries[i].Mean(evaluate.OnTime) / float64(len(entries))
			level.Workers += entries[i].Mean(evaluate.MeanWorkers) / float64(len(entries))
		}
		if len(c.Scenarios) == 1 && l.name == "calibrated peer" {
			level.Name += ": " + cases[0].Contenders[0].Name
		}
		levels = append(levels, level)
	}
	return levels, nil
}

// known is the best of the laws that were calibrated for a scenario; nil where none was.
func (f *field) known(ctx context.Context, s *workload.Scenario, names []string) (*evaluate.Contender, error) {
	best, family, err := f.calibrated(ctx, s, names)
	if best == nil || err != nil {
		return nil, err
	}
	c, err := best.Contender(family, best.Best)
	return &c, err
}
