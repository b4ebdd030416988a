// Package train makes policy files: it lets a learner play simulated farms, tunes what
// lateness costs it until enough tasks are on time, and keeps the best policy it was
// on the way.
//
// A Trainer works in rounds. In a round the learner plays some thousand steps, each
// in a farm of its own; then what it has learned is written as a policy, and that
// policy, run as a live farm would run it, guard and all, scales each scenario's farm
// under the training seeds. The outcome moves the weight on lateness:
//
//	ln w ← ln w + η·clip((late share)/(allowed share) − 1, ±1)
//
// the multiplier of a constraint (dual ascent; Tessler et al., arXiv 1805.11074),
// moved by what the policy does without exploring. Each scenario has a weight of its
// own, as each has a target of its own: where the policy is good it must not pay for
// where it is not. Where there is a Config.Peer, the late share is what the policy is
// later than it on the same work. Evaluation seeds are never seen.
//
// One policy for many farms (General) is made of several that learned apart (Merge).
//
// A Trainer can be stopped, saved and loaded between any two pieces of its work; the
// bytes that come out do not depend on where.
package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

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
	Scenarios []*workload.Scenario
	Rule      string  // specification of the rule that advises
	Fallback  string  // of the law that a farm is handed back to; empty: the rule
	Learner   string  // one of Learners
	Steps     int     // environment steps in all
	Round     int     // steps between two looks at the policy
	Envs      int     // farms that are played at once
	Episode   float64 // seconds of a farm
	Seed      uint64
	Seeds     []uint64 // of the work that a policy is looked at with
	Final     []uint64 // of the work that decides among the best
	Margin    float64  // by how much of the allowed lateness a policy stays below it where there is no Peer
	Dual      float64  // η; 0: the weights stay
	Late      float64  // weight on lateness to begin with
	Warmup    int      // steps before it moves: a policy that has learned little is late at any weight
	Churn     float64  // cost of an action
	Actions   float64  // an hour that the policy should need at most
	Clone     int      // steps of the rule that are imitated first; 0: none
	Hide      []string // features that the policy does not see, to find out what they are worth
	Only      []string // actions that it may take; none: all of learned.Actions
	Gamma     float64  // γ: what a reward is worth a step later
	Patience  int      // rounds without a better policy after which learning ends; 0: it does not
	Jobs      int      // farms that are simulated at once for a look
	Record    float64  // seconds of farms in which it is found out what the policy sees

	// Peer is a law that the policy must not be later than, on any scenario, by more than
	// Tolerance, a share of the tasks. It serves the same work in training (farmenv.FarmConfig.Beside),
	// and what it needs is the unit of cost. Empty: only the targets count.
	Peer      string
	Tolerance float64

	// Last takes the policy of the last round as it is, not the best on the way.
	Last bool

	// Blend gives half of the episodes other arrivals, and every other seed of a look
	// (farmenv.Mix.Blended): so one policy learns more than the scenarios there are.
	Blend bool

	// From is a policy file that is imitated first, for Clone steps, in place of the rule, as
	// well as the actions allow: so a general policy is made one of a farm.
	From []byte

	// Randomise makes a farm of its own for most episodes that are not blended, and for every
	// other seed of a look where Blend is off (farmenv.Mix.Varied): so one policy learns to
	// serve farms of any speed and size.
	Randomise bool

	// Rests lets some episodes, and every other seed of a look, begin with a silence
	// (farmenv.Mix.Rests).
	Rests bool

	// Adjust changes settings of the learner: a pointer to its configuration.
	Adjust func(settings any)
	// Log is told how the learner does, with the names of Stable-Baselines3; may be nil.
	Log rl.Log
	// Round done; may be nil.
	Done func(Point)
}

// DefaultRule advises unless another is said. What it sizes is a little too small: the
// learner knows better than a headroom how much more is needed, and when.
const DefaultRule = "staffing:down=0,headroom=0.9"

// DefaultFallback takes the policy's place on a farm unless another is said. What
// advises by default is too small to decide alone.
const DefaultFallback = "staffing"

// Default is the configuration for one or more scenarios.
func Default(scenarios ...*workload.Scenario) Config {
	episode := 1800.0
	for _, s := range scenarios {
		episode = min(episode, s.Horizon)
	}
	c := Config{Scenarios: scenarios, Gamma: 0.98, Rule: DefaultRule, Fallback: DefaultFallback, Learner: "dqn", Steps: 500_000, Round: 10_000, Envs: 8, Episode: episode, Seed: 1,
		Seeds: []uint64{1, 2, 3, 4}, Final: []uint64{1, 2, 3, 4, 5, 6, 7, 8}, Margin: 0.4, Tolerance: 0.003, Dual: 0.2, Late: 0.25, Warmup: 250_000, Churn: 1, Actions: 300, Jobs: 2, Record: 60 * 3600}
	if len(scenarios) > 1 { // a look takes as long as there is work
		c.Seeds, c.Final = c.Seeds[:2], c.Final[:4]
	}
	return c
}

