// Package train makes policy files: it lets a learner play simulated farms, tunes what
// lateness costs it until enough tasks are on time, and keeps the best policy it was
// on the way.
//
// A Trainer works in rounds. In a round the learner plays some thousand steps, each
// in a farm of its own; then what it has learned is written as a policy, and that
// policy, run as a live farm would run it, guard and all, scales the farm for an hour
// under each of the training seeds. The outcome moves the weight on lateness:
//
//	ln w ← ln w + η·clip((late share)/(allowed share) − 1, ±1)
//
// the multiplier of a constraint (dual ascent; Tessler et al., arXiv 1805.11074),
// moved by what the policy does without exploring. Evaluation seeds are never seen.
package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"farmhand/env"
	"farmhand/env/farmenv"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/policy/learned"
	"farmhand/rl"
	"farmhand/sim/workload"
)

// Config of a Trainer.
type Config struct {
	Scenario *workload.Scenario
	Rule     string  // specification of the rule that advises
	Learner  string  // one of Learners
	Steps    int     // environment steps in all
	Round    int     // steps between two looks at the policy
	Envs     int     // farms that are played at once
	Episode  float64 // seconds of a farm
	Seed     uint64
	Seeds    []uint64 // of the work that a policy is looked at with
	Final    []uint64 // of the work that decides among the best
	Margin   float64  // by how much of the allowed lateness a policy stays below it
	Dual     float64  // η
	Late     float64  // weight on lateness to begin with
	Churn    float64  // cost of an action
	Actions  float64  // an hour that the policy should need at most
	Clone    int      // steps of the rule that are imitated first; 0: none
	Jobs     int      // farms that are simulated at once for a look

	// Adjust changes settings of the learner: a pointer to its configuration.
	Adjust func(settings any)
	// Log is told how the learner does, with the names of Stable-Baselines3; may be nil.
	Log rl.Log
	// Round done; may be nil.
	Done func(Point)
}

// Default is the configuration for a scenario.
func Default(s *workload.Scenario) Config {
	return Config{Scenario: s, Rule: "staffing", Learner: "dqn", Steps: 400_000, Round: 10_000, Envs: 8, Episode: min(1800, s.Horizon), Seed: 1,
		Seeds: []uint64{1, 2, 3, 4}, Final: []uint64{1, 2, 3, 4, 5, 6, 7, 8}, Margin: 0.15, Dual: 0.2, Late: 0.5, Churn: 0.4, Actions: 300, Jobs: 2}
}

// Validate names what cannot be, and what would do.
func (c *Config) Validate() error {
	if c.Scenario == nil {
		return errors.New("train: no Scenario: want one to learn in")
	}
	if !(c.Scenario.Farm.Target > 0 && c.Scenario.Farm.Target < 1) {
		return fmt.Errorf("train: the target of %s is %g: want a share between 0 and 1", c.Scenario.Name, c.Scenario.Farm.Target)
	}
	if _, err := policy.New(c.Rule); err != nil {
		return fmt.Errorf("train: Rule: %w", err)
	}
	for _, n := range []struct {
		name     string
		is       float64
		min, max float64
	}{
		{"Steps", float64(c.Steps), 1, 1e9}, {"Round", float64(c.Round), 1, 1e8}, {"Envs", float64(c.Envs), 1, 256}, {"Episode", c.Episode, 2 * c.Scenario.Farm.Interval, 1e6},
		{"Seeds", float64(len(c.Seeds)), 1, 100}, {"Final", float64(len(c.Final)), 1, 100}, {"Margin", c.Margin, 0, 0.9}, {"Dual", c.Dual, 0, 10},
		{"Late", c.Late, minLate, maxLate}, {"Churn", c.Churn, 0, 100}, {"Actions", c.Actions, 1, 1e6}, {"Clone", float64(c.Clone), 0, 1e7}, {"Jobs", float64(c.Jobs), 1, 1024},
	} {
		if !(n.is >= n.min && n.is <= n.max) {
			return fmt.Errorf("train: %s is %g: want %g to %g", n.name, n.is, n.min, n.max)
		}
	}
	return nil
}

// Bounds of the weight on lateness.
const (
	minLate = 1e-3
	maxLate = 1e3
)

// Trainer learns a policy. It belongs to one goroutine.
type Trainer struct {
	cfg     Config
	learner learner
	config  []byte // settings of the learner
	farms   []*farmenv.Farm
	envs    *env.Vector
	trials  *trials
	late    float64
	curve   []Point
	best    []Point // candidates, the best first, with their files
}

