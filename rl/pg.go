package rl

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"

	"farmhand/env"
	"farmhand/internal/checkpoint"
	"farmhand/rl/nn"
	"farmhand/rl/tape"
)

// PGConfig are the settings of the policy gradient. Symbols are those of Schulman
// et al., arXiv 1707.06347.
type PGConfig struct {
	Hidden     []int         // units of the hidden layers, of the policy and of the value each
	Activation nn.Activation // between the layers
	Normalise  Normalise     // how observations become inputs

	Gamma        float64 // γ: what a reward is worth a step later
	Lambda       float64 // λ of generalised advantage estimation; 1: the whole return
	LearningRate float64 // α of Adam
	AnnealSteps  int     // the rate falls linearly, and is 0 after so many environment steps; 0: it stays
	RewardScale  float64 // rewards are multiplied by it before anything is learned

	Rollout int // T: steps of each environment between updates
	Epochs  int // K: how often an update goes through them
	Batch   int // M: steps in a gradient step; 0: all

	Clip        float64 // ε: how far the ratio of probabilities may go; 0: any distance
	ClipValue   float64 // how far the value may go from what it was; 0: any distance
	ValueCoef   float64 // c₁: weight of the value's loss
	EntropyCoef float64 // c₂: weight of the policy's entropy
	MaxGradNorm float64 // gradients are shortened to this norm; 0: never
	TargetKL    float64 // an update ends early where the policy has gone 1.5 times as far; 0: never

	// NormaliseAdvantage makes mean 0 and deviation 1 of each batch's advantages.
	NormaliseAdvantage bool

	Seed uint64
}

// PPO is proximal policy optimisation with the settings of Stable-Baselines3.
func PPO() PGConfig {
	return PGConfig{
		Hidden: []int{64, 64}, Activation: nn.Tanh, Normalise: NormaliseRunning,
		Gamma: 0.99, Lambda: 0.95, LearningRate: 3e-4, RewardScale: 1,
		Rollout: 2048, Epochs: 10, Batch: 64,
		Clip: 0.2, ValueCoef: 0.5, MaxGradNorm: 0.5, NormaliseAdvantage: true,
	}
}

// REINFORCE is the policy gradient of Williams (1992) with a learned baseline: one
// step along Σ (G_t − V(s_t))·∇log π(a_t|s_t), the whole return G_t. A return that
// the rollout cuts off goes on with V. That it is PPO with these settings follows
// Huang et al., arXiv 2205.09123.
func REINFORCE() PGConfig {
	c := PPO()
	c.Lambda, c.LearningRate, c.Rollout, c.Epochs, c.Batch, c.Clip, c.MaxGradNorm = 1, 3e-3, 256, 1, 0, 0, 0
	return c
}

// Validate names the settings that no learner can have.
func (c *PGConfig) Validate() error {
	return errors.Join(checkHidden(c.Hidden, c.Activation), check(
		limits{"Gamma", c.Gamma, 0, 1, "a discount per step"},
		limits{"Lambda", c.Lambda, 0, 1, "a discount per step"},
		limits{"LearningRate", c.LearningRate, 1e-9, 1, "a rate per gradient step"},
		limits{"AnnealSteps", float64(c.AnnealSteps), 0, 1e12, "a number of environment steps"},
		limits{"RewardScale", c.RewardScale, 1e-9, 1e9, "a factor"},
		limits{"Rollout", float64(c.Rollout), 1, 1e6, "a number of steps"},
		limits{"Epochs", float64(c.Epochs), 1, 1000, "a number of epochs"},
		limits{"Batch", float64(c.Batch), 0, 1e6, "a number of steps"},
		limits{"Clip", c.Clip, 0, 10, "a distance of a ratio from 1"},
		limits{"ClipValue", c.ClipValue, 0, 1e9, "a distance of values"},
		limits{"ValueCoef", c.ValueCoef, 0, 1e3, "a weight"},
		limits{"EntropyCoef", c.EntropyCoef, 0, 1e3, "a weight"},
		limits{"MaxGradNorm", c.MaxGradNorm, 0, 1e9, "a norm"},
		limits{"TargetKL", c.TargetKL, 0, 1e3, "a divergence in nats"},
	))
}

