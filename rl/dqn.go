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
	"farmhand/rl/replay"
	"farmhand/rl/tape"
)

// DQNConfig are the settings of deep Q-learning. Symbols are those of Mnih et al.
// (Nature 518, 2015) and Hessel et al., arXiv 1710.02298.
type DQNConfig struct {
	Hidden     []int         // units of the hidden layers
	Activation nn.Activation // between the layers
	Normalise  Normalise     // how observations become inputs

	Gamma        float64 // γ: what a reward is worth a step later
	LearningRate float64 // α of Adam
	AnnealSteps  int     // the rate falls linearly, and is 0 after so many environment steps; 0: it stays
	RewardScale  float64 // rewards are multiplied by it before anything is learned
	RewardClip   float64 // and then limited to ±RewardClip; 0: not limited

	Buffer         int // frames remembered
	LearningStarts int // environment steps before the first gradient step
	TrainEvery     int // environment steps for each gradient step
	Batch          int // transitions in a gradient step

	NStep   int  // n: rewards counted before the value is asked
	Double  bool // the network chooses the next action, the target values it (van Hasselt et al., arXiv 1509.06461)
	Dueling bool // value and advantages apart (Wang et al., arXiv 1511.06581)

	// The target network follows in one of two ways: by the share Tau after each
	// gradient step, or by a copy (Tau 1) after every TargetEvery. A small share now
	// and then would leave it where it began: Validate refuses it.
	Tau         float64
	TargetEvery int

	Huber       float64 // δ beyond which errors count linearly; 0: always squared
	MaxGradNorm float64 // gradients are shortened to this norm; 0: never

	// ε-greedy exploration: from EpsilonStart to EpsilonEnd linearly over
	// EpsilonSteps environment steps, or, where that is 0, by the factor
	// EpsilonDecay after each episode.
	EpsilonStart, EpsilonEnd float64
	EpsilonSteps             int
	EpsilonDecay             float64

	LogEpisodes int // how many episodes end between two calls of Log

	Seed uint64
}

// DefaultDQN is double DQN over three steps with a slowly following target.
func DefaultDQN() DQNConfig {
	return DQNConfig{
		Hidden: []int{64, 64}, Activation: nn.Relu, Normalise: NormaliseRunning,
		Gamma: 0.99, LearningRate: 5e-4, RewardScale: 1,
		Buffer: 50_000, LearningStarts: 1000, TrainEvery: 4, Batch: 64,
		NStep: 3, Double: true, Tau: 0.005, TargetEvery: 1, Huber: 1, MaxGradNorm: 10,
		EpsilonStart: 1, EpsilonEnd: 0.05, EpsilonSteps: 20_000, LogEpisodes: 4,
	}
}

// PaperDQN is the double DQN published for the farm (arXiv 2602.06555 and its
// code), but for the target network. The published one moves it by 1 % after every
// 600 gradient steps, about three times in a whole training, so that it values
// next states by a nearly random network; here it moves by 0.5 % after each.
func PaperDQN() DQNConfig {
	c := DefaultDQN()
	c.Hidden, c.Normalise = []int{128, 64}, NormaliseBounds
	c.Gamma, c.LearningRate, c.RewardClip = 0.97, 3e-4, 100
	c.Buffer, c.LearningStarts, c.TrainEvery, c.NStep, c.MaxGradNorm = 75_000, 400, 1, 1, 3
	c.EpsilonStart, c.EpsilonEnd, c.EpsilonSteps, c.EpsilonDecay = 0.8, 0.05, 0, 0.98
	return c
}

