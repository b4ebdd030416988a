package paper

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"farmhand/env"
	"farmhand/env/farmenv"
	"farmhand/rl"
)

// Config of a training.
type Config struct {
	Case     Case
	Learner  string // its name, for the policy's file
	Settings Settings
	Seed     uint64
	// Done is told after each round what the policy comes to, and the weight on lateness
	// in the round; may be nil.
	Done func(steps int, s Score, late float64)
}

// Validate names what cannot be, and what would do.
func (s *Settings) Validate() error {
	for _, n := range []struct {
		name     string
		is       float64
		min, max float64
	}{
		{"Steps", float64(s.Steps), 1, 1e9}, {"Envs", float64(s.Envs), 1, 256}, {"Target", s.Target, 0, 0.9999}, {"Actions", s.Actions, 0, 1000},
		{"Margin", s.Margin, 0, 0.9}, {"Round", float64(s.Round), 1, 1e7}, {"Looks", float64(s.Looks), 1, 1e5}, {"Final", float64(s.Final), 0, 1e5},
		{"Late", s.Late, 0, maxLate}, {"Warmup", float64(s.Warmup), 0, 1e9}, {"Dual", s.Dual, 0, 10}, {"Churn", s.Churn, 0, 100},
	} {
		if !(n.is >= n.min && n.is <= n.max) {
			return fmt.Errorf("paper: %s is %g: want %g to %g", n.name, n.is, n.min, n.max)
		}
	}
	if s.Target > 0 && (s.Final < 1 || s.Actions <= 0) {
		return fmt.Errorf("paper: Final is %d and Actions %g: want at least one episode and action to choose by", s.Final, s.Actions)
	}
	return nil
}

// Bounds of the weight on lateness.
const (
	minLate = 1e-3
	maxLate = 4 // more was never needed, and is more than a learner of values bears
)

// trainer is a training under way.
type trainer struct {
	cfg     Config
	farms   []*farmenv.Paper
	envs    *env.Vector
	judge   *farmenv.Paper // plays what the policy is looked at with
	learner rl.Learner
	put     func(*Policy)
	late    float64
	best    []candidate // the best first
}

// candidate is a policy, and what it came to.
type candidate struct {
	file   []byte
	policy *Policy
	score  Score
}

// Train learns a policy. With a Target, what lateness costs follows what the policy
// comes to without exploring,
//
//	ln w ← ln w + η·clip((late share)/(allowed share) − 1, ±1)
//
// (dual ascent; Tessler et al., arXiv 1805.11074), and the cheapest policy on the way
// that reaches it is chosen, on training seeds. Without, the policy is the last.
func Train(ctx context.Context, cfg Config) (*Policy, error) {
	t, err := newTrainer(cfg)
	if err != nil {
		return nil, err
	}
	s := &cfg.Settings
	for t.learner.Steps() < s.Steps {
		if err := t.round(ctx); err != nil {
			return nil, err
		}
	}
	if s.Target == 0 {
		return t.best[len(t.best)-1].policy, nil
	}
	return t.choose(ctx)
}

func newTrainer(cfg Config) (*trainer, error) {
	s := &cfg.Settings
	if err := s.Validate(); err != nil {
		return nil, err
	}
	t := &trainer{cfg: cfg, late: s.Late}
	list := make([]env.Env, s.Envs)
	for i := range list {
		f, err := cfg.Case.Env(s.Reward)
		if err != nil {
			return nil, err
		}
		list[i], t.farms = withInputs(f, s.Logarithms), append(t.farms, f)
	}
	var options env.Options
	if s.Reward == farmenv.Weighed {
		options = env.Options{farmenv.OptionAction: s.Churn}
		t.weigh()
	}
	var err error
	if t.judge, err = cfg.Case.Env(farmenv.Published); err != nil {
		return nil, err
	}
	if t.envs, err = env.NewVector(cfg.Seed, options, list...); err != nil {
		return nil, err
	}
	t.learner, t.put, err = s.learner(cfg.Seed, t.envs.Spec())
	return t, err
}

// weigh lets the farms count lateness as it weighs now.
func (t *trainer) weigh() {
	for _, f := range t.farms {
		f.WeighLate(t.late)
	}
}

