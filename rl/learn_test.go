package rl_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"farmhand/env"
	"farmhand/env/envtest"
	"farmhand/rl"
	"farmhand/rl/nn"
)

// vector makes n environments.
func vector(t testing.TB, seed uint64, n int, make func() env.Env) *env.Vector {
	t.Helper()
	var envs []env.Env
	for range n {
		envs = append(envs, make())
	}
	v, err := env.NewVector(seed, nil, envs...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func identity() env.Env { return envtest.NewIdentity(4, 4, 20) }
func queue() env.Env    { return envtest.NewQueue() }

// gamma is the discount for the queue.
const gamma = 0.95

// learners are all kinds, set for the small environments of these tests: with how
// many steps each has learned the queue.
var learners = []struct {
	name  string
	steps int
	make  func(seed uint64, spec *env.Spec) (rl.Learner, error)
}{
	{"reinforce", 200_000, func(seed uint64, spec *env.Spec) (rl.Learner, error) {
		c := rl.REINFORCE()
		c.Hidden, c.Gamma, c.LearningRate, c.AnnealSteps = []int{32}, gamma, 2e-2, 200_000
		c.Rollout, c.EntropyCoef, c.RewardScale, c.Seed = 32, 0.01, 0.2, seed
		return rl.NewPG(c, spec)
	}},
	{"ppo", 40_000, func(seed uint64, spec *env.Spec) (rl.Learner, error) {
		c := rl.PPO()
		c.Hidden, c.Gamma, c.LearningRate, c.AnnealSteps = []int{32, 32}, gamma, 3e-3, 40_000
		c.Rollout, c.Batch, c.EntropyCoef, c.RewardScale, c.Seed = 128, 256, 0.005, 0.2, seed
		return rl.NewPG(c, spec)
	}},
	{"dqn", 30_000, func(seed uint64, spec *env.Spec) (rl.Learner, error) {
		c := queueDQN(seed)
		return rl.NewDQN(c, spec)
	}},
	{"dueling", 30_000, func(seed uint64, spec *env.Spec) (rl.Learner, error) {
		c := queueDQN(seed)
		c.Dueling, c.Tau, c.TargetEvery = true, 1, 100
		return rl.NewDQN(c, spec)
	}},
	{"sarsa", 300_000, func(seed uint64, spec *env.Spec) (rl.Learner, error) {
		c := rl.PaperSARSA()
		c.Bins = map[string][]float64{}
		for j, name := range spec.Observation.Names {
			for x := spec.Observation.Low[j] + 0.5; x < spec.Observation.High[j]; x++ {
				c.Bins[name] = append(c.Bins[name], x)
			}
		}
		c.Gamma, c.Alpha, c.AlphaEnd, c.AlphaDecay = gamma, 0.2, 0.01, 0.999
		c.EpsilonEnd, c.EpsilonDecay, c.Seed = 0.02, 0.999, seed
		return rl.NewSARSA(c, spec)
	}},
}

func queueDQN(seed uint64) rl.DQNConfig {
	c := rl.DefaultDQN()
	c.Hidden, c.Gamma, c.LearningRate, c.AnnealSteps = []int{32, 32}, gamma, 2e-3, 30_000
	c.NStep, c.Tau, c.EpsilonSteps, c.Seed = 1, 0.01, 15_000, seed
	return c
}

// Every learner finds the action that the observation names.
func TestIdentity(t *testing.T) {
	for _, k := range learners {
		t.Run(k.name, func(t *testing.T) {
			l, err := k.make(1, identity().Spec())
			learnIdentity(t, l, err)
		})
	}
}

// So do they with settings that the others leave alone.
func TestIdentityOtherwise(t *testing.T) {
	spec := identity().Spec()
	t.Run("ppo", func(t *testing.T) {
		c := rl.PPO()
		c.Hidden, c.Rollout, c.LearningRate, c.Activation, c.Normalise = []int{16}, 64, 3e-3, nn.Relu, rl.NormaliseNone
		c.ClipValue, c.TargetKL, c.NormaliseAdvantage = 0.2, 0.02, false
		l, err := rl.NewPG(c, spec)
		learnIdentity(t, l, err)
	})
	t.Run("dqn", func(t *testing.T) {
		c := rl.DefaultDQN()
		c.Hidden, c.LearningRate, c.Activation, c.Normalise = []int{16}, 2e-3, nn.Tanh, rl.NormaliseBounds
		c.Double, c.Huber, c.RewardScale, c.RewardClip, c.MaxGradNorm, c.Gamma = false, 0, 3, 1, 0, 0.5
		c.Tau, c.TargetEvery, c.EpsilonSteps, c.EpsilonDecay, c.Buffer = 1, 50, 0, 0.98, 500
		l, err := rl.NewDQN(c, spec)
		learnIdentity(t, l, err)
	})
}

func learnIdentity(t *testing.T, l rl.Learner, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Learn(context.Background(), vector(t, 1, 4, identity), 6000); err != nil {
		t.Fatal(err)
	}
	for a := range 4 {
		obs := make([]float64, 4)
		obs[a] = 1
		if got := l.Act(obs, nil); got != a {
			t.Errorf("action %d for %v: want %d", got, obs, a)
		}
	}
}

// Every learner comes within 2 % of the best policy for the queue, whose value is
// known by dynamic programming, as the learned policy's is.
func TestQueue(t *testing.T) {
	_, top := envtest.QueueBest(gamma)
	seeds := 2
	if testing.Short() {
		seeds = 1
	}
	for _, k := range learners {
		for seed := range seeds {
			t.Run(fmt.Sprint(k.name, " ", seed), func(t *testing.T) {
				l, err := k.make(uint64(seed), queue().Spec())
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Learn(context.Background(), vector(t, uint64(seed), 8, queue), k.steps); err != nil {
					t.Fatal(err)
				}
				if g := gap(l, top); g > 0.02 {
					t.Errorf("%.2f %% from the best after %d steps: want less than 2 %%", 100*g, l.Steps())
				} else {
					t.Logf("%.2f %% from the best after %d steps", 100*g, l.Steps())
				}
			})
		}
	}
}

// gap is how far a learner's policy is from the best for the queue, as a share of
// the best policy's value.
func gap(l rl.Learner, top float64) float64 {
	value := envtest.QueueValue(gamma, func(s envtest.QueueState) int { return l.Act(s.Obs(), s.Mask()) })
	return (top - value) / math.Abs(top)
}

// A learner that imitates the best policy begins where others end, and stays.
func TestClone(t *testing.T) {
	best, top := envtest.QueueBest(gamma)
	teacher := func(_ int, obs []float64, mask []bool) int {
		return best(envtest.QueueState{Phase: int(obs[0]), Waiting: int(obs[1]), Replicas: int(obs[2])})
	}
	cfg := rl.DefaultClone()
	cfg.Steps, cfg.Noise = 4000, 0.3
	check := func(l rl.Learner, envs *env.Vector) {
		t.Helper()
		if g := gap(l, top); g > 0.02 {
			t.Errorf("%.2f %% from the best after imitating it", 100*g)
		}
		if err := l.Learn(context.Background(), envs, 2000); err != nil {
			t.Fatal(err)
		}
		if g := gap(l, top); g > 0.04 {
			t.Errorf("%.2f %% from the best after learning on", 100*g)
		}
	}
	pg := rl.PPO()
	pg.Gamma, pg.Rollout, pg.RewardScale = gamma, 128, 0.2
	p, err := rl.NewPG(pg, queue().Spec())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Clone(context.Background(), vector(t, 9, 8, queue), teacher, cfg); err != nil {
		t.Fatal(err)
	}
	check(p, vector(t, 1, 8, queue))

	c := queueDQN(0)
	c.EpsilonStart, c.AnnealSteps, c.LearningStarts = 0.05, 0, 0
	q, err := rl.NewDQN(c, queue().Spec())
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Clone(context.Background(), vector(t, 9, 8, queue), teacher, cfg); err != nil {
		t.Fatal(err)
	}
	check(q, vector(t, 1, 8, queue))
	if err := q.Clone(context.Background(), vector(t, 9, 8, queue), teacher, cfg); err == nil {
		t.Error("a learner that has begun imitated a teacher")
	}
}

// What a Network says is what the learner does.
func TestNetwork(t *testing.T) {
	type exporter interface {
		rl.Learner
		Network() rl.Network
	}
	for _, k := range learners {
		l, err := k.make(1, queue().Spec())
		if err != nil {
			t.Fatal(err)
		}
		e, ok := l.(exporter)
		if !ok {
			continue
		}
		if err := l.Learn(context.Background(), vector(t, 1, 8, queue), 3000); err != nil {
			t.Fatal(err)
		}
		n := e.Network()
		for _, s := range envtest.QueueStates() {
			x := s.Obs()
			for j := range x {
				x[j] = min(max((x[j]-n.Normalise.Shift[j])*n.Normalise.Scale[j], -n.Normalise.Limit), n.Normalise.Limit)
			}
			for i, layer := range n.Layers {
				y := append([]float64(nil), layer.Bias...)
				for j := range layer.In {
					for o := range layer.Out {
						y[o] += x[j] * layer.Weight[j*layer.Out+o]
					}
				}
				for o := range y {
					switch {
					case i == len(n.Layers)-1:
					case n.Activation == nn.Relu:
						y[o] = max(0, y[o])
					default:
						y[o] = math.Tanh(y[o])
					}
				}
				x = y
			}
			top := math.Inf(-1)
			for a, ok := range s.Mask() {
				if ok {
					top = max(top, x[a])
				}
			}
			if a := l.Act(s.Obs(), s.Mask()); x[a] < top-1e-12 {
				t.Errorf("%s: action %d in %+v, but the network's outputs are %v", k.name, a, s, x)
			}
		}
	}
}