// Validate names the settings that no learner can have.
func (c *DQNConfig) Validate() error {
	err := errors.Join(checkHidden(c.Hidden, c.Activation), check(
		limits{"Gamma", c.Gamma, 0, 1, "a discount per step"},
		limits{"LearningRate", c.LearningRate, 1e-9, 1, "a rate per gradient step"},
		limits{"AnnealSteps", float64(c.AnnealSteps), 0, 1e12, "a number of environment steps"},
		limits{"RewardScale", c.RewardScale, 1e-9, 1e9, "a factor"},
		limits{"RewardClip", c.RewardClip, 0, 1e12, "a reward"},
		limits{"Buffer", float64(c.Buffer), 2, 1e8, "a number of frames"},
		limits{"LearningStarts", float64(c.LearningStarts), 0, 1e9, "a number of environment steps"},
		limits{"TrainEvery", float64(c.TrainEvery), 1, 1e6, "a number of environment steps"},
		limits{"Batch", float64(c.Batch), 1, 1e5, "a number of transitions"},
		limits{"NStep", float64(c.NStep), 1, 1000, "a number of steps"},
		limits{"Tau", c.Tau, 1e-6, 1, "a share"},
		limits{"TargetEvery", float64(c.TargetEvery), 1, 1e9, "a number of gradient steps"},
		limits{"Huber", c.Huber, 0, 1e9, "an error"},
		limits{"MaxGradNorm", c.MaxGradNorm, 0, 1e9, "a norm"},
		limits{"EpsilonStart", c.EpsilonStart, 0, 1, "a probability"},
		limits{"EpsilonEnd", c.EpsilonEnd, 0, 1, "a probability"},
		limits{"EpsilonSteps", float64(c.EpsilonSteps), 0, 1e12, "a number of environment steps"},
		limits{"EpsilonDecay", c.EpsilonDecay, 0, 1, "a factor"},
		limits{"LogEpisodes", float64(c.LogEpisodes), 1, 1e9, "a number of episodes"},
	))
	if c.Tau < 1 && c.TargetEvery > 1 {
		err = errors.Join(err, errors.New("rl: Tau below 1 with TargetEvery above 1 leaves the target network where it began: want one of them 1"))
	}
	return err
}

// DQN learns the value of actions.
type DQN struct {
	base
	cfg      DQNConfig
	norm     *normaliser
	online   *nn.Params // θ
	target   *nn.Params // θ⁻
	net      qNet
	adam     *nn.Adam
	ring     *replay.Ring // nil until environments are known
	since    int          // environment steps since the last gradient step was due
	updates  int          // gradient steps done
	told     int          // episodes at the last call of Log
	lastLoss float64

	tape    *tape.Tape
	bound   []tape.Var // online on the tape
	bound2  []tape.Var // target on the tape
	grads   []tape.Var
	grad    []float64
	sampled *replay.Transitions
	actions []int
	rewards []float64
	y       []float64 // targets of a batch
}

// NewDQN makes a learner for an environment. The error names settings that do not
// do.
func NewDQN(cfg DQNConfig, spec *env.Spec) (*DQN, error) {
	if err := errors.Join(cfg.Validate(), spec.Validate()); err != nil {
		return nil, err
	}
	norm, err := newNormaliser(cfg.Normalise, &spec.Observation)
	if err != nil {
		return nil, err
	}
	l := &DQN{base: newBase(spec, cfg.Seed), cfg: cfg, norm: norm, online: &nn.Params{}, tape: tape.New()}
	l.rng = rand.New(&l.pcg)
	l.net = newQNet(l.online, l.rng, &cfg, spec)
	l.target = l.online.Clone()
	l.adam = nn.NewAdam(len(l.online.Data), 1e-8)
	l.grad = make([]float64, len(l.online.Data))
	l.y = make([]float64, cfg.Batch)
	return l, nil
}

// Learn is of Learner. An update boundary is after each step of the environments.
func (l *DQN) Learn(ctx context.Context, envs *env.Vector, steps int) error {
	moved, err := l.begin(envs)
	if err == nil {
		err = l.room(envs.Len())
	}
	if err != nil {
		return err
	}
	b := envs.Current()
	if moved {
		l.ring.Start(b)
	}
	for l.progress.steps < steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.explore(b, l.actions)
		b = envs.Step(l.actions)
		l.remember(b, l.actions)
		l.since += l.progress.see(b)
		for l.due() {
			if err := l.gradientStep(); err != nil {
				return err
			}
		}
		if l.progress.episodes-l.told >= l.cfg.LogEpisodes {
			l.told = l.progress.episodes
			l.log(l.report)
		}
	}
	return nil
}

