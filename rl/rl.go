// Package rl has the learners: policy gradient (pg.go), deep Q-learning (dqn.go)
// and SARSA(λ) (sarsa.go). docs/learners.md has their formulas.
//
// A learner is made for an environment's Spec, learns by playing a vector of such
// environments, and can be stopped, saved, loaded and taken up again at any of its
// update boundaries: what it learns does not depend on where the cuts fall, bit
// for bit.
//
//	l, err := rl.NewDQN(rl.DefaultDQN(), spec)
//	err = l.Learn(ctx, envs, 100_000)
//	action := l.Act(obs, mask)
//
// A learner is single-threaded and draws all its randomness from its seed.
package rl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"farmhand/env"
	"farmhand/internal/checkpoint"
	"farmhand/rl/nn"
)

// Learner is what learns a policy.
type Learner interface {
	// Learn goes on until the learner has seen a number of environment steps in
	// all. It returns at the first update boundary at which that is so, or ctx is
	// done (then with its error): in both cases the learner can be saved, and
	// learn on.
	//
	// envs are those of the last call, or such as were not played yet: these are
	// first brought to where a loaded learner stopped.
	Learn(ctx context.Context, envs *env.Vector, steps int) error
	// Steps returns how many environment steps the learner has seen.
	Steps() int
	// SetLog has a function told how learning goes, from the next Learn on.
	SetLog(Log)
	// Act returns the action that the learner holds to be the best; mask nil
	// allows all. It does not explore, and draws no random number.
	Act(obs []float64, mask []bool) int
	// Save writes all that the learner is: parameters, optimiser, memory, random
	// source, and where its environments stand.
	Save(w io.Writer) error
	// Load makes the learner what was saved of one with the same configuration
	// and Spec. After an error it is of no more use.
	Load(r io.Reader) error
}

// Log is told how learning goes, with the names that Stable-Baselines3 uses. The
// map is used again: it holds until Log returns.
type Log func(steps int, values map[string]float64)

// Network is what acts, apart from the learner: the index of the largest output
// among the allowed is the action.
type Network struct {
	Normalise  Affine
	Activation nn.Activation // between the layers
	Layers     []Layer
}

// Layer is y = x·Weight + Bias; Weight has a row for each input.
type Layer struct {
	Name         string
	In, Out      int
	Weight, Bias []float64
}

// layers describes linear layers for a Network; they share the parameters' memory.
func layers(p *nn.Params, linear ...nn.Linear) (list []Layer) {
	for _, l := range linear {
		s := p.Shapes()[l.W]
		list = append(list, Layer{
			Name: s.Name[:len(s.Name)-len(".weight")], In: s.Rows, Out: s.Cols, Weight: p.Values(l.W), Bias: p.Values(l.B),
		})
	}
	return list
}

// best returns the index of the largest of the allowed values, the last where
// there are several: with actions in the order of workers added, as long as
// nothing is known, more rather than fewer (so the published learners do).
func best(values []float64, mask []bool) int {
	a := -1
	for i, v := range values {
		if (mask == nil || mask[i]) && (a < 0 || v >= values[a]) {
			a = i
		}
	}
	return a
}

// anyOf draws one of the allowed actions, each as likely.
func anyOf(rng *rand.Rand, mask []bool) int {
	n := 0
	for _, ok := range mask {
		if ok {
			n++
		}
	}
	k := rng.IntN(n)
	for a, ok := range mask {
		if ok {
			if k == 0 {
				return a
			}
			k--
		}
	}
	panic("rl: no action is allowed")
}

// annealed is a learning rate that falls linearly to 0 at a number of steps; 0: it
// stays.
func annealed(rate float64, steps, end int) float64 {
	if end == 0 {
		return rate
	}
	return rate * max(0, 1-float64(steps)/float64(end))
}

// base is what all learners have.
type base struct {
	spec     *env.Spec
	pcg      rand.PCG
	rng      *rand.Rand // over pcg
	progress progress
	tell     Log                // nil: nobody
	values   map[string]float64 // for tell
	envs     *env.Vector        // of the last Learn
	stopped  env.State          // where the environments of a loaded learner stand
}

func newBase(spec *env.Spec, seed uint64) base {
	b := base{spec: spec, progress: newProgress(spec), values: map[string]float64{}}
	b.pcg.Seed(seed, 0)
	return b
}

