package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"farmhand/internal/atomicfile"
	"farmhand/sim/workload"
	"farmhand/train"
)

func trainCmd() *cobra.Command {
	var o trainOptions
	cmd := &cobra.Command{
		Use: "train", Short: "Learn a policy for a scenario in the simulator", Args: exactly(),
		Long: `Learn a policy for a scenario in the simulator, and write it to a file that farmhand
eval takes among its policies.

The learner plays simulated farms. After each round what it has learned scales the farm
for the horizon under each training seed, behind the guard; what lateness costs it from
then on follows from the share on time. The best policy on the way is written.`,
		Example: `  farmhand train --learner dqn --scenario burst-cron-150ms --seed 1 -o p.safetensors
  farmhand eval --scenario burst-cron-150ms --policies p.safetensors,static,staffing`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.learner, "learner", "dqn", "dqn, ppo or reinforce")
	flags.StringVar(&o.scenario, "scenario", "", "a built-in name, trace:NAME, or a .yaml or .csv file")
	flags.StringVar(&o.traces, "traces", "", "folder of traces (default $FARMHAND_TRACES)")
	flags.StringVar(&o.rule, "rule", "staffing", "law that advises the policy")
	flags.Uint64Var(&o.seed, "seed", 1, "of the learner")
	flags.IntVar(&o.steps, "steps", 0, "environment steps (default 400,000)")
	flags.IntVar(&o.round, "round", 0, "steps between two looks at the policy (default 10,000)")
	flags.Float64Var(&o.churn, "churn", 0, "cost of an action: workers that a mean load keeps busy, for an interval (default 0.4)")
	flags.IntVar(&o.clone, "clone", 0, "steps of the rule to imitate first")
	flags.IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "simulations at the same time")
	flags.StringVarP(&o.out, "out", "o", "", "policy file to write")
	return cmd
}

type trainOptions struct {
	learner, scenario, traces, rule, out string
	seed                                 uint64
	steps, round, clone, jobs            int
	churn                                float64
}

func (o *trainOptions) config() (train.Config, error) {
	if o.scenario == "" {
		return train.Config{}, usage("no --scenario: want one to learn in, such as %s", workload.Names()[0])
	}
	if o.out == "" {
		return train.Config{}, usage("no --out: want the name of the policy file")
	}
	if !slices.Contains(train.Learners(), o.learner) {
		return train.Config{}, usage("--learner %q: want one of %v", o.learner, train.Learners())
	}
	s, err := workload.Find(o.scenario, workload.Options{Traces: o.traces})
	if err != nil {
		return train.Config{}, usage("--scenario: %v", err)
	}
	c := train.Default(s)
	c.Learner, c.Rule, c.Seed, c.Clone, c.Jobs = o.learner, o.rule, o.seed, o.clone, o.jobs
	if o.steps != 0 {
		c.Steps = o.steps
	}
	if o.churn != 0 {
		c.Churn = o.churn
	}
	if o.round != 0 {
		c.Round = o.round
	}
	if err := c.Validate(); err != nil {
		return c, usage("%v", err)
	}
	return c, nil
}

func (o *trainOptions) run(cmd *cobra.Command) error {
	c, err := o.config()
	if err != nil {
		return err
	}
	talk, began := cmd.ErrOrStderr(), time.Now()
	c.Done = func(p train.Point) {
		fmt.Fprintf(talk, "%9d steps  %6.2f %% on time  %6.2f workers  %4.0f actions/h  late weight %.3g  %.0f steps/s\n",
			p.Steps, 100*p.OnTime, p.Workers, p.Actions, p.Cases[0].Late, float64(p.Steps)/time.Since(began).Seconds())
	}
	t, err := train.New(c)
	if err != nil {
		return err
	}
	stopped := t.Run(cmd.Context())
	if len(t.Curve()) == 0 {
		return errors.Join(stopped, errors.New("no round was done: no policy is written"))
	}
	file, best, err := t.Policy()
	if err != nil {
		return errors.Join(stopped, err)
	}
	if err := atomicfile.Write(o.out, file, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %.2f %% on time with %.2f workers, %.0f actions/h, on the training seeds (of step %d)\n",
		o.out, 100*best.OnTime, best.Workers, best.Actions, best.Steps)
	return stopped
}