// PG learns by policy gradient: REINFORCE with a baseline, or PPO.
type PG struct {
	base
	cfg     PGConfig
	norm    *normaliser
	params  *nn.Params // θ, policy and value
	policy  nn.MLP     // logits of π(a|s)
	value   nn.MLP     // V(s)
	adam    *nn.Adam
	updates int // gradient steps done

	roll   *rollout
	tape   *tape.Tape
	bound  []tape.Var // params on the tape
	grads  []tape.Var
	grad   []float64
	batch  pgBatch
	stats  pgStats
	chosen []int // actions of a step
}

// NewPG makes a learner for an environment. The error names settings that do not
// do.
func NewPG(cfg PGConfig, spec *env.Spec) (*PG, error) {
	if err := errors.Join(cfg.Validate(), spec.Validate()); err != nil {
		return nil, err
	}
	norm, err := newNormaliser(cfg.Normalise, &spec.Observation)
	if err != nil {
		return nil, err
	}
	l := &PG{base: newBase(spec, cfg.Seed), cfg: cfg, norm: norm, params: &nn.Params{}, tape: tape.New()}
	l.rng = rand.New(&l.pcg)
	widths := func(out int) []int { return append(append([]int{spec.Observation.Len()}, cfg.Hidden...), out) }
	l.policy = nn.NewMLP(l.params, l.rng, "policy", cfg.Activation, 0.01, widths(spec.Action.N())...)
	l.value = nn.NewMLP(l.params, l.rng, "value", cfg.Activation, 1, widths(1)...)
	l.adam = nn.NewAdam(len(l.params.Data), 1e-5)
	l.grad = make([]float64, len(l.params.Data))
	return l, nil
}

// Learn is of Learner. An update boundary is after each rollout's update.
func (l *PG) Learn(ctx context.Context, envs *env.Vector, steps int) error {
	if _, err := l.begin(envs); err != nil {
		return err
	}
	for l.progress.steps < steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.collect(envs, l.cfg.Rollout, l.sample, &l.progress)
		l.roll.advantages(l.cfg.Gamma, l.cfg.Lambda)
		if err := l.update(); err != nil {
			return err
		}
		l.norm.update() // between rollouts, so that policies old and new see the same
		l.log(l.report)
	}
	return nil
}

// collect plays a rollout with the actions that choose takes, and values it.
func (l *PG) collect(envs *env.Vector, steps int, choose func(t int, b *env.Batch, actions []int), p *progress) {
	if l.roll == nil || l.roll.steps != steps || l.roll.envs != envs.Len() {
		l.roll, l.chosen = newRollout(steps, envs.Len(), l.spec), make([]int, envs.Len())
	}
	r, d := l.roll, l.roll.width
	b := envs.Current()
	r.frame(0, b)
	for t := range steps {
		for i := range r.envs {
			l.norm.see(b.Obs[i*d : (i+1)*d])
		}
		choose(t, b, l.chosen)
		b = envs.Step(l.chosen)
		p.see(b)
		r.frame(t+1, b)
		copy(r.action[t*r.envs:], l.chosen)
		for i, x := range b.Reward {
			r.reward[t*r.envs+i] = l.cfg.RewardScale * x
		}
	}
	const chunk = 256 // rows that the tape holds at once
	for from := 0; from < len(r.value); from += chunk {
		n := min(chunk, len(r.value)-from)
		l.bind()
		v := l.value.Apply(l.tape, l.bound, l.norm.input(l.tape, r.obs[from*d:(from+n)*d]))
		copy(r.value[from:], l.tape.Value(v))
	}
}

// sample draws the actions of frame t from the policy.
func (l *PG) sample(t int, _ *env.Batch, actions []int) {
	r := l.roll
	row, n := t*r.envs, r.actions
	l.bind()
	logProb := l.tape.Value(l.logProb(r.obs[row*r.width:][:r.envs*r.width], r.mask[row*n:][:r.envs*n]))
	for i := range actions {
		u, p := l.rng.Float64(), logProb[i*n:(i+1)*n]
		a := 0
		for j, q := range p {
			if r.mask[(row+i)*n+j] {
				a = j // if rounding lets u through to the end, the last allowed
				if u -= math.Exp(q); u < 0 {
					break
				}
			}
		}
		actions[i], r.logProb[row+i] = a, p[a]
	}
}

