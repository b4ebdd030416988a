package rl

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"farmhand/env"
	"farmhand/env/envtest"
)

// chain shows the number of its step and pays what it is told to; then it
// terminates, or is truncated. Its actions are all the same.
type chain struct {
	pay      []float64
	truncate bool
	step     int
	obs      [1]float64
	spec     env.Spec
}

func newChain(truncate bool, pay ...float64) *chain {
	c := &chain{pay: pay, truncate: truncate}
	c.spec = env.Spec{
		ID: "Chain-v0", Action: env.Discrete{Names: []string{"only"}},
		Observation: env.Box{Names: []string{"step"}, Low: []float64{0}, High: []float64{float64(len(pay))}},
	}
	return c
}

func (c *chain) Spec() *env.Spec { return &c.spec }

func (c *chain) Reset(uint64, env.Options) ([]float64, env.Info) {
	c.step, c.obs[0] = 0, 0
	return c.obs[:], env.Info{}
}

func (c *chain) Step(int) ([]float64, float64, bool, bool, env.Info) {
	c.step++
	c.obs[0] = float64(c.step)
	end := c.step == len(c.pay)
	return c.obs[:], c.pay[c.step-1], end && !c.truncate, end && c.truncate, env.Info{}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9*(1+math.Abs(b)) }

// The advantages are the sums that define them, over episodes that end in all
// ways, and in the cases that have a closed form: λ = 0 and λ = 1.
func TestGAE(t *testing.T) {
	const steps, envs = 40, 3
	rng := rand.New(rand.NewPCG(1, 2))
	r := newRollout(steps, envs, newChain(false, 1).Spec())
	for row := range r.value {
		r.value[row] = rng.NormFloat64()
		if row >= envs && !r.over[row-envs] && rng.IntN(5) == 0 {
			r.over[row], r.terminated[row] = true, rng.IntN(2) == 0
		}
	}
	for row := range r.reward {
		r.reward[row] = rng.NormFloat64()
	}
	const gamma = 0.9
	for _, lambda := range []float64{0, 0.7, 1} {
		r.advantages(gamma, lambda)
		seen := 0
		for row := range r.reward {
			if r.over[row] {
				continue
			}
			if r.taken[seen] != row {
				t.Fatalf("row %d is not among those taken", row)
			}
			seen++
			// Σ (γλ)ᵏ δ_{t+k} until the episode or the rollout ends
			want, decay, total, discount := 0.0, 1.0, 0.0, 1.0
			for at := row; ; at += envs {
				next, last := r.value[at+envs], r.over[at+envs] || at+envs >= len(r.reward)
				if r.terminated[at+envs] {
					next = 0
				}
				want += decay * (r.reward[at] + gamma*next - r.value[at])
				decay *= gamma * lambda
				total += discount * r.reward[at]
				discount *= gamma
				if last {
					total += discount * next
					break
				}
			}
			if lambda == 1 && !near(want, total-r.value[row]) {
				t.Fatalf("the sum is %g: with λ = 1 it is the return less the value, %g", want, total-r.value[row])
			}
			if !near(r.advantage[row], want) || !near(r.target[row], want+r.value[row]) {
				t.Fatalf("λ = %g, row %d: advantage %g, target %g: want %g, %g", lambda, row, r.advantage[row], r.target[row], want, want+r.value[row])
			}
		}
		if seen != len(r.taken) {
			t.Errorf("%d rows taken: want %d", len(r.taken), seen)
		}
	}
}

// The first gradient of a policy is the one that the policy gradient theorem names,
// and the value's that of the squared error; by the biases of the last layers:
//
//	−1/n Σ A·(1[a=j] − π_j) and c₁·2/n Σ (V − target)
func TestPolicyGradient(t *testing.T) {
	for name, cfg := range map[string]PGConfig{"reinforce": REINFORCE(), "ppo": PPO()} {
		cfg.Hidden, cfg.Rollout, cfg.NormaliseAdvantage, cfg.MaxGradNorm = []int{8}, 50, false, 0
		e := envtest.NewQueue()
		l, err := NewPG(cfg, e.Spec())
		if err != nil {
			t.Fatal(err)
		}
		envs, err := env.NewVector(1, nil, e)
		if err != nil {
			t.Fatal(err)
		}
		l.collect(envs, cfg.Rollout, l.sample, &l.progress)
		l.roll.advantages(cfg.Gamma, cfg.Lambda)
		l.batch.fill(l.roll, l.roll.taken)
		b, n := &l.batch, float64(len(l.roll.taken))
		l.bind()
		want := make([]float64, 4)
		for i, p := range l.tape.Value(l.logProb(b.obs, b.mask)) {
			row, j := i/3, i%3
			d := -math.Exp(p)
			if b.action[row] == j {
				d++
			}
			want[j] -= b.advantage[row] * d / n
		}
		for i, v := range b.value {
			want[3] += cfg.ValueCoef * 2 / n * (v - b.target[i])
		}
		if _, err := l.gradientStep(b); err != nil {
			t.Fatal(err)
		}
		grad := *l.params
		grad.Data = l.grad
		got := append(append([]float64(nil), grad.Values(l.policy.Layers[1].B)...), grad.Values(l.value.Layers[1].B)...)
		for j := range want {
			if !near(got[j], want[j]) {
				t.Errorf("%s: gradient %v: want %v", name, got, want)
				break
			}
		}
	}
}