// Validate names what cannot be, and what would do.
func (c *Config) Validate() error {
	if len(c.Scenarios) == 0 {
		return errors.New("train: no Scenarios: want one or more to learn in")
	}
	interval := 0.0
	for _, s := range c.Scenarios {
		if !(s.Farm.Target > 0 && s.Farm.Target < 1) {
			return fmt.Errorf("train: the target of %s is %g: want a share between 0 and 1", s.Name, s.Farm.Target)
		}
		if s.Farm.Deadline == 0 && s.Farm.DeadlineFactor == 0 {
			return fmt.Errorf("train: %s has no deadline: want one, as without it nothing is late and the fewest workers are best", s.Name)
		}
		interval = max(interval, s.Farm.Interval)
	}
	if _, err := policy.New(c.Rule); err != nil {
		return fmt.Errorf("train: Rule: %w", err)
	}
	if _, err := policy.New(cmp.Or(c.Fallback, c.Rule)); err != nil {
		return fmt.Errorf("train: Fallback: %w", err)
	}
	if _, err := policy.New(cmp.Or(c.Peer, c.Rule)); err != nil {
		return fmt.Errorf("train: Peer: %w", err)
	}
	if len(c.From) > 0 {
		if _, err := learned.Load(c.From); err != nil {
			return fmt.Errorf("train: From: %w", err)
		}
		if c.Clone == 0 {
			return errors.New("train: Clone is 0: want some steps in which From is imitated")
		}
	}
	for _, n := range []struct {
		name     string
		is       float64
		min, max float64
	}{
		{"Steps", float64(c.Steps), 1, 1e9}, {"Round", float64(c.Round), 1, 1e8}, {"Envs", float64(c.Envs), 1, 256}, {"Episode", c.Episode, 2 * interval, 1e6},
		{"Seeds", float64(len(c.Seeds)), 1, 100}, {"Final", float64(len(c.Final)), 1, 100}, {"Margin", c.Margin, 0, 0.9}, {"Dual", c.Dual, 0, 10},
		{"Late", c.Late, minLate, maxLate}, {"Warmup", float64(c.Warmup), 0, 1e9}, {"Churn", c.Churn, 0, 100}, {"Actions", c.Actions, 1, 1e6}, {"Clone", float64(c.Clone), 0, 1e7}, {"Patience", float64(c.Patience), 0, 1e6}, {"Jobs", float64(c.Jobs), 1, 1024}, {"Record", c.Record, c.Episode, 1e7},
		{"Gamma", c.Gamma, 0, 1}, {"Tolerance", c.Tolerance, 1e-6, 1},
	} {
		if !(n.is >= n.min && n.is <= n.max) {
			return fmt.Errorf("train: %s is %g: want %g to %g", n.name, n.is, n.min, n.max)
		}
	}
	switch {
	case c.Peer != "" && !slices.Equal(c.Seeds, c.Final):
		return fmt.Errorf("train: Seeds are %v: want those of Final, %v, with which the Peer is measured", c.Seeds, c.Final)
	case c.Last && c.Patience > 0:
		return fmt.Errorf("train: Patience is %d: want 0 where the Last policy is taken", c.Patience)
	}
	return nil
}

// Bounds of the weight on lateness.
const (
	minLate = 1e-3
	maxLate = 1e3
)

// SetSteps changes the number of steps, and with it after how many the weight on
// lateness moves.
func (c *Config) SetSteps(n int) {
	c.Steps, c.Warmup = n, int(float64(c.Warmup)*float64(n)/float64(c.Steps))
}

// Trainer learns a policy. It belongs to one goroutine.
type Trainer struct {
	cfg     Config
	learner learner
	config  []byte // settings of the learner
	farms   []*farmenv.Farm
	envs    *env.Vector
	mix     *farmenv.Mix
	trials  *trials
	teacher *learned.Policy // that is imitated first; nil: the rule

	// All that is saved, beside the learner.
	peer   *Point      // what the peer comes to; nil: not known yet, or there is none
	cloned bool        // the rule, or From, was imitated
	until  int         // steps at which the round ends
	late   []float64   // weights on lateness, by scenario
	curve  []Point     // the policy after each round
	best   []candidate // the best first
	tries  []Point     // of the final selection: see select.go
	finals []Point
}

