// Package farmenv has the environments that are farms: an agent scales a simulated
// farm, one decision in each interval.
package farmenv

import (
	"fmt"
	"math"
	"slices"

	"farmhand/env"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/policy/learned"
	"farmhand/sim"
)

// FarmConfig of a Farm.
type FarmConfig struct {
	// Episode that is played, by its seed.
	Episode func(seed uint64) Episode
	// Rule that advises (package learned), and below which the guard lets nobody go
	// in a crisis.
	Rule policy.Policy
	// Guard between the actions and the farm, which says that the wish is learned;
	// nil: nothing but the bounds of the farm.
	Guard *guard.Settings
	// Horizon of an episode in seconds; 0: that of the scenario.
	Horizon float64
	// Hide are features that are not shown: they keep their least value, to find out
	// what they are worth.
	Hide []string
	// Only are the actions that may be taken (learned.Actions); none: all.
	Only []string
	// Beside is a law that serves the same work; nil: none. Reward is what the agent does
	// better, step by step: what no law could have foreseen is in both, and what is left of
	// it tells far better which action was good (an input-driven baseline; Mao et al., arXiv
	// 1807.02264).
	Beside policy.Policy
}

// Options of a Farm.
const (
	// OptionLate is the weight on lateness: what it costs, in farms just large enough
	// for the mean load, or those of FarmConfig.Beside, when as many tasks are late as the
	// target allows.
	OptionLate = "late_weight"
	// OptionAction is what an action costs, in the same unit.
	OptionAction = "action_cost"
)

// Metrics of a Farm, in the order of Info.Metrics.
const (
	MetricDecided = iota // tasks
	MetricLate           // tasks
	MetricWorkers        // worker-seconds
	MetricActions
	MetricSeconds
)

// Farm is a simulated farm that an agent scales (Farm-v0, FarmTrace-v0).
//
// An observation is what a learned policy sees in a live farm (learned.Features): it
// has no dimension, and no clock but the age of the load's level. Actions are those
// of learned.Actions. A step is an interval of the farm. An episode is cut at the
// horizon (truncated); no state of a farm is terminal.
//
// The reward of a step has three parts, so scaled that their sum over an episode
// does not depend on how fast or large a farm is:
//
//	late     −late_weight · late/(n·(1 − target))
//	workers  −worker-seconds/(I·w)
//	churn    −action_cost · actions
//
// late counts a task once, in the step in which its due passes, be it waiting,
// running or done: work that nobody starts is not free. I is the interval; n are the
// tasks of a mean step, and w the replicas that the mean load would keep busy, of
// the episode. With FarmConfig.Beside, late and worker-seconds are those beyond the other
// law's, and w is its mean of workers.
type Farm struct {
	cfg    FarmConfig
	spec   env.Spec
	hidden []int // features
	denied []int // actions

	sim     *sim.Sim
	beside  *beside // nil: none
	pilot   *sim.Pilot
	o       policy.Observation
	memory  policy.Memory
	pupil   policy.Memory // of the law that Nearest asks
	advice  learned.Advice
	wish    policy.Decision
	calling bool
	over    bool
	before  sim.Totals

	kind                          int
	late                          []float64 // weights on lateness by kind; nil: the option's
	weight                        float64   // the option's
	perLate, perSecond, perAction float64   // perLate at a weight of 1

	obs     []float64
	mask    []bool
	parts   [3]float64
	metrics [5]float64
}

// NewFarm makes a Farm. The error says what of the configuration is missing.
func NewFarm(id string, cfg FarmConfig) (*Farm, error) {
	switch {
	case cfg.Episode == nil:
		return nil, fmt.Errorf("farmenv: %s has no Episode: want one for each seed", id)
	case cfg.Rule == nil:
		return nil, fmt.Errorf("farmenv: %s has no Rule: want a policy that advises, such as staffing", id)
	case !(cfg.Horizon >= 0) || math.IsInf(cfg.Horizon, 0):
		return nil, fmt.Errorf("farmenv: the Horizon of %s is %g: want seconds, or 0 for the scenario's", id, cfg.Horizon)
	}
	f := &Farm{cfg: cfg, sim: &sim.Sim{}}
	if cfg.Beside != nil {
		f.beside = &beside{law: cfg.Beside}
	}
	names, lo, hi := learned.FeatureNames()
	f.spec = env.Spec{ID: id, Observation: env.Box{Names: names, Low: lo, High: hi}, Action: env.Discrete{Names: learned.Actions()},
		Parts:   []string{"late", "workers", "churn"},
		Metrics: []string{"decided", "late", "worker_seconds", "actions", "seconds"},
		Options: []env.Option{
			{Name: OptionLate, Doc: "weight on lateness", Default: 0.3, Min: 0, Max: 1000},
			{Name: OptionAction, Doc: "cost of an action", Default: 0.02, Min: 0, Max: 100},
		}}
	f.mask = make([]bool, f.spec.Action.N())
	denied, err := learned.Denied(cfg.Only)
	if err != nil {
		return nil, fmt.Errorf("farmenv: Only of %s: %w", id, err)
	}
	f.denied = denied
	for _, name := range cfg.Hide {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("farmenv: Hide names %q, which is no feature: want some of %v", name, names)
		}
		f.hidden = append(f.hidden, i)
	}
	return f, nil
}

// Spec implements env.Env.
func (f *Farm) Spec() *env.Spec { return &f.spec }

// WeighLate sets the weights on lateness from now on, one for each kind of scenario, in
// place of the option's. What happens in the farm does not depend on them, only the
// reward.
func (f *Farm) WeighLate(weights []float64) { f.late = weights }

