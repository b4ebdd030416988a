package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"farmhand/env"
	"farmhand/env/farmenv"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/policy/learned"
	"farmhand/rl"
	"farmhand/sim"
	"farmhand/sim/workload"
	"farmhand/train"
)

// RLConfig of the learners' benchmark.
type RLConfig struct {
	Steps int // environment steps of a run of each learner
	Runs  int // counted
	Seed  uint64
	Log   func(format string, args ...any)
}

// What is measured: the farm of the headline, and its usual episode.
const (
	rlScenario = "burst-cron-150ms"
	rlRule     = "staffing"
	rlEpisode  = 1800.0 // s
	rlEnvs     = 8
	decisions  = 20_000 // of an inference run
	products   = 2_000  // of a run of gonum's matrix product
)

// RL measures how fast learners learn, their environment included, and how long a learned
// policy takes to decide: on one core, in processor time. Beside it stand the environment
// without a learner, and the matrix product of gonum, as measures of the machine.
func RL(ctx context.Context, c RLConfig) (*Report, error) {
	r := NewReport(c.Seed)
	b := &rlBench{seed: c.Seed, steps: c.Steps}
	samples := map[string][]float64{}
	parts := []struct {
		name string
		run  func(context.Context) (float64, error)
	}{
		{"dqn_env_steps_per_s", b.dqn}, {"ppo_env_steps_per_s", b.ppo}, {"env_alone_steps_per_s", b.alone},
		{"inference_ns", b.inference}, {"gonum_gemm_gflops", b.product},
	}
	for i := 0; i <= c.Runs; i++ { // the first is a warm-up
		for _, p := range parts {
			v, err := p.run(ctx)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				samples[p.name] = append(samples[p.name], v)
			}
		}
		if i > 0 {
			samples["inference_allocs"] = append(samples["inference_allocs"], b.allocs)
		}
		c.Log("run %d of %d done", i, c.Runs)
	}
	for name, x := range samples {
		r.Add(name, x)
	}
	r.Note("%s on %s, %d environments, two layers of 64; double dueling DQN over 3 steps, batches of 64, one for every 4 steps; PPO, 2,048 steps × 10 epochs, batches of 64",
		"Farm-v0", rlScenario, rlEnvs)
	r.Note("steps per second of one core's time, learning included; gonum's product is 64×64×64 float64, 2 operations each")
	return r, nil
}

type rlBench struct {
	seed   uint64
	steps  int
	allocs float64 // of the last inference run, per decision
}

// farms are those that a learner plays.
func (b *rlBench) farms() (*env.Vector, error) {
	s, err := workload.Find(rlScenario, workload.Options{})
	if err != nil {
		return nil, err
	}
	rule, err := policy.New(rlRule)
	if err != nil {
		return nil, err
	}
	mix, list := farmenv.NewMix(rlEpisode, s), make([]env.Env, rlEnvs)
	for i := range list {
		if list[i], err = farmenv.NewFarm("Farm-v0", farmenv.FarmConfig{Episode: mix.Episode, Rule: rule, Guard: &guard.Settings{Learned: true}, Horizon: rlEpisode}); err != nil {
			return nil, err
		}
	}
	return env.NewVector(b.seed, nil, list...)
}

// learn measures a learner from the step on with which it learns all the time.
func (b *rlBench) learn(ctx context.Context, l rl.Learner, farms *env.Vector, from int) (float64, error) {
	err := l.Learn(ctx, farms, from)
	if err != nil {
		return 0, err
	}
	before := l.Steps()
	took := spent(func() { err = l.Learn(ctx, farms, before+b.steps) })
	return float64(l.Steps()-before) / took, err
}

func (b *rlBench) dqn(ctx context.Context) (float64, error) {
	l, farms, err := b.newDQN()
	if err != nil {
		return 0, err
	}
	return b.learn(ctx, l, farms, 1500)
}