// room makes what depends on the number of environments.
func (l *DQN) room(n int) (err error) {
	if l.ring == nil {
		if l.ring, err = replay.New(l.cfg.Buffer, n, l.spec); err != nil {
			return err
		}
		l.sampled = l.ring.NewTransitions(l.cfg.Batch)
		l.actions, l.rewards = make([]int, n), make([]float64, n)
	}
	if l.ring.Envs() != n {
		return errors.New("rl: the number of environments has changed: want as many as before")
	}
	return nil
}

// explore chooses ε-greedy actions.
func (l *DQN) explore(b *env.Batch, actions []int) {
	n, epsilon := l.spec.Action.N(), l.epsilon()
	greedy := false
	for i := range actions {
		actions[i] = -1
		if l.rng.Float64() < epsilon {
			actions[i] = anyOf(l.rng, b.Mask[i*n:(i+1)*n])
		} else {
			greedy = true
		}
	}
	if !greedy {
		return
	}
	q := l.values(b.Obs)
	for i, a := range actions {
		if a < 0 {
			actions[i] = best(q[i*n:(i+1)*n], b.Mask[i*n:(i+1)*n])
		}
	}
}

// epsilon is the probability of a random action now.
func (l *DQN) epsilon() float64 {
	c := &l.cfg
	if c.EpsilonSteps > 0 {
		done := min(1, float64(l.progress.steps)/float64(c.EpsilonSteps))
		return c.EpsilonStart + done*(c.EpsilonEnd-c.EpsilonStart)
	}
	return max(c.EpsilonEnd, c.EpsilonStart*math.Pow(c.EpsilonDecay, float64(l.progress.episodes)))
}

// remember keeps what came of the actions.
func (l *DQN) remember(b *env.Batch, actions []int) {
	d := l.spec.Observation.Len()
	for i, r := range b.Reward {
		l.norm.see(b.Obs[i*d : (i+1)*d])
		r *= l.cfg.RewardScale
		if c := l.cfg.RewardClip; c > 0 {
			r = min(max(r, -c), c)
		}
		l.rewards[i] = r
	}
	l.ring.Put(actions, b, l.rewards)
}

// due reports whether a gradient step is to be taken now.
func (l *DQN) due() bool {
	if l.progress.steps < l.cfg.LearningStarts {
		l.since = 0
		return false
	}
	if l.since < l.cfg.TrainEvery {
		return false
	}
	l.since -= l.cfg.TrainEvery
	return true
}

// gradientStep takes a step of Adam along the gradient of the loss of a batch.
func (l *DQN) gradientStep() error {
	loss, err := l.lossSampled()
	if err != nil {
		return err
	}
	l.lastLoss = l.tape.Scalar(loss)
	l.descend(loss)
	return nil
}

// lossSampled begins a new tape with the loss of transitions drawn from memory.
func (l *DQN) lossSampled() (tape.Var, error) {
	s := l.sampled
	if !l.ring.Sample(l.rng, l.cfg.NStep, l.cfg.Gamma, s) {
		return tape.Var{}, errors.New("rl: nothing to learn from: no action was taken yet")
	}
	l.norm.update()
	loss := l.loss(s)
	return loss, finite("the loss", l.tape.Scalar(loss), l.updates)
}

// loss begins a new tape with the mean of the losses of Q(s,a) − y, where
//
//	y = r₁ + … + γⁿ⁻¹·r_n + γⁿ·Q⁻(s', argmax_a' Q(s',a'))
//
// a' is allowed in s', and Q⁻ also chooses it when Double is off.
func (l *DQN) loss(s *replay.Transitions) tape.Var {
	l.bind()
	t, n := l.tape, len(s.Action)
	actions, next := l.spec.Action.N(), l.norm.input(l.tape, s.Next)
	value := t.Value(l.net.apply(t, l.bound2, next)) // Q⁻(s',·)
	choice := value
	if l.cfg.Double {
		choice = t.Value(l.net.apply(t, l.bound, next))
	}
	for i := range n {
		row := i * actions
		a := best(choice[row:row+actions], s.NextMask[row:row+actions])
		l.y[i] = s.Return[i] + s.Discount[i]*value[row+a]
	}
	q := t.Pick(l.net.apply(t, l.bound, l.norm.input(t, s.Obs)), s.Action)
	err := t.Sub(q, t.Input(n, 1, l.y))
	if l.cfg.Huber > 0 {
		return t.Mean(t.Huber(err, l.cfg.Huber))
	}
	return t.Mean(t.Square(err))
}