// lateWeight is the weight that counts now. It is multiplied anew each time, so that a
// farm that is brought back to where it was pays the same to the last bit.
func (f *Farm) lateWeight() float64 {
	if f.late != nil {
		return f.late[f.kind]
	}
	return f.weight
}

// Another makes a Farm with the same configuration.
func (f *Farm) Another() (*Farm, error) { return NewFarm(f.spec.ID, f.cfg) }

// Alone is Another with no law beside, for whoever does not look at rewards.
func (f *Farm) Alone() (*Farm, error) {
	cfg := f.cfg
	cfg.Beside = nil
	return NewFarm(f.spec.ID, cfg)
}

// Reset implements env.Env. It panics where the scenario cannot be simulated.
func (f *Farm) Reset(seed uint64, options env.Options) ([]float64, env.Info) {
	if err := f.spec.CheckOptions(options); err != nil {
		panic(err)
	}
	e := f.cfg.Episode(seed)
	f.kind = e.Kind
	s := *e.Scenario
	if f.cfg.Horizon > 0 {
		s.Horizon = f.cfg.Horizon
	}
	s.Horizon += e.From
	tasks := after(s.Draw(seed), e.From)
	s.Horizon += e.Rest - e.From
	tasks = delayed(tasks, e.Rest)
	work := sim.Config{Scenario: &s, Tasks: tasks, Seed: seed}
	if err := f.sim.Reset(work); err != nil {
		panic(err)
	}
	f.pilot = sim.NewPilot(sim.Driver{Policy: (*agent)(f), Rule: (*adviser)(f), Guard: f.cfg.Guard})
	f.memory, f.pupil, f.over = policy.Memory{}, policy.Memory{}, false

	service := 0.0
	for _, x := range tasks.Service {
		service += x + s.Platform.Overhead
	}
	steps := s.Horizon / s.Farm.Interval
	perStep := max(1, float64(len(tasks.At))/steps)
	replicas := service / s.Horizon / float64(max(1, s.Farm.Slots))
	if f.beside != nil {
		if err := f.beside.play(work); err != nil {
			panic(err)
		}
		replicas = max(1, f.beside.workers())
	}
	f.weight = f.spec.Option(options, OptionLate)
	f.perLate = 1 / (perStep * max(1e-6, 1-s.Farm.Target))
	f.perSecond = 1 / (s.Farm.Interval * max(1e-3, replicas))
	f.perAction = f.spec.Option(options, OptionAction)

	f.before = f.sim.Totals()
	f.look()
	return f.obs, env.Info{Mask: f.mask}
}

// look observes, and asks the rule.
func (f *Farm) look() {
	f.sim.Observe(&f.o)
	f.o.Quiet = true
	f.calling = f.sim.Calling()
	if f.calling { // the controller does not decide either
		clear(f.mask)
		f.mask[learned.Hold] = true
	} else {
		f.advice = learned.Advise(f.cfg.Rule, &f.o, f.memory)
		f.advice.Mask(&f.o, f.denied, f.mask)
	}
	f.obs = learned.Features(f.obs[:0], &f.o, &f.advice)
	for _, i := range f.hidden {
		f.obs[i] = f.spec.Observation.Low[i]
	}
}

// Step implements env.Env.
func (f *Farm) Step(action int) (obs []float64, reward float64, terminated, truncated bool, info env.Info) {
	if f.over || !f.spec.Action.Contains(action) || !f.mask[action] {
		panic(fmt.Sprintf("farmenv: %s: action %d is not allowed now", f.spec.ID, action))
	}
	f.wish = f.advice.Decide(&f.o, action)
	out := f.pilot.Decide(&f.o, f.calling).Outcome
	n := f.o.Desired
	if !out.Hold {
		n = out.Replicas
	}
	f.sim.Scale(n)
	f.over = !f.sim.Advance()

	now, was := f.sim.Totals(), f.before
	f.before = now
	f.metrics = [...]float64{float64(now.Decided - was.Decided), float64(now.Late - was.Late), now.WorkerSeconds - was.WorkerSeconds,
		float64(now.Actions - was.Actions), now.At - was.At}
	late, workers := f.metrics[MetricLate], f.metrics[MetricWorkers]
	if f.beside != nil {
		otherLate, otherWorkers := f.beside.next()
		late, workers = late-otherLate, workers-otherWorkers
	}
	f.parts = [...]float64{-f.lateWeight() * f.perLate * late, -f.perSecond * workers, -f.perAction * f.metrics[MetricActions]}
	f.look()
	return f.obs, f.parts[0] + f.parts[1] + f.parts[2], false, f.over, env.Info{Mask: f.mask, Parts: f.parts[:], Metrics: f.metrics[:]}
}

// Nearest is the action that comes nearest to what a law wishes now: to hold, if it is
// one of these. The law is to be asked in every step, so that it remembers what was.
func (f *Farm) Nearest(p policy.Policy) int {
	if f.calling {
		return learned.Hold
	}
	wish := p.Decide(&f.o, f.pupil)
	if wish.Hold {
		return learned.Hold
	}
	best, far := learned.Hold, gap(f.o.Desired, wish.Replicas)
	for i, allowed := range f.mask {
		if d := gap(f.advice.Replicas(&f.o, i), wish.Replicas); allowed && d < far {
			best, far = i, d
		}
	}
	return best
}

func gap(a, b int) int { return max(a-b, b-a) }

// agent is the policy that wishes what the action says; adviser is the rule, which
// was asked already.
type (
	agent   Farm
	adviser Farm
)

func (a *agent) Name() string                                                { return "agent" }
func (a *agent) Decide(*policy.Observation, policy.Memory) policy.Decision   { return a.wish }
func (a *adviser) Name() string                                              { return a.cfg.Rule.Name() }
func (a *adviser) Decide(*policy.Observation, policy.Memory) policy.Decision { return a.advice.Wish }