// Point is what the policy was after a round.
type Point struct {
	Steps   int
	OnTime  float64 // share of tasks, over all seeds
	Workers float64 // mean
	Actions float64 // per hour
	Late    float64 // weight on lateness in the round
	Return  float64 // mean return of an episode while learning
	file    []byte
}

// New makes a Trainer that has learned nothing yet.
func New(cfg Config) (*Trainer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	rule, err := policy.New(cfg.Rule)
	if err != nil {
		return nil, err
	}
	t := &Trainer{cfg: cfg, late: cfg.Late, trials: newTrials(cfg.Scenario, cfg.Jobs)}
	// While learning, the guard does not count actions: how many are left is nothing
	// that the learner sees, and what they cost is in its reward.
	play := func() (*farmenv.Farm, error) {
		return farmenv.NewFarm("Farm-v0", farmenv.FarmConfig{Scenario: func(uint64) *workload.Scenario { return cfg.Scenario }, Rule: rule,
			Guard: &guard.Settings{Learned: true, ActionsPerHour: 3600, Burst: 1000}, Horizon: cfg.Episode})
	}
	list := make([]env.Env, cfg.Envs)
	for i := range list {
		f, err := play()
		if err != nil {
			return nil, err
		}
		list[i], t.farms = f, append(t.farms, f)
	}
	if t.envs, err = env.NewVector(cfg.Seed, env.Options{farmenv.OptionAction: cfg.Churn}, list...); err != nil {
		return nil, err
	}
	if t.learner, t.config, err = newLearner(cfg, t.envs.Spec()); err != nil {
		return nil, err
	}
	t.weigh()
	return t, nil
}

// weigh lets the farms count lateness as it weighs now.
func (t *Trainer) weigh() {
	for _, f := range t.farms {
		f.WeighLate(t.late)
	}
}

// Run learns until all steps are done, or ctx is. After each round the Trainer can be
// saved.
func (t *Trainer) Run(ctx context.Context) error {
	if err := t.imitate(ctx); err != nil {
		return err
	}
	for t.learner.Steps() < t.cfg.Steps {
		if err := t.round(ctx); err != nil {
			return err
		}
	}
	return nil
}

// imitate begins with what the rule would do.
func (t *Trainer) imitate(ctx context.Context) error {
	if t.cfg.Clone == 0 || t.learner.Steps() > 0 {
		return nil
	}
	c := rl.DefaultClone()
	c.Steps = t.cfg.Clone
	var list []env.Env
	for _, f := range t.farms {
		g, err := f.Another()
		if err != nil {
			return err
		}
		g.WeighLate(t.late)
		list = append(list, g)
	}
	envs, err := env.NewVector(t.cfg.Seed+1<<32, env.Options{farmenv.OptionAction: t.cfg.Churn}, list...)
	if err != nil {
		return err
	}
	return t.learner.Clone(ctx, envs, func(_ []float64, mask []bool) int {
		if mask[learned.Rule] {
			return learned.Rule
		}
		return learned.Hold
	}, c)
}

// round plays, looks, and weighs.
func (t *Trainer) round(ctx context.Context) error {
	until := min(t.cfg.Steps, t.learner.Steps()+t.cfg.Round)
	if err := t.learner.Learn(ctx, t.envs, until); err != nil {
		return err
	}
	file, err := t.write()
	if err != nil {
		return err
	}
	p, err := t.trials.play(ctx, file, t.cfg.Seeds)
	if err != nil {
		return err
	}
	p.Steps, p.Late, p.file = t.learner.Steps(), t.late, file
	t.curve = append(t.curve, p)
	t.keep(p)
	allowed := 1 - t.aim()
	step := min(max((1-p.OnTime)/allowed-1, -1), 1)
	t.late = min(max(t.late*math.Exp(t.cfg.Dual*step), minLate), maxLate)
	t.weigh()
	if t.cfg.Done != nil {
		t.cfg.Done(p)
	}
	return nil
}

// aim is the share on time that a policy should have: a little more than the target, as
// it will serve other work than it was chosen with.
func (t *Trainer) aim() float64 {
	target := t.cfg.Scenario.Farm.Target
	return target + t.cfg.Margin*(1-target)
}

// Curve is what the policy was after each round.
func (t *Trainer) Curve() []Point { return t.curve }
