// Package envtest has what every environment must pass (Check), and small
// environments whose best policy is known, on which learners are tested.
package envtest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"farmhand/env"
)

// steps is how long each environment is played.
const steps = 3000

// Check fails a test where an environment does not keep what env.Env says. make
// makes environments that are alike.
func Check(t *testing.T, make func() env.Env) {
	t.Helper()
	t.Run("returns what its spaces contain", func(t *testing.T) { checkSpaces(t, make()) })
	t.Run("equal seeds give equal episodes", func(t *testing.T) { checkSeeds(t, make) })
	t.Run("a vector is taken up where it was", func(t *testing.T) { checkRestore(t, make) })
	t.Run("mistakes are refused", func(t *testing.T) { checkMistakes(t, make) })
}

func checkSpaces(t *testing.T, e env.Env) {
	spec := e.Spec()
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	check := func(obs []float64, info env.Info) {
		t.Helper()
		if err := spec.Observation.Check(obs); err != nil {
			t.Fatal(err)
		}
		if info.Mask != nil && (len(info.Mask) != spec.Action.N() || !slices.Contains(info.Mask, true)) {
			t.Fatalf("mask %v: want %d values and at least one action allowed", info.Mask, spec.Action.N())
		}
	}
	obs, info := e.Reset(1, nil)
	check(obs, info)
	episodes := 0
	for range steps {
		obs, reward, terminated, truncated, after := e.Step(Allowed(rng, spec.Action.N(), info.Mask))
		info = after
		check(obs, info)
		sum := 0.0
		for _, p := range info.Parts {
			sum += p
		}
		if len(info.Parts) != len(spec.Parts) || len(info.Metrics) != len(spec.Metrics) {
			t.Fatalf("%d parts and %d metrics: want %d and %d", len(info.Parts), len(info.Metrics), len(spec.Parts), len(spec.Metrics))
		}
		if len(spec.Parts) > 0 && !(math.Abs(sum-reward) <= 1e-9*(1+math.Abs(reward))) {
			t.Fatalf("parts add up to %g: want the reward, %g", sum, reward)
		}
		if math.IsNaN(reward) || math.IsInf(reward, 0) {
			t.Fatalf("reward %g", reward)
		}
		if terminated || truncated {
			episodes++
			obs, info = e.Reset(uint64(episodes), nil)
			check(obs, info)
		}
	}
}

// Allowed draws one of the actions that a mask allows, each as likely.
func Allowed(rng *rand.Rand, n int, mask []bool) int {
	for {
		if a := rng.IntN(n); mask == nil || mask[a] {
			return a
		}
	}
}

// record plays a seed's first steps and keeps all that is returned.
func record(e env.Env, seed uint64) (log []float64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	n := e.Spec().Action.N()
	obs, info := e.Reset(seed, nil)
	log = append(log, obs...)
	for range steps / 10 {
		obs, reward, terminated, truncated, after := e.Step(Allowed(rng, n, info.Mask))
		info = after
		log = append(append(append(log, obs...), reward), info.Metrics...)
		for _, m := range info.Mask {
			log = append(log, map[bool]float64{true: 1}[m])
		}
		if terminated || truncated {
			break
		}
	}
	return log
}

func checkSeeds(t *testing.T, make func() env.Env) {
	e := make()
	first := record(e, 7)
	record(e, 8)
	if !slices.Equal(record(e, 7), first) {
		t.Error("an episode depends on what was played before")
	}
	if !slices.Equal(record(make(), 7), first) {
		t.Error("an episode depends on more than seed and actions")
	}
}

func checkRestore(t *testing.T, make func() env.Env) {
	vector := func() *env.Vector {
		v, err := env.NewVector(5, nil, make(), make())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v, rng := vector(), rand.New(rand.NewPCG(4, 5))
	actions := []int{0, 0}
	play := func() *env.Batch {
		b, n := v.Current(), v.Spec().Action.N()
		for i := range actions {
			actions[i] = Allowed(rng, n, b.Mask[i*n:(i+1)*n])
		}
		return v.Step(actions)
	}
	for range steps / 10 {
		play()
	}
	twin := vector()
	if err := twin.Restore(v.State()); err != nil {
		t.Fatal(err)
	}
	for range steps / 10 {
		a := play()
		b := twin.Step(actions)
		if !slices.Equal(a.Obs, b.Obs) || !slices.Equal(a.Reward, b.Reward) || !slices.Equal(a.Mask, b.Mask) || !slices.Equal(a.Began, b.Began) {
			t.Fatal("a restored vector goes on otherwise")
		}
	}
}

func checkMistakes(t *testing.T, make func() env.Env) {
	refused := func(what string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s did not panic", what)
			}
		}()
		f()
	}
	e := make()
	refused("an unknown option", func() { e.Reset(1, env.Options{"no such option": 1}) })
	_, info := e.Reset(1, nil)
	refused("action -1", func() { e.Step(-1) })
	refused("an action above the last", func() { e.Step(e.Spec().Action.N()) })
	if a := slices.Index(info.Mask, false); a >= 0 {
		refused("an action that is not allowed", func() { e.Step(a) })
	}
}
