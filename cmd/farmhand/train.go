package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"farmhand/policies"
	"farmhand/policy/learned"
	"farmhand/sim/workload"
	"farmhand/train"
	"farmhand/trainer"
)

func trainCmd() *cobra.Command {
	var o trainOptions
	cmd := &cobra.Command{
		Use: "train", Short: "Learn a policy for a scenario in the simulator", Args: exactly(),
		Long: `Learn a policy for one or more scenarios in the simulator, and write it to a file that
farmhand eval takes among its policies.

The learner plays simulated farms. After each round what it has learned scales the farm
for the horizon under some training seeds, behind the guard; what lateness costs it from
then on follows from the share on time. The best policy on the way is written, and
beside it a drawing of how it was learned.

With --general one policy is learned for farms of many kinds: it begins with what a rule
does that was calibrated on all of them, and may not be later than that; eight learn apart, and
the policy is the mean of what the better four would do. With --from a policy of one farm begins as
another does, and learns for a quarter of the steps.

With --seeds several learners learn, a core each, and a row tells what each came to.
With --checkpoint a training that was stopped, or killed, goes on where it was; its
result is the same, bit for bit.`,
		Example: `  farmhand train --learner dqn --scenario burst-cron-150ms --seed 1 -o p.safetensors
  farmhand train --scenario burst-cron-150ms --seeds 1-5 --checkpoint c.ckpt -o p.safetensors
  farmhand train --general --traces traces -o general.safetensors
  farmhand train --from general --scenario bursty -o bursty.safetensors
  farmhand train --scenario mine.csv --deadline 2s --service 400ms -o p.safetensors
  farmhand eval --scenario burst-cron-150ms --policies p.safetensors,static,staffing`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.own.add(cmd)
	flags := cmd.Flags()
	o.published.add(flags)
	flags.StringVar(&o.learner, "learner", "dqn", strings.Join(train.Learners(), ", "))
	flags.StringSliceVar(&o.scenarios, "scenario", nil, "scenarios, by comma: built-in names, trace:NAME, .yaml or .csv files; training: those that general policies learn on")
	flags.BoolVar(&o.general, "general", false, "one policy for farms of many kinds, learned on the training scenarios")
	flags.StringVar(&o.from, "from", "", "policy file to begin with, or general: the policy for any farm that is shipped (with --async, only that)")
	flags.StringVar(&o.peer, "peer", "", "law that the policy must not be later than, and that is the unit of cost (default: only the target counts; with --general the rule)")
	flags.BoolVar(&o.randomise, "randomise", false, "most episodes play a farm with other service times, load, deadline, start-ups and interval: one policy for farms of any speed and size")
	flags.BoolVar(&o.rests, "rests", false, "some episodes begin with a silence, so that the first burst after a rest is learned too")
	flags.StringVar(&o.rule, "rule", train.DefaultRule, "law that advises the policy")
	flags.StringVar(&o.fallback, "fallback", train.DefaultFallback, "law that takes the policy's place on a farm when it is handed back; best one calibrated for the scenario")
	flags.StringVar(&o.seeds, "seeds", "", "of learners, as 1,2,3 or 1-5: each has a policy file; of --general all together have one (default "+generalSeeds+")")
	flags.Uint64Var(&o.seed, "seed", 1, "of the one learner")
	flags.IntVar(&o.steps, "steps", 0, "environment steps (default 500,000)")
	flags.IntVar(&o.round, "round", 0, "steps between two looks at the policy (default 10,000; 131,072 with --general)")
	flags.Float64Var(&o.churn, "churn", 0, "cost of an action: workers that a mean load keeps busy, for an interval (default 1)")
	flags.BoolVar(&o.hideAge, "hide-age", false, "let the policy not see how long the load has been as it is: an ablation")
	flags.IntVar(&o.patience, "patience", 0, "rounds without a better policy after which it has learned enough (default: all steps are done)")
	flags.Float64Var(&o.margin, "margin", 0, "without --peer: by how much of the allowed lateness the policy stays below it, as it will serve other work (default 0.4)")
	flags.IntVar(&o.clone, "clone", 0, "steps of the rule to imitate first")
	flags.IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "learners and simulations at the same time")
	flags.StringVar(&o.checkpoint, "checkpoint", "", "file in which what was learned is kept on the way; where it exists, go on from it")
	flags.StringVar(&o.resume, "resume", "", "the same, but the file must exist")
	flags.DurationVar(&o.every, "checkpoint-every", 30*time.Second, "how often it is kept")
	flags.StringVar(&o.curve, "curve", "", "drawing of the learning curve (default: beside the policy; none: no drawing)")
	flags.StringVar(&o.cache, "cache", "", "file with the calibrated laws of the drawing (default: as farmhand eval)")
	flags.StringVarP(&o.out, "out", "o", "", "policy file to write")
	return cmd
}