// descend takes a step of Adam against the gradient of the loss, and lets the
// target network follow.
func (l *DQN) descend(loss tape.Var) {
	l.grads = l.tape.AppendGrad(l.grads[:0], loss, l.bound)
	l.online.Flatten(l.tape, l.grads, l.grad)
	nn.ClipNorm(l.grad, l.cfg.MaxGradNorm)
	l.adam.Step(l.online.Data, l.grad, l.rate())
	if l.updates++; l.updates%l.cfg.TargetEvery == 0 {
		nn.Polyak(l.target.Data, l.online.Data, l.cfg.Tau)
	}
}

func (l *DQN) rate() float64 {
	return annealed(l.cfg.LearningRate, l.progress.steps, l.cfg.AnnealSteps)
}

// bind begins a new tape with the parameters of both networks.
func (l *DQN) bind() {
	l.tape.Reset()
	l.bound = l.online.Bind(l.tape, l.bound[:0])
	l.bound2 = l.target.Bind(l.tape, l.bound2[:0])
}

// values are Q(s,·) of observations, row by row.
func (l *DQN) values(obs []float64) []float64 {
	l.tape.Reset()
	l.bound = l.online.Bind(l.tape, l.bound[:0])
	return l.tape.Value(l.net.apply(l.tape, l.bound, l.norm.input(l.tape, obs)))
}

func (l *DQN) report(values map[string]float64) {
	values["rollout/exploration_rate"] = l.epsilon()
	values["train/loss"] = l.lastLoss
	values["train/learning_rate"] = l.rate()
	values["train/n_updates"] = float64(l.updates)
}

// Act is of Learner.
func (l *DQN) Act(obs []float64, mask []bool) int { return best(l.values(obs), mask) }

// Network is what chooses actions. Of a dueling network it is the stream of
// advantages, since the value is the same for all actions.
func (l *DQN) Network() Network {
	linear := append(append([]nn.Linear(nil), l.net.trunk...), l.net.advantage)
	return Network{Normalise: l.norm.Affine, Activation: l.cfg.Activation, Layers: layers(l.online, linear...)}
}

// Save is of Learner.
func (l *DQN) Save(w io.Writer) error {
	return checkpoint.Save(w, header("dqn", l.cfg, l.spec), l.state)
}

// Load is of Learner.
func (l *DQN) Load(r io.Reader) error {
	return errors.Join(checkpoint.Load(r, header("dqn", l.cfg, l.spec), l.state), l.online.Finite())
}

func (l *DQN) state(c *checkpoint.Codec) {
	l.base.state(c)
	l.norm.state(c)
	c.Floats("parameters", l.online.Data)
	c.Floats("target", l.target.Data)
	c.Floats("adam/m", l.adam.M)
	c.Floats("adam/v", l.adam.V)
	c.Int("adam/t", &l.adam.T, 1<<62)
	c.Int("since", &l.since, 1<<62)
	c.Int("updates", &l.updates, 1<<62)
	c.Int("told", &l.told, 1<<62)
	c.Float("loss", &l.lastLoss)
	envs := 0
	if l.ring != nil {
		envs = l.ring.Envs()
	}
	c.Int("replay/envs", &envs, 1<<16)
	if c.Failed() || envs == 0 {
		return
	}
	if c.Reading() {
		l.ring = nil
		if err := l.room(envs); err != nil {
			c.Fail(err)
			return
		}
	}
	l.ring.State(c)
}

var _ Learner = (*DQN)(nil)