func TestExplainedVariance(t *testing.T) {
	r := newRollout(4, 1, newChain(false, 1).Spec())
	r.taken = []int{0, 1, 2, 3}
	copy(r.target, []float64{1, 2, 3, 4})
	for want, values := range map[float64][]float64{1: {2, 3, 4, 5}, 0: {7, 7, 7, 7}, 0.75: {0.5, 1, 1.5, 2}} {
		copy(r.value, values)
		if got := r.explained(); !near(got, want) {
			t.Errorf("values %v explain %g: want %g", values, got, want)
		}
	}
}

// Along a chain whose states are all new, the table after an episode is known.
func TestTraces(t *testing.T) {
	const alpha, gamma, lambda = 0.5, 0.9, 0.8
	pay := []float64{1, 2, 3, 4}
	for _, truncate := range []bool{false, true} {
		for _, published := range []bool{false, true} {
			c := newChain(truncate, pay...)
			l, err := NewSARSA(SARSAConfig{
				Bins: map[string][]float64{"step": {0.5, 1.5, 2.5, 3.5}}, Alpha: alpha, Gamma: gamma, Lambda: lambda,
				TraceMin: 1e-9, LogEpisodes: 1, BootstrapAtEnd: published,
			}, c.Spec())
			if err != nil {
				t.Fatal(err)
			}
			const after = 7 // what the state after the last is taken to be worth
			l.table.Values[l.row([]float64{4})] = after
			envs, err := env.NewVector(1, nil, c)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Learn(context.Background(), envs, len(pay)); err != nil {
				t.Fatal(err)
			}
			// All values were 0, so δ of step k is its reward, and of the last also γ
			// times what comes after, unless it terminated.
			for i := range pay {
				want := 0.0
				for k := i; k < len(pay); k++ {
					delta := pay[k]
					if k == len(pay)-1 && (truncate || published) {
						delta += gamma * after
					}
					want += alpha * delta * math.Pow(gamma*lambda, float64(k-i))
				}
				if got := l.Values([]float64{float64(i)})[0]; !near(got, want) {
					t.Errorf("truncated %v, published %v: state %d has value %g: want %g", truncate, published, i, got, want)
				}
			}
		}
	}
}

// The targets of Q-learning are those of their formula, each network asked alone.
func TestTargets(t *testing.T) {
	for _, double := range []bool{false, true} {
		for _, n := range []int{1, 3} {
			e := envtest.NewQueue()
			cfg := DefaultDQN()
			cfg.Hidden, cfg.NStep, cfg.Double, cfg.Gamma, cfg.LearningStarts, cfg.Dueling = []int{16}, n, double, 0.9, 1e6, true
			l, err := NewDQN(cfg, e.Spec())
			if err != nil {
				t.Fatal(err)
			}
			envs, err := env.NewVector(1, nil, e)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Learn(context.Background(), envs, 500); err != nil {
				t.Fatal(err)
			}
			for i := range l.target.Data { // else both networks are the same
				l.target.Data[i] += 0.1 * l.rng.NormFloat64()
			}
			if _, err := l.lossSampled(); err != nil {
				t.Fatal(err)
			}
			y, s := append([]float64(nil), l.y...), *l.sampled
			differ := false
			for i := range y {
				next, mask := s.Next[i*3:i*3+3], s.NextMask[i*3:i*3+3]
				mine := append([]float64(nil), l.values(next)...)
				l.online, l.target = l.target, l.online
				other := append([]float64(nil), l.values(next)...)
				l.online, l.target = l.target, l.online
				choice := other
				if double {
					choice = mine
				}
				differ = differ || best(mine, mask) != best(other, mask)
				if want := s.Return[i] + s.Discount[i]*other[best(choice, mask)]; !near(y[i], want) {
					t.Fatalf("double %v, n = %d: target %g: want %g", double, n, y[i], want)
				}
			}
			if !differ {
				t.Error("both networks choose alike everywhere: the test tested too little")
			}
		}
	}
}