// forbidden is the logit of an action that is not allowed: its probability is 0,
// and its product with 0 is 0.
const forbidden = -1e9

// logProb is log π(·|s), masked (Huang & Ontañón, arXiv 2006.14171).
func (l *PG) logProb(obs []float64, mask []bool) tape.Var {
	logits := l.policy.Apply(l.tape, l.bound, l.norm.input(l.tape, obs))
	return l.tape.LogSoftmax(l.tape.Where(mask, logits, forbidden))
}

// bind begins a new tape with the parameters.
func (l *PG) bind() {
	l.tape.Reset()
	l.bound = l.params.Bind(l.tape, l.bound[:0])
}

// pgStats are told of an update, as means over its gradient steps.
type pgStats struct {
	n                                      int
	loss, policy, value, entropy, kl, clip float64
}

// update improves policy and value by what the rollout has.
func (l *PG) update() error {
	r, size := l.roll, l.cfg.Batch
	if size == 0 || size > len(r.taken) {
		size = len(r.taken)
	}
	l.stats = pgStats{}
	for range l.cfg.Epochs {
		l.shuffle(r.taken)
		for from := 0; from < len(r.taken); from += size {
			l.batch.fill(r, r.taken[from:min(from+size, len(r.taken))])
			kl, err := l.gradientStep(&l.batch)
			if err != nil {
				return err
			}
			if l.cfg.TargetKL > 0 && kl > 1.5*l.cfg.TargetKL {
				return nil
			}
		}
	}
	return nil
}

func (l *PG) shuffle(rows []int) {
	l.rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
}

// gradientStep takes a step of Adam along the gradient of
//
//	L = −L^CLIP + c₁·L^VF − c₂·H
//
// over a batch, and returns how far the policy had gone before it.
func (l *PG) gradientStep(b *pgBatch) (kl float64, err error) {
	l.bind()
	t, n := l.tape, len(b.action)
	column := func(x []float64) tape.Var { return t.Input(n, 1, x) }
	if l.cfg.NormaliseAdvantage {
		standardise(b.advantage)
	}

	logProb := l.logProb(b.obs, b.mask)
	logRatio := t.Sub(t.Pick(logProb, b.action), column(b.logProb))
	ratio := t.Exp(logRatio) // r_t(θ) = π(a|s) / π_old(a|s)
	surrogate := t.Mul(ratio, column(b.advantage))
	if ε := l.cfg.Clip; ε > 0 {
		surrogate = t.Min(surrogate, t.Mul(t.Clip(ratio, 1-ε, 1+ε), column(b.advantage)))
	}
	policyLoss := t.Neg(t.Mean(surrogate))

	target := column(b.target)
	v := l.value.Apply(t, l.bound, l.norm.input(t, b.obs))
	squares := t.Square(t.Sub(v, target))
	if c := l.cfg.ClipValue; c > 0 {
		old := column(b.value)
		near := t.Add(old, t.Clip(t.Sub(v, old), -c, c))
		squares = t.Max(squares, t.Square(t.Sub(near, target)))
	}
	valueLoss := t.Mean(squares)

	entropy := t.Scale(-1/float64(n), t.Sum(t.Mul(t.Exp(logProb), logProb)))
	loss := t.Add(policyLoss, t.Sub(t.Scale(l.cfg.ValueCoef, valueLoss), t.Scale(l.cfg.EntropyCoef, entropy)))
	if err := finite("the loss", t.Scalar(loss), l.updates); err != nil {
		return 0, err
	}
	l.descend(loss)

	s := &l.stats
	for i, x := range t.Value(logRatio) {
		r := t.Value(ratio)[i]
		kl += (r - 1 - x) / float64(n) // an estimate without bias that is never negative
		if l.cfg.Clip > 0 && math.Abs(r-1) > l.cfg.Clip {
			s.clip += 1 / float64(n)
		}
	}
	s.n++
	s.loss += t.Scalar(loss)
	s.policy += t.Scalar(policyLoss)
	s.value += t.Scalar(valueLoss)
	s.entropy -= t.Scalar(entropy)
	s.kl += kl
	return kl, nil
}