// candidate is a policy to choose.
type candidate struct {
	Point
	file []byte
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
	t := &Trainer{cfg: cfg, mix: farmenv.NewMix(cfg.Episode, cfg.Scenarios...), until: min(cfg.Steps, cfg.Round)}
	if len(cfg.From) > 0 {
		if t.teacher, err = learned.Load(cfg.From); err != nil {
			return nil, fmt.Errorf("train: From: %w", err)
		}
	}
	t.mix.Vary, t.mix.Anywhere = cfg.Randomise, cfg.Randomise || len(cfg.Scenarios) > 1 || cfg.traces()
	t.mix.Rests, t.mix.Blend = cfg.Rests, cfg.Blend
	t.trials = newTrials(&t.cfg, t.mix)
	for range cfg.Scenarios {
		t.late = append(t.late, cfg.Late)
	}
	var beside policy.Policy
	if cfg.Peer != "" {
		if beside, err = policy.New(cfg.Peer); err != nil {
			return nil, err
		}
	}
	list := make([]env.Env, cfg.Envs)
	for i := range list {
		// While learning, the guard does not count actions: how many are left is nothing
		// that the learner sees, and what they cost is in its reward.
		f, err := farmenv.NewFarm(cfg.environment(), farmenv.FarmConfig{Episode: t.mix.Episode, Rule: rule,
			Guard: &guard.Settings{Learned: true, ActionsPerHour: 3600, Burst: 1000}, Horizon: cfg.Episode, Hide: cfg.Hide, Only: cfg.Only, Beside: beside})
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

// traces reports whether all work was recorded.
func (c *Config) traces() bool {
	for _, s := range c.Scenarios {
		switch s.Arrivals.(type) {
		case *workload.Replay, *workload.Instants:
		default:
			return false
		}
	}
	return true
}

// environment is the id of what is played.
func (c *Config) environment() string {
	if c.traces() {
		return "FarmTrace-v0"
	}
	return "Farm-v0"
}

// name is that of the scenario, or those of all.
func (c *Config) name() string {
	var names []string
	for _, s := range c.Scenarios {
		names = append(names, s.Name)
	}
	return strings.Join(names, ",")
}

// weigh lets the farms count lateness as it weighs now.
func (t *Trainer) weigh() {
	for _, f := range t.farms {
		f.WeighLate(t.late)
	}
}

// imitate begins with what the rule would do, or another policy.
func (t *Trainer) imitate(ctx context.Context) error {
	c := rl.DefaultClone()
	c.Steps = t.cfg.Clone
	var list []env.Env
	var farms []*farmenv.Farm
	for _, f := range t.farms {
		g, err := f.Another()
		if err != nil {
			return err
		}
		g.WeighLate(t.late)
		list, farms = append(list, g), append(farms, g)
	}
	envs, err := env.NewVector(t.cfg.Seed+1<<32, env.Options{farmenv.OptionAction: t.cfg.Churn}, list...)
	if err != nil {
		return err
	}
	teach := func(_ int, _ []float64, mask []bool) int {
		if mask[learned.Rule] {
			return learned.Rule
		}
		return learned.Hold
	}
	if t.teacher != nil {
		teach = func(i int, _ []float64, _ []bool) int { return farms[i].Nearest(t.teacher) }
	}
	return t.learner.Clone(ctx, envs, teach, c)
}

// look lets the policy scale farms, weighs lateness by what came of it, and begins the
// next round.
func (t *Trainer) look(ctx context.Context) error {
	file, err := t.write()
	if err != nil {
		return err
	}
	p, err := t.try(ctx, file, t.cfg.Seeds)
	if err != nil {
		return err
	}
	p.Steps = t.learner.Steps()
	for i := range p.Cases {
		c := &p.Cases[i]
		c.Late = t.late[i]
		if p.Steps < t.cfg.Warmup {
			continue
		}
		late, allowed := t.lateness(i, c)
		step := min(max(late/allowed-1, -1), 1)
		t.late[i] = min(max(t.late[i]*math.Exp(t.cfg.Dual*step), minLate), maxLate)
	}
	t.curve = append(t.curve, p)
	t.keep(candidate{p, file})
	t.weigh()
	t.until = min(t.cfg.Steps, p.Steps+t.cfg.Round)
	if t.cfg.Done != nil {
		t.cfg.Done(p)
	}
	return nil
}

// Curve is what the policy was after each round.
func (t *Trainer) Curve() []Point { return t.curve }

// Steps are the environment steps that were learned from.
func (t *Trainer) Steps() int { return t.learner.Steps() }