// The last of equal values is the best: with nothing known, more workers.
func TestBest(t *testing.T) {
	for _, c := range []struct {
		values []float64
		mask   []bool
		want   int
	}{
		{[]float64{0, 0, 0}, nil, 2}, {[]float64{0, 0, 0}, []bool{true, true, false}, 1}, {[]float64{1, 2, 0}, nil, 1},
		{[]float64{5, -2, -3}, []bool{false, true, true}, 1}, {[]float64{math.Inf(-1), 0}, []bool{true, false}, 0},
	} {
		if got := best(c.values, c.mask); got != c.want {
			t.Errorf("best of %v with %v: %d, want %d", c.values, c.mask, got, c.want)
		}
	}
}

func TestNormalisers(t *testing.T) {
	box := &env.Box{Names: []string{"a", "b"}, Low: []float64{0, 2}, High: []float64{10, 2}}
	x := []float64{5, 2, 10, 2, 0, 2}
	for kind, want := range map[Normalise][]float64{
		NormaliseNone: x, NormaliseBounds: {0.5, 0, 1, 0, 0, 0},
		NormaliseRunning: {0, 0, 5 / math.Sqrt(50./3), 0, -5 / math.Sqrt(50./3), 0},
	} {
		f, err := newNormaliser(kind, box)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(x); i += 2 {
			f.see(x[i : i+2])
		}
		f.update()
		got := make([]float64, len(x))
		f.apply(got, x)
		for i := range got {
			if kind == NormaliseBounds && i%2 == 1 {
				continue // a number that cannot change is what it is
			}
			if !near(got[i], want[i]) {
				t.Errorf("%s: %v becomes %v: want %v", kind, x, got, want)
				break
			}
		}
	}
	f, _ := newNormaliser(NormaliseRunning, box)
	for range 100 {
		f.see([]float64{3, 2})
	}
	f.update()
	got := make([]float64, 2)
	if f.apply(got, []float64{4, 2}); got[0] != 10 || got[1] != 0 {
		t.Errorf("what never moved becomes %v after a move: want its limit, 10", got)
	}
	box.High[0] = math.Inf(1)
	if _, err := newNormaliser(NormaliseBounds, box); err == nil {
		t.Error("bounds were taken from a number without any")
	}
}

// Learning does not allocate once it has the memory it needs.
func TestLearningAllocatesNothing(t *testing.T) {
	d := DefaultDQN()
	d.LearningStarts, d.EpsilonSteps, d.EpsilonStart, d.Buffer = 100, 0, 0.1, 2000
	p := PPO()
	p.Rollout, p.Epochs = 32, 2
	s := PaperSARSA()
	s.Bins = map[string][]float64{"waiting": {2.5, 5.5}, "phase": {0.5}}
	spec := envtest.NewQueue().Spec()
	dqn, err1 := NewDQN(d, spec)
	pg, err2 := NewPG(p, spec)
	sarsa, err3 := NewSARSA(s, spec)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	for name, l := range map[string]Learner{"dqn": dqn, "ppo": pg, "sarsa": sarsa} {
		envs, err := env.NewVector(1, nil, envtest.NewQueue(), envtest.NewQueue())
		if err != nil {
			t.Fatal(err)
		}
		learn := func() {
			if err := l.Learn(context.Background(), envs, l.Steps()+64); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			learn()
		}
		if n := testing.AllocsPerRun(10, learn); n > 0 {
			t.Errorf("%s: %g allocations in 64 steps", name, n)
		}
	}
}

// Environment steps per second, learning included, where the environment itself
// costs next to nothing: 16 numbers, 5 actions, networks of 64 and 64 units.
func BenchmarkDQN(b *testing.B) {
	c := DefaultDQN()
	c.LearningStarts, c.EpsilonStart, c.EpsilonEnd = 0, 0.05, 0.05
	l, err := NewDQN(c, envtest.NewIdentity(5, 16, 200).Spec())
	benchmark(b, l, err, 1)
}

func BenchmarkPPO(b *testing.B) {
	l, err := NewPG(PPO(), envtest.NewIdentity(5, 16, 200).Spec())
	benchmark(b, l, err, 8)
}

func benchmark(b *testing.B, l Learner, err error, n int) {
	if err != nil {
		b.Fatal(err)
	}
	var list []env.Env
	for range n {
		list = append(list, envtest.NewIdentity(5, 16, 200))
	}
	envs, err := env.NewVector(1, nil, list...)
	if err != nil {
		b.Fatal(err)
	}
	learn := func(steps int) {
		if err := l.Learn(context.Background(), envs, l.Steps()+steps); err != nil {
			b.Fatal(err)
		}
	}
	learn(1000)
	from := l.Steps()
	b.ReportAllocs()
	b.ResetTimer()
	learn(b.N)
	b.ReportMetric(float64(l.Steps()-from)/b.Elapsed().Seconds(), "env_steps/s")
}