// descend takes a step of Adam against the gradient of the loss.
func (l *PG) descend(loss tape.Var) {
	l.grads = l.tape.AppendGrad(l.grads[:0], loss, l.bound)
	l.params.Flatten(l.tape, l.grads, l.grad)
	nn.ClipNorm(l.grad, l.cfg.MaxGradNorm)
	l.adam.Step(l.params.Data, l.grad, l.rate())
	l.updates++
}

func (l *PG) rate() float64 { return annealed(l.cfg.LearningRate, l.progress.steps, l.cfg.AnnealSteps) }

func (l *PG) report(values map[string]float64) {
	s := &l.stats
	n := max(1, float64(s.n))
	values["train/loss"] = s.loss / n
	values["train/policy_gradient_loss"] = s.policy / n
	values["train/value_loss"] = s.value / n
	values["train/entropy_loss"] = s.entropy / n
	values["train/approx_kl"] = s.kl / n
	values["train/clip_fraction"] = s.clip / n
	values["train/clip_range"] = l.cfg.Clip
	values["train/explained_variance"] = l.roll.explained()
	values["train/learning_rate"] = l.rate()
	values["train/n_updates"] = float64(l.updates)
}

// pgBatch is the steps of a rollout that a gradient step looks at.
type pgBatch struct {
	obs                               []float64
	mask                              []bool
	action                            []int
	logProb, value, advantage, target []float64
}

func (b *pgBatch) fill(r *rollout, rows []int) {
	b.obs, b.mask, b.action = b.obs[:0], b.mask[:0], b.action[:0]
	b.logProb, b.value, b.advantage, b.target = b.logProb[:0], b.value[:0], b.advantage[:0], b.target[:0]
	for _, row := range rows {
		b.obs = append(b.obs, r.obs[row*r.width:(row+1)*r.width]...)
		b.mask = append(b.mask, r.mask[row*r.actions:(row+1)*r.actions]...)
		b.action = append(b.action, r.action[row])
		b.logProb = append(b.logProb, r.logProb[row])
		b.value = append(b.value, r.value[row])
		b.advantage = append(b.advantage, r.advantage[row])
		b.target = append(b.target, r.target[row])
	}
}

// standardise makes mean 0 and deviation 1.
func standardise(x []float64) {
	var m moments
	for _, v := range x {
		m.see(v)
	}
	sd := math.Sqrt(m.variance())
	for i := range x {
		x[i] = (x[i] - m.mean) / (sd + 1e-8)
	}
}

// Act is of Learner.
func (l *PG) Act(obs []float64, mask []bool) int {
	l.bind()
	return best(l.tape.Value(l.policy.Apply(l.tape, l.bound, l.norm.input(l.tape, obs))), mask)
}

// Network is the policy.
func (l *PG) Network() Network {
	return Network{Normalise: l.norm.Affine, Activation: l.cfg.Activation, Layers: layers(l.params, l.policy.Layers...)}
}

// Save is of Learner.
func (l *PG) Save(w io.Writer) error { return checkpoint.Save(w, header("pg", l.cfg, l.spec), l.state) }

// Load is of Learner.
func (l *PG) Load(r io.Reader) error {
	return errors.Join(checkpoint.Load(r, header("pg", l.cfg, l.spec), l.state), l.params.Finite())
}

func (l *PG) state(c *checkpoint.Codec) {
	l.base.state(c)
	l.norm.state(c)
	c.Floats("parameters", l.params.Data)
	c.Floats("adam/m", l.adam.M)
	c.Floats("adam/v", l.adam.V)
	c.Int("adam/t", &l.adam.T, 1<<62)
	c.Int("updates", &l.updates, 1<<62)
}

var _ Learner = (*PG)(nil)