type trainOptions struct {
	published                           paperOptions
	own                                 ownTrace
	scenarios                           []string
	learner, rule, fallback, out        string
	peer, from                          string
	general, rests                      bool
	seeds                               string
	seed                                uint64
	hideAge                             bool
	randomise                           bool
	steps, round, clone, jobs, patience int
	churn, margin                       float64
	checkpoint, resume                  string
	every                               time.Duration
	curve, cache                        string
}

// config is what all seeds share.
func (o *trainOptions) config(cmd *cobra.Command) (train.Config, error) {
	if o.out == "" {
		return train.Config{}, usage("no --out: want the name of the policy file")
	}
	if !slices.Contains(train.Learners(), o.learner) {
		return train.Config{}, usage("--learner %q: want one of %v", o.learner, train.Learners())
	}
	if o.jobs < 1 {
		return train.Config{}, usage("--jobs %d: want 1 or more", o.jobs)
	}
	if o.every < 0 {
		return train.Config{}, usage("--checkpoint-every %v: want 0 or more", o.every)
	}
	if o.resume != "" {
		if o.checkpoint != "" && o.checkpoint != o.resume {
			return train.Config{}, usage("--checkpoint and --resume name two files: want one of them")
		}
		o.checkpoint = o.resume
	}
	if o.seeds != "" && cmd.Flags().Changed("seed") {
		return train.Config{}, usage("--seed and --seeds: want one of them")
	}
	if o.general && cmd.Flags().Changed("learner") && o.learner != "ppo" {
		return train.Config{}, usage("--learner %s: a general policy is learned by ppo", o.learner)
	}
	if o.general && o.from != "" {
		return train.Config{}, usage("--general and --from: want one of them, as a general policy begins with its rule")
	}
	if o.general && len(o.scenarios) == 0 {
		o.scenarios = []string{"training"}
	}
	scenarios, err := o.find()
	if err != nil {
		return train.Config{}, err
	}
	c, err := o.preset(scenarios)
	if err != nil {
		return c, err
	}
	c.Jobs, c.Randomise, c.Rests, c.Patience = o.jobs, c.Randomise || o.randomise, o.rests, o.patience
	if c.Peer != "" || o.peer != "" {
		c.Seeds = c.Final // with which the peer is measured
	}
	if o.hideAge {
		c.Hide = ages()
	}
	for flag, set := range map[string]func(){
		"learner":  func() { c.Learner = o.learner },
		"rule":     func() { c.Rule = o.rule },
		"fallback": func() { c.Fallback = o.fallback },
		"peer":     func() { c.Peer = o.peer },
		"clone":    func() { c.Clone = o.clone },
		"steps":    func() { c.SetSteps(o.steps) },
		"margin":   func() { c.Margin = o.margin },
		"churn":    func() { c.Churn = o.churn },
		"round":    func() { c.Round = o.round },
	} {
		if cmd.Flags().Changed(flag) {
			set()
		}
	}
	if err := c.Validate(); err != nil {
		return c, usage("%v", err)
	}
	return c, nil
}

// preset is the configuration that flags change.
func (o *trainOptions) preset(scenarios []*workload.Scenario) (train.Config, error) {
	switch {
	case o.general:
		return train.General(scenarios...), nil
	case o.from == trainer.General:
		return train.Tuned(policies.General, scenarios...), nil
	case o.from != "":
		file, err := os.ReadFile(o.from)
		if err != nil {
			return train.Config{}, usage("--from: %v", err)
		}
		return train.Tuned(file, scenarios...), nil
	}
	return train.Default(scenarios...), nil
}