// round learns, looks, and weighs.
func (t *trainer) round(ctx context.Context) error {
	s := &t.cfg.Settings
	if err := t.learner.Learn(ctx, t.envs, min(s.Steps, t.learner.Steps()+s.Round)); err != nil {
		return err
	}
	c, err := t.snapshot()
	if err != nil {
		return err
	}
	if c.score, err = t.look(ctx, c.policy, lookSeed, s.Looks); err != nil {
		return err
	}
	c.policy.Training = c.score
	t.keep(c)
	if t.cfg.Done != nil {
		t.cfg.Done(t.learner.Steps(), c.score, t.late)
	}
	if s.Target > 0 && s.Reward == farmenv.Weighed && t.learner.Steps() > s.Warmup {
		step := min(max((1-c.score.OnTime)/(1-t.aim())-1, -1), 1)
		t.late = min(max(t.late*math.Exp(s.Dual*step), minLate), maxLate)
		t.weigh()
	}
	return nil
}

// snapshot is the policy as it is now; it shares no memory with the learner.
func (t *trainer) snapshot() (candidate, error) {
	settings, err := json.Marshal(t.cfg.Settings)
	if err != nil {
		return candidate{}, err
	}
	p := &Policy{Format: Format, Case: t.cfg.Case, Learner: t.cfg.Learner, Seed: t.cfg.Seed, Steps: t.learner.Steps(), Settings: settings, Logarithms: t.cfg.Settings.Logarithms}
	t.put(p)
	file, err := p.Bytes()
	if err != nil {
		return candidate{}, err
	}
	p, err = Parse(file)
	return candidate{file: file, policy: p}, err
}

func (t *trainer) look(ctx context.Context, p *Policy, from uint64, episodes int) (Score, error) {
	r, err := play(ctx, t.judge, p.Act, from, episodes)
	if err != nil {
		return Score{}, err
	}
	return r.Score(), nil
}

// aim is the share on time that a policy should have: a little more than the target, as
// it will be measured with other work than it was chosen with.
func (t *trainer) aim() float64 {
	s := &t.cfg.Settings
	return s.Target + s.Margin*(1-s.Target)
}

// A look is at few episodes: so many candidates are kept, and looked at again with twice
// as many; finalists is how many of them the final episodes decide among.
const (
	candidates = 10
	finalists  = 5
)

// keep a policy if it is among the best; without a target, it is the best.
func (t *trainer) keep(c candidate) {
	t.best = append(t.best, c)
	s := &t.cfg.Settings
	if s.Target == 0 {
		t.best = t.best[len(t.best)-1:]
		return
	}
	slices.SortStableFunc(t.best, func(a, b candidate) int { return compare(a.score, b.score, s.Target, math.Inf(1)) })
	t.best = t.best[:min(len(t.best), candidates)]
}

// compare orders scores, the better first: those that are on time, with as many actions
// as there may be, by cost; the others by how far they are from it.
func compare(a, b Score, onTime, actions float64) int {
	short := func(s Score) float64 {
		return max(0, onTime-s.OnTime)/(1-onTime) + max(0, s.Actions/actions-1)
	}
	return cmp.Or(cmp.Compare(short(a), short(b)), cmp.Compare(a.Workers, b.Workers))
}

// calms are tried: a policy whose values are nearly equal goes to and fro.
var calms = []float64{0, 0.1}

// choose among the best policies, each as it is and with some inclination to hold.
func (t *trainer) choose(ctx context.Context) (*Policy, error) {
	s := &t.cfg.Settings
	better := func(a, b candidate) int { return compare(a.score, b.score, t.aim(), s.Actions) }
	var list []candidate
	for _, c := range t.best {
		for _, calm := range calms {
			p, err := Parse(c.file)
			if err != nil {
				return nil, err
			}
			p.Calm = calm
			score, err := t.look(ctx, p, finalSeed, 2*s.Looks)
			if err != nil {
				return nil, err
			}
			list = append(list, candidate{c.file, p, score})
		}
	}
	slices.SortStableFunc(list, better)
	list = list[:min(len(list), finalists)]
	for i := range list {
		c := &list[i]
		var err error
		if c.score, err = t.look(ctx, c.policy, finalSeed, s.Final); err != nil {
			return nil, err
		}
		c.policy.Training = c.score
	}
	return slices.MinFunc(list, better).policy, nil
}