// newDQN is a learner, and the farms that it plays.
func (b *rlBench) newDQN() (*rl.DQN, *env.Vector, error) {
	farms, err := b.farms()
	if err != nil {
		return nil, nil, err
	}
	c := rl.DefaultDQN()
	c.Seed, c.Dueling = b.seed, true
	l, err := rl.NewDQN(c, farms.Spec())
	return l, farms, err
}

func (b *rlBench) ppo(ctx context.Context) (float64, error) {
	farms, err := b.farms()
	if err != nil {
		return 0, err
	}
	c := rl.PPO()
	c.Seed, c.Rollout = b.seed, c.Rollout/rlEnvs
	l, err := rl.NewPG(c, farms.Spec())
	if err != nil {
		return 0, err
	}
	return b.learn(ctx, l, farms, 2048)
}

// alone plays any actions that are allowed.
func (b *rlBench) alone(context.Context) (float64, error) {
	farms, err := b.farms()
	if err != nil {
		return 0, err
	}
	r, actions, n := rand.New(rand.NewPCG(b.seed, 1)), make([]int, farms.Len()), farms.Spec().Action.N()
	batch := farms.Reset()
	took := spent(func() {
		for range b.steps / rlEnvs {
			for i := range actions {
				for actions[i] = r.IntN(n); !batch.Mask[i*n+actions[i]]; {
					actions[i] = r.IntN(n)
				}
			}
			batch = farms.Step(actions)
		}
	})
	return float64(b.steps/rlEnvs*rlEnvs) / took, nil
}

// inference is how many nanoseconds a policy of a file takes to decide: rule, features,
// network, action.
func (b *rlBench) inference(ctx context.Context) (float64, error) {
	l, farms, err := b.newDQN()
	if err != nil {
		return 0, err
	}
	box := farms.Spec().Observation
	var file bytes.Buffer
	f := learned.File{Meta: learned.Meta{Rule: rlRule, Learner: "dqn", Environment: farms.Spec().ID}, Net: train.Net(l.Network()), Low: box.Low, High: box.High}
	if err := f.Write(&file); err != nil {
		return 0, err
	}
	p, err := learned.Load(file.Bytes())
	if err != nil {
		return 0, err
	}
	o, m, err := seen(b.seed)
	if err != nil {
		return 0, err
	}
	var mallocs uint64
	took := spent(func() {
		mallocs -= mallocated()
		for range decisions {
			p.Decide(o, m)
		}
		mallocs += mallocated()
	})
	b.allocs = float64(mallocs / decisions)
	return took / decisions * 1e9, ctx.Err()
}

// seen is what a controller would see of the farm after ten minutes.
func seen(seed uint64) (*policy.Observation, policy.Memory, error) {
	s, err := workload.Find(rlScenario, workload.Options{})
	if err != nil {
		return nil, nil, err
	}
	var farm sim.Sim
	if err := farm.Reset(sim.Config{Scenario: s, Tasks: s.Draw(seed), Seed: seed}); err != nil {
		return nil, nil, err
	}
	o := &policy.Observation{}
	for range 300 {
		farm.Observe(o)
		farm.Scale(9)
		if !farm.Advance() {
			return nil, nil, fmt.Errorf("bench: %s is over before its tenth minute", rlScenario)
		}
	}
	farm.Observe(o)
	o.Quiet = true
	return o, policy.Memory{}, nil
}

// product is gonum's rate, in 10⁹ operations a second.
func (b *rlBench) product(ctx context.Context) (float64, error) {
	const n = 64
	r := rand.New(rand.NewPCG(b.seed, 2))
	matrix := func() blas64.General {
		m := blas64.General{Rows: n, Cols: n, Stride: n, Data: make([]float64, n*n)}
		for i := range m.Data {
			m.Data[i] = r.NormFloat64()
		}
		return m
	}
	x, y, z := matrix(), matrix(), matrix()
	took := spent(func() {
		for range products {
			blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, x, y, 0, z)
		}
	})
	return 2 * n * n * n * products / took / 1e9, ctx.Err()
}