// find the scenarios.
func (o *trainOptions) find() (list []*workload.Scenario, err error) {
	var names []string
	for _, name := range o.scenarios {
		if name == "training" {
			names = append(names, workload.Training...)
		} else {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, usage("no --scenario: want one to learn in, such as %s", workload.Names()[0])
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, usage("--scenario: %s stands twice", name)
		}
		s, err := o.own.find(name)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

const mostLearners = 100

// list reads --seeds.
func (o *trainOptions) list() (seeds []uint64, err error) {
	if o.seeds == "" {
		return []uint64{o.seed}, nil
	}
	for part := range strings.SplitSeq(o.seeds, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.ParseUint(from, 10, 64)
		b := a
		if err == nil && ranged {
			b, err = strconv.ParseUint(to, 10, 64)
		}
		if err != nil || b < a || b-a >= mostLearners || b == math.MaxUint64 {
			return nil, usage("--seeds %q: want numbers as 1,2,3 or 1-5, at most %d", o.seeds, mostLearners)
		}
		for ; a <= b; a++ {
			if !slices.Contains(seeds, a) {
				seeds = append(seeds, a)
			}
		}
	}
	if len(seeds) > mostLearners {
		return nil, usage("--seeds: %d learners: want at most %d", len(seeds), mostLearners)
	}
	return seeds, nil
}

func (o *trainOptions) run(cmd *cobra.Command) error {
	if published, err := o.published.chosen(cmd.Flags()); err != nil {
		return err
	} else if published {
		return o.runPaper(cmd)
	}
	c, err := o.config(cmd)
	if err != nil {
		return err
	}
	if o.general && !cmd.Flags().Changed("seed") && o.seeds == "" {
		o.seeds = generalSeeds
	}
	seeds, err := o.list()
	if err != nil {
		return err
	}
	if o.general && len(seeds) > mostGeneral {
		return usage("--seeds: %d learners: want at most %d with --general, as one net holds half of them", len(seeds), mostGeneral)
	}
	runs := make([]*training, len(seeds))
	for i, seed := range seeds {
		r := &training{cfg: c, out: o.out, checkpoint: o.checkpoint, every: o.every, talk: cmd.ErrOrStderr()}
		r.cfg.Seed = seed
		if len(seeds) > 1 {
			r.name = fmt.Sprintf("seed %d: ", seed)
			r.out, r.checkpoint = ofSeed(o.out, seed), ofSeed(o.checkpoint, seed)
			r.cfg.Jobs = max(1, o.jobs/len(seeds))
		}
		if o.general {
			r.out = ""
		}
		if o.resume != "" {
			if _, err := os.Stat(r.checkpoint); err != nil {
				return usage("--resume: %v", err)
			}
		}
		if err := errors.Join(checkFiles("--out", cmp.Or(r.out, o.out)), checkFiles("--checkpoint", r.checkpoint)); err != nil {
			return err
		}
		runs[i] = r
	}
	failed := trainAll(cmd.Context(), runs, o.jobs)
	if !o.general {
		summary(cmd.OutOrStdout(), runs, c.Actions)
	} else if failed == nil {
		failed = o.merge(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), c, runs)
	}
	if o.curve != "none" {
		if err := o.draw(cmd.Context(), runs, cmd.ErrOrStderr()); err != nil && failed == nil {
			return err
		}
	}
	return failed
}

// ofSeed is the file of a learner among several: p.safetensors is p-3.safetensors.
func ofSeed(name string, seed uint64) string {
	if name == "" {
		return ""
	}
	at := len(name) - len(fileExt(name))
	return fmt.Sprintf("%s-%d%s", name[:at], seed, name[at:])
}

// ages are the features that tell how long the load has been as it is.
func ages() (list []string) {
	names, _, _ := learned.FeatureNames()
	for _, name := range names {
		if strings.HasPrefix(name, "level_age") {
			list = append(list, name)
		}
	}
	return list
}
