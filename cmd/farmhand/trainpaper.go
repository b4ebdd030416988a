package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"farmhand/env/farmenv"
	"farmhand/internal/atomicfile"
	"farmhand/train/paper"
)

// paperOptions are what train takes for FarmPaper-v0 beside its own flags.
type paperOptions struct {
	env              string
	jumps, maskClock bool
	target           float64
}

func (o *paperOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.env, "env", farmEnv, "environment: "+farmEnv+", or "+farmenv.PaperID+" with its scenarios paper-as-run and paper-fixed")
	flags.BoolVar(&o.jumps, "jumps", false, farmenv.PaperID+": actions of 2, 4 and 8 replicas too")
	flags.BoolVar(&o.maskClock, "mask-clock", false, farmenv.PaperID+": nothing in the observation tells the time")
	flags.Float64Var(&o.target, "target", 0, farmenv.PaperID+": share of tasks on time to learn for (default 0.99)")
}

// farmEnv is the environment of a farm as it is.
const farmEnv = "Farm-v0"

// Flags of one environment alone.
var (
	farmFlags = []string{"general", "from", "peer", "rests", "rule", "fallback", "randomise", "round", "churn", "hide-age", "patience", "margin", "clone", "checkpoint", "resume", "checkpoint-every",
		"curve", "cache", "traces", "deadline", "service"}
	paperFlags = []string{"jumps", "mask-clock", "target"}
)

// chosen reports whether it is the published environment that is learned in. A flag of
// the other environment is an error.
func (o *paperOptions) chosen(flags *pflag.FlagSet) (bool, error) {
	if o.env != farmEnv && o.env != farmenv.PaperID {
		return false, usage("--env %q: want %s or %s", o.env, farmEnv, farmenv.PaperID)
	}
	published := o.env == farmenv.PaperID
	others, other := paperFlags, farmenv.PaperID
	if published {
		others, other = farmFlags, farmEnv
	}
	for _, name := range others {
		if flags.Changed(name) {
			return false, usage("--%s is for --env %s: %s does not know it", name, other, o.env)
		}
	}
	return published, nil
}

// runPaper learns in the published environment, a policy for each seed.
func (o *trainOptions) runPaper(cmd *cobra.Command) error {
	seeds, err := o.list()
	if err != nil {
		return err
	}
	c, err := o.paperConfig(cmd.Flags().Changed("steps"))
	if err != nil {
		return err
	}
	if err := checkFiles("--out", o.out); err != nil {
		return err
	}
	for _, seed := range seeds {
		out := o.out
		if len(seeds) > 1 {
			out = ofSeed(o.out, seed)
		}
		c.Seed = seed
		if err := trainPaper(cmd, c, out); err != nil {
			return err
		}
	}
	return nil
}

func (o *trainOptions) paperConfig(steps bool) (paper.Config, error) {
	if o.out == "" {
		return paper.Config{}, usage("no --out: want the name of the policy file")
	}
	if len(o.scenarios) != 1 {
		return paper.Config{}, usage("--scenario names %d scenarios: %s wants one, paper-as-run or paper-fixed, with :shuffled or without", len(o.scenarios), farmenv.PaperID)
	}
	if !slices.Contains(paper.Learners(), o.learner) {
		return paper.Config{}, usage("--learner %q: of %s want one of %v", o.learner, farmenv.PaperID, paper.Learners())
	}
	s, err := paper.Preset(o.learner)
	if err != nil {
		return paper.Config{}, err
	}
	if o.published.target != 0 {
		s.Target = o.published.target
	}
	if steps {
		s.SetSteps(o.steps)
	}
	if err := s.Validate(); err != nil {
		return paper.Config{}, usage("%v", err)
	}
	c := paper.Case{Scenario: o.scenarios[0], Jumps: o.published.jumps, MaskClock: o.published.maskClock}
	if _, err := c.Env(s.Reward); err != nil {
		return paper.Config{}, usage("--scenario: %v", err)
	}
	return paper.Config{Case: c, Learner: o.learner, Settings: s}, nil
}

// trainPaper learns a policy and writes it.
func trainPaper(cmd *cobra.Command, c paper.Config, out string) error {
	talk, began := cmd.ErrOrStderr(), time.Now()
	c.Done = func(steps int, s paper.Score, late float64) {
		fmt.Fprintf(talk, "%9d steps  %6.2f %% on time  %6.2f workers  %5.1f actions  late weight %.3g  %.0f steps/s\n",
			steps, 100*s.OnTime, s.Workers, s.Actions, late, float64(steps)/time.Since(began).Seconds())
	}
	p, err := paper.Train(cmd.Context(), c)
	if err != nil {
		return err
	}
	b, err := p.Bytes()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(out, b, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(talk, "%s: %.2f %% on time with %.2f workers, %.1f actions an episode, on training seeds (of step %d)\n",
		out, 100*p.Training.OnTime, p.Training.Workers, p.Training.Actions, p.Steps)
	return nil
}
