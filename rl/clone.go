package rl

import (
	"context"
	"errors"

	"farmhand/env"
)

// Teacher is a policy to begin with, such as a tuned rule: what it would do in an
// environment, which it may look into, at an observation.
type Teacher func(env int, obs []float64, mask []bool) int

// CloneConfig says how a learner imitates a teacher before it learns by itself.
type CloneConfig struct {
	Steps  int // environment steps that the teacher is watched for
	Epochs int // how often what was seen is gone through
	Batch  int // steps in a gradient step
	// Noise is the probability that a random action is taken instead of the
	// teacher's, so that the learner sees what the teacher does where it would not
	// have come by itself.
	Noise float64
	// Margin is how much better than others the teacher's action is made (DQN
	// only), in units of scaled rewards.
	Margin float64
}

// DefaultClone is enough to imitate a rule.
func DefaultClone() CloneConfig {
	return CloneConfig{Steps: 10_000, Epochs: 10, Batch: 64, Noise: 0.1, Margin: 0.8}
}

// Validate names the settings that do not do.
func (c *CloneConfig) Validate() error {
	return check(
		limits{"Steps", float64(c.Steps), 1, 1e7, "a number of environment steps"},
		limits{"Epochs", float64(c.Epochs), 1, 1000, "a number of epochs"},
		limits{"Batch", float64(c.Batch), 1, 1e5, "a number of steps"},
		limits{"Noise", c.Noise, 0, 1, "a probability"},
		limits{"Margin", c.Margin, 0, 1e9, "a difference of values"},
	)
}

// errCloneFirst is what Clone answers to a learner that has begun.
var errCloneFirst = errors.New("rl: Clone after Learn: want it before")

// ask chooses an environment's action by the teacher, and the one to take.
func (b *base) ask(teacher Teacher, noise float64, batch *env.Batch, i int) (label, action int) {
	d, n := b.spec.Observation.Len(), b.spec.Action.N()
	mask := batch.Mask[i*n : (i+1)*n]
	label = teacher(i, batch.Obs[i*d:(i+1)*d], mask)
	if b.rng.Float64() < noise {
		return label, anyOf(b.rng, mask)
	}
	return label, label
}

// Clone makes the policy that of the teacher, by the cross entropy of its actions
// (behaviour cloning, Pomerleau 1991), and the value that of its returns. envs are
// not those of Learn. It is not done in slices: it ends, or ctx does.
func (l *PG) Clone(ctx context.Context, envs *env.Vector, teacher Teacher, cfg CloneConfig) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if l.progress.steps > 0 {
		return errCloneFirst
	}
	steps := max(1, cfg.Steps/envs.Len())
	labels := make([]int, 0, steps*envs.Len())
	ask := func(_ int, b *env.Batch, actions []int) {
		for i := range actions {
			label, action := l.ask(teacher, cfg.Noise, b, i)
			labels, actions[i] = append(labels, label), action
		}
	}
	watched := newProgress(l.spec)
	l.collect(envs, steps, ask, &watched)
	l.roll.advantages(l.cfg.Gamma, 1)
	copy(l.roll.action, labels)
	l.norm.update()
	for range cfg.Epochs {
		l.shuffle(l.roll.taken)
		for from := 0; from < len(l.roll.taken); from += cfg.Batch {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := l.imitate(l.roll.taken[from:min(from+cfg.Batch, len(l.roll.taken))]); err != nil {
				return err
			}
		}
	}
	l.roll = nil
	return nil
}

// imitate takes a gradient step towards the labelled actions and the returns.
func (l *PG) imitate(rows []int) error {
	b := &l.batch
	b.fill(l.roll, rows)
	l.bind()
	t, n := l.tape, len(b.action)
	cross := t.Neg(t.Mean(t.Pick(l.logProb(b.obs, b.mask), b.action)))
	v := l.value.Apply(t, l.bound, l.norm.input(t, b.obs))
	loss := t.Add(cross, t.Scale(l.cfg.ValueCoef, t.Mean(t.Square(t.Sub(v, t.Input(n, 1, b.target))))))
	if err := finite("the loss", t.Scalar(loss), l.updates); err != nil {
		return err
	}
	l.descend(loss)
	return nil
}

// Clone makes the network prefer the teacher's actions: it learns from the
// teacher's transitions, and the value of the teacher's action is pushed above the
// others' by a margin (Hester et al., arXiv 1704.03732, without its other terms).
// The transitions stay in the replay memory. envs are as many as Learn's, but not
// those. It is not done in slices: it ends, or ctx does.
func (l *DQN) Clone(ctx context.Context, envs *env.Vector, teacher Teacher, cfg CloneConfig) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if l.progress.steps > 0 {
		return errCloneFirst
	}
	if err := l.room(envs.Len()); err != nil {
		return err
	}
	var seen lesson
	d, n := l.spec.Observation.Len(), l.spec.Action.N()
	b := envs.Current()
	l.ring.Start(b)
	for len(seen.label) < cfg.Steps {
		for i := range l.actions {
			label, action := l.ask(teacher, cfg.Noise, b, i)
			l.actions[i] = action
			if !b.Over(i) {
				seen.obs = append(seen.obs, b.Obs[i*d:(i+1)*d]...)
				seen.mask = append(seen.mask, b.Mask[i*n:(i+1)*n]...)
				seen.label = append(seen.label, label)
			}
		}
		b = envs.Step(l.actions)
		l.remember(b, l.actions)
	}
	l.norm.update()
	for range cfg.Epochs * max(1, len(seen.label)/cfg.Batch) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.imitate(&seen, cfg); err != nil {
			return err
		}
	}
	copy(l.target.Data, l.online.Data)
	return nil
}

// lesson is what a teacher did.
type lesson struct {
	obs   []float64
	mask  []bool
	label []int
}

// imitate takes a gradient step along the loss of Q-learning and
//
//	max_a (Q(s,a) + margin·[a ≠ a_T]) − Q(s,a_T)
//
// where a_T is what the teacher did.
func (l *DQN) imitate(seen *lesson, cfg CloneConfig) error {
	loss, err := l.lossSampled()
	if err != nil {
		return err
	}
	d, n := l.spec.Observation.Len(), l.spec.Action.N()
	t := l.tape
	obs, offset := make([]float64, 0, cfg.Batch*d), t.Zeros(cfg.Batch, n)
	labels, rival := make([]int, cfg.Batch), make([]int, cfg.Batch)
	masks := make([]bool, 0, cfg.Batch*n)
	for i := range labels {
		k := l.rng.IntN(len(seen.label))
		obs = append(obs, seen.obs[k*d:(k+1)*d]...)
		masks = append(masks, seen.mask[k*n:(k+1)*n]...)
		labels[i] = seen.label[k]
		for a := range n {
			if a != labels[i] {
				t.Value(offset)[i*n+a] = cfg.Margin
			}
		}
	}
	q := t.Add(l.net.apply(t, l.bound, l.norm.input(t, obs)), offset)
	for i := range rival {
		rival[i] = best(t.Value(q)[i*n:(i+1)*n], masks[i*n:(i+1)*n])
	}
	loss = t.Add(loss, t.Mean(t.Sub(t.Pick(q, rival), t.Pick(q, labels))))
	if err := finite("the loss", t.Scalar(loss), l.updates); err != nil {
		return err
	}
	l.descend(loss)
	return nil
}