// SetLog is of Learner.
func (b *base) SetLog(f Log) { b.tell = f }

// Steps is of Learner.
func (b *base) Steps() int { return b.progress.steps }

// begin makes the environments ready to go on. moved: they do not stand where the
// learner stopped.
func (b *base) begin(envs *env.Vector) (moved bool, err error) {
	if s := envs.Spec(); s.ID != b.spec.ID || s.Observation.Len() != b.spec.Observation.Len() || s.Action.N() != b.spec.Action.N() {
		return false, fmt.Errorf("rl: environments of %s with %d numbers and %d actions for a learner of %s with %d and %d: want the same",
			s.ID, s.Observation.Len(), s.Action.N(), b.spec.ID, b.spec.Observation.Len(), b.spec.Action.N())
	}
	moved = envs != b.envs
	if !envs.Started() && b.stopped.Episode != nil {
		if err := envs.Restore(b.stopped); err != nil {
			return false, err
		}
		moved = false
	}
	b.envs, b.stopped = envs, env.State{}
	return moved, nil
}

// log tells the means over the last episodes, and more.
func (b *base) log(more func(values map[string]float64)) {
	if b.tell == nil {
		return
	}
	clear(b.values)
	b.progress.report(b.values)
	more(b.values)
	b.tell(b.progress.steps, b.values)
}

// state visits what all learners have.
func (b *base) state(c *checkpoint.Codec) {
	c.PCG("random", &b.pcg)
	b.progress.state(c)
	s := b.stopped
	if b.envs != nil {
		s = b.envs.State()
	}
	n := c.Len("environments", len(s.Episode), 1<<16)
	if c.Reading() {
		s = env.State{Episode: make([]uint64, n), Actions: make([][]int32, n), Sums: make([][]float64, n)}
		if n == 0 {
			s = env.State{}
		}
	}
	seed := []uint64{s.Seed}
	checkpoint.Numbers(c, "environments/seed", seed)
	checkpoint.Numbers(c, "environments/episode", s.Episode)
	for i := range s.Actions {
		k := c.Len("environments/actions/length", len(s.Actions[i]), 1<<26)
		if c.Reading() {
			s.Actions[i] = make([]int32, k)
			s.Sums[i] = make([]float64, 1+len(b.spec.Parts)+len(b.spec.Metrics))
		}
		checkpoint.Numbers(c, "environments/actions", s.Actions[i])
		c.Floats("environments/sums", s.Sums[i])
	}
	if c.Reading() {
		s.Seed = seed[0]
		b.envs, b.stopped = nil, s
	}
}

// limits says what values a setting may have.
type limits struct {
	name     string
	value    float64
	min, max float64 // inclusive
	what     string  // what the setting is for, with its unit
}

// check returns an error for each setting that is outside its limits.
func check(settings ...limits) error {
	var errs []error
	for _, s := range settings {
		if !(s.min <= s.value && s.value <= s.max) {
			errs = append(errs, fmt.Errorf("rl: %s is %g: want %s, from %g to %g", s.name, s.value, s.what, s.min, s.max))
		}
	}
	return errors.Join(errs...)
}

// checkHidden refuses networks that no machine has room for.
func checkHidden(hidden []int, act nn.Activation) error {
	if len(hidden) < 1 || len(hidden) > 8 {
		return fmt.Errorf("rl: Hidden has %d layers: want 1 to 8", len(hidden))
	}
	for _, n := range hidden {
		if n < 1 || n > 4096 {
			return fmt.Errorf("rl: Hidden has a layer of %d units: want 1 to 4096", n)
		}
	}
	return act.Validate()
}

// finite returns an error where learning has gone astray.
func finite(what string, x float64, update int) error {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("rl: %s is %g in update %d: a lower LearningRate or RewardScale may help", what, x, update)
	}
	return nil
}

// header says what a checkpoint belongs to.
func header(learner string, cfg any, spec *env.Spec) []byte {
	names := fnv.New64a()
	for _, name := range append(slices.Clone(spec.Observation.Names), spec.Action.Names...) {
		names.Write([]byte(name + "\n"))
	}
	b, err := json.Marshal(map[string]any{
		"learner": learner, "config": cfg, "environment": spec.ID, "names": fmt.Sprintf("%x", names.Sum64()),
	})
	if err != nil {
		panic(err) // a configuration is numbers and names
	}
	return b
}
