package rl_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"farmhand/env"
	"farmhand/env/envtest"
	"farmhand/rl"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func saved(t testing.TB, l rl.Learner) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := l.Save(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

const short = 3000 // environment steps

// Equal seeds give equal learners; others do not.
func TestSameSeedSameWeights(t *testing.T) {
	for _, k := range learners {
		train := func(seed uint64) []byte {
			l := must(k.make(seed, queue().Spec()))
			if err := l.Learn(context.Background(), vector(t, 1, 3, queue), short); err != nil {
				t.Fatal(err)
			}
			return saved(t, l)
		}
		first := train(1)
		if !bytes.Equal(train(1), first) {
			t.Errorf("%s: the same seed gave another learner", k.name)
		}
		if bytes.Equal(train(2), first) {
			t.Errorf("%s: another seed gave the same learner", k.name)
		}
	}
}

// cut is a context that is done after it was asked a number of times: every
// update boundary asks once.
type cut struct {
	context.Context
	left int
}

func (c *cut) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A learner that is stopped at any update boundary, saved, and taken up again by
// another process, ends as one that was never stopped, to the last bit.
func TestCutsLeaveNoTrace(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range learners {
		whole := must(k.make(1, queue().Spec()))
		if err := whole.Learn(context.Background(), vector(t, 1, 3, queue), short); err != nil {
			t.Fatal(err)
		}
		l := must(k.make(1, queue().Spec()))
		cuts, most := 0, 300
		if _, ok := l.(*rl.PG); ok {
			most = 2 // its updates are rare
		}
		for {
			err := l.Learn(&cut{context.Background(), 1 + rng.IntN(most)}, vector(t, 1, 3, queue), short)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			state := saved(t, l)
			l = must(k.make(1, queue().Spec()))
			if err := l.Load(bytes.NewReader(state)); err != nil {
				t.Fatal(err)
			}
			if err == nil {
				break
			}
			cuts++
		}
		if !bytes.Equal(saved(t, l), saved(t, whole)) {
			t.Errorf("%s: %d cuts made another learner", k.name, cuts)
		}
		if l.Steps() != whole.Steps() || cuts < 2 {
			t.Errorf("%s: %d steps with %d cuts: want %d steps, and some cuts", k.name, l.Steps(), cuts, whole.Steps())
		}
	}
}

// A loaded learner does what the saved one did.
func TestSaveLoadSameActions(t *testing.T) {
	for _, k := range learners {
		l := must(k.make(1, queue().Spec()))
		if err := l.Learn(context.Background(), vector(t, 1, 3, queue), short); err != nil {
			t.Fatal(err)
		}
		twin := must(k.make(1, queue().Spec()))
		if err := twin.Load(bytes.NewReader(saved(t, l))); err != nil {
			t.Fatal(err)
		}
		for _, s := range envtest.QueueStates() {
			if a, b := l.Act(s.Obs(), s.Mask()), twin.Act(s.Obs(), s.Mask()); a != b {
				t.Errorf("%s: actions %d and %d in %+v", k.name, a, b, s)
			}
		}
	}
}

func TestBadCheckpointsAreRefused(t *testing.T) {
	for _, k := range learners {
		l := must(k.make(1, queue().Spec()))
		if err := l.Learn(context.Background(), vector(t, 1, 3, queue), 500); err != nil {
			t.Fatal(err)
		}
		good := saved(t, l)
		flipped := bytes.Clone(good)
		flipped[len(flipped)-100] ^= 4
		for name, data := range map[string][]byte{"empty": nil, "cut off": good[:len(good)/2], "flipped": flipped} {
			if err := must(k.make(1, queue().Spec())).Load(bytes.NewReader(data)); err == nil {
				t.Errorf("%s: a checkpoint that is %s was loaded", k.name, name)
			}
		}
		if err := must(k.make(2, queue().Spec())).Load(bytes.NewReader(good)); err == nil || !strings.Contains(err.Error(), "it is of") {
			t.Errorf("%s: error %v for a checkpoint with another seed", k.name, err)
		}
		if err := must(k.make(1, identity().Spec())).Load(bytes.NewReader(good)); err == nil {
			t.Errorf("%s: a checkpoint of another environment was loaded", k.name)
		}
	}
}

// blocked is Identity in which the last action is never allowed; Identity panics
// where it is taken.
type blocked struct {
	*envtest.Identity
	mask []bool
}

func newBlocked() env.Env {
	e := envtest.NewIdentity(4, 4, 20)
	return &blocked{e, []bool{true, true, true, false}}
}

func (b *blocked) Reset(seed uint64, o env.Options) ([]float64, env.Info) {
	obs, info := b.Identity.Reset(seed, o)
	info.Mask = b.mask
	return obs, info
}

func (b *blocked) Step(a int) ([]float64, float64, bool, bool, env.Info) {
	if !b.mask[a] {
		panic("an action that is not allowed was taken")
	}
	obs, r, terminated, truncated, info := b.Identity.Step(a)
	info.Mask = b.mask
	return obs, r, terminated, truncated, info
}

// Actions that are not allowed are never taken, whoever explores, and nothing is
// learned of them: their outputs' weights stay what they were.
func TestMaskedActionsGetNothing(t *testing.T) {
	for _, k := range learners {
		l := must(k.make(1, newBlocked().Spec()))
		weights := func() (w []float64) {
			e, ok := l.(interface{ Network() rl.Network })
			if !ok || k.name == "dueling" { // where the mean over all actions counts
				return nil
			}
			layer := e.Network().Layers[len(e.Network().Layers)-1]
			for j := range layer.In {
				w = append(w, layer.Weight[j*layer.Out+3])
			}
			return append(w, layer.Bias[3])
		}
		before := weights()
		if err := l.Learn(context.Background(), vector(t, 1, 4, newBlocked), short); err != nil {
			t.Fatal(err)
		}
		for i, w := range weights() {
			if w != before[i] {
				t.Fatalf("%s: weight %d of the action that is not allowed went from %g to %g", k.name, i, before[i], w)
			}
		}
		if a := l.Act([]float64{0, 0, 0, 1}, []bool{true, true, true, false}); a == 3 {
			t.Errorf("%s: chooses the action that is not allowed", k.name)
		}
	}
}

// What is told has the names of Stable-Baselines3, and makes sense.
func TestLog(t *testing.T) {
	rollout := []string{"rollout/ep_rew_mean", "rollout/ep_len_mean", "rollout/ep_waiting_mean", "rollout/ep_replica_slots_mean", "time/total_timesteps", "time/episodes"}
	want := map[string][]string{
		"pg": {"train/loss", "train/policy_gradient_loss", "train/value_loss", "train/entropy_loss", "train/approx_kl", "train/clip_fraction",
			"train/clip_range", "train/explained_variance", "train/learning_rate", "train/n_updates"},
		"dqn":   {"rollout/exploration_rate", "train/loss", "train/learning_rate", "train/n_updates"},
		"sarsa": {"rollout/exploration_rate", "train/learning_rate"},
	}
	for _, k := range learners {
		l, kind := must(k.make(1, queue().Spec())), "dqn"
		var last map[string]float64
		calls, at := 0, 0
		log := func(steps int, values map[string]float64) {
			last = map[string]float64{}
			for name, v := range values {
				last[name] = v
			}
			calls, at = calls+1, steps
		}
		l.SetLog(log)
		switch l.(type) {
		case *rl.PG:
			kind = "pg"
		case *rl.SARSA:
			kind = "sarsa"
		}
		if err := l.Learn(context.Background(), vector(t, 1, 4, queue), 6000); err != nil {
			t.Fatal(err)
		}
		for _, name := range append(append([]string(nil), rollout...), want[kind]...) {
			if v, ok := last[name]; !ok || math.IsNaN(v) {
				t.Errorf("%s: %s is %g, told %v", k.name, name, v, ok)
			}
		}
		if calls < 3 || last["rollout/ep_len_mean"] != 100 || last["time/total_timesteps"] != float64(at) || !(last["rollout/ep_rew_mean"] < 0) {
			t.Errorf("%s: %d calls, the last at %d: %v", k.name, calls, at, last)
		}
		if kind == "pg" && !(last["train/entropy_loss"] < 0 && last["train/entropy_loss"] > -math.Log(3) && last["train/explained_variance"] <= 1) {
			t.Errorf("%s: %v", k.name, last)
		}
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	spec := queue().Spec()
	for want, build := range map[string]func() error{
		"Gamma is NaN": func() error {
			c := rl.PPO()
			c.Gamma = math.NaN()
			_, err := rl.NewPG(c, spec)
			return err
		},
		"LearningRate is 1e+09": func() error {
			c := rl.DefaultDQN()
			c.LearningRate = 1e9
			_, err := rl.NewDQN(c, spec)
			return err
		},
		"Tau below 1 with TargetEvery above 1": func() error {
			c := rl.PaperDQN()
			c.TargetEvery = 600
			_, err := rl.NewDQN(c, spec)
			return err
		},
		"Hidden has a layer of 0 units":     func() error { c := rl.PPO(); c.Hidden = []int{0}; _, err := rl.NewPG(c, spec); return err },
		"activation \"gelu\"":               func() error { c := rl.PPO(); c.Activation = "gelu"; _, err := rl.NewPG(c, spec); return err },
		"Normalise is \"\"":                 func() error { c := rl.PPO(); c.Normalise = ""; _, err := rl.NewPG(c, spec); return err },
		"worker_q, which Queue-v0 does not": func() error { _, err := rl.NewSARSA(onlyWorkerQ(), spec); return err },
		"want rising edges": func() error {
			c := onlyWorkerQ()
			c.Bins = map[string][]float64{"waiting": {2, 1}}
			_, err := rl.NewSARSA(c, spec)
			return err
		},
		"environments of Identity-v0": func() error {
			l := must(rl.NewDQN(queueDQN(1), spec))
			return l.Learn(context.Background(), vector(t, 1, 1, identity), 10)
		},
		"number of environments has changed": func() error {
			l := must(rl.NewDQN(queueDQN(1), spec))
			if err := l.Learn(context.Background(), vector(t, 1, 1, queue), 10); err != nil {
				return err
			}
			return l.Learn(context.Background(), vector(t, 1, 2, queue), 20)
		},
		"Noise is 2": func() error {
			c := rl.DefaultClone()
			c.Noise = 2
			return must(rl.NewDQN(queueDQN(1), spec)).Clone(context.Background(), vector(t, 1, 1, queue), nil, c)
		},
	} {
		if err := build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: want one with %q", err, want)
		}
	}
}

func onlyWorkerQ() rl.SARSAConfig {
	c := rl.PaperSARSA()
	c.Bins = map[string][]float64{"worker_q": {1}}
	return c
}

// The published settings are settings.
func TestPresets(t *testing.T) {
	spec := &env.Spec{ID: "Farm-paper", Action: env.Discrete{Names: []string{"-1", "0", "+1"}}}
	for _, name := range []string{"input_q", "worker_q", "result_q", "output_q", "workers", "avg_time", "max_time", "arrival_rate", "qos_rate"} {
		spec.Observation.Names = append(spec.Observation.Names, name)
		spec.Observation.Low, spec.Observation.High = append(spec.Observation.Low, 0), append(spec.Observation.High, 10)
	}
	must(rl.NewSARSA(rl.PaperSARSA(), spec))
	must(rl.NewDQN(rl.PaperDQN(), spec))
	must(rl.NewDQN(rl.DefaultDQN(), spec))
	must(rl.NewPG(rl.PPO(), spec))
	must(rl.NewPG(rl.REINFORCE(), spec))
	cells := 1
	for _, edges := range rl.PaperSARSA().Bins {
		cells *= len(edges) + 1
	}
	if cells != 53_760 {
		t.Errorf("the published bins make %d cells: want 53,760", cells)
	}
}
