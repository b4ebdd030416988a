package farmenv

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/policy/learned"
	"farmhand/sim"
	"farmhand/sim/workload"
)

func burst(t testing.TB, horizon float64) *Farm {
	t.Helper()
	s, err := workload.Find("burst-cron-150ms", workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rule, err := policy.New("staffing:down=20")
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFarm("Farm-v0", FarmConfig{Episode: NewMix(horizon, s).Episode, Rule: rule,
		Guard: &guard.Settings{Learned: true}, Horizon: horizon})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// any draws an action that is allowed.
func any(r *rand.Rand, mask []bool) int {
	for {
		if a := r.IntN(len(mask)); mask[a] {
			return a
		}
	}
}

// What is returned is in the spaces, the parts add up, masks are honoured, and equal
// seeds and actions give equal episodes.
func TestFarmConforms(t *testing.T) {
	f := burst(t, 240)
	type step struct {
		obs    []float64
		reward float64
	}
	play := func(seed uint64) (steps []step) {
		r := rand.New(rand.NewPCG(seed, 9))
		obs, info := f.Reset(seed, nil)
		for {
			if err := f.Spec().Observation.Check(obs); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(info.Mask, true) {
				t.Fatal("no action is allowed")
			}
			var reward float64
			var terminated, truncated bool
			obs, reward, terminated, truncated, info = f.Step(any(r, info.Mask))
			if sum := info.Parts[0] + info.Parts[1] + info.Parts[2]; sum != reward || reward > 0 {
				t.Fatalf("parts %v of a reward of %g", info.Parts, reward)
			}
			steps = append(steps, step{slices.Clone(obs), reward})
			if terminated {
				t.Fatal("a farm has no terminal state")
			}
			if truncated {
				return steps
			}
		}
	}
	a, b, c := play(1), play(1), play(2)
	same := func(x, y []step) bool {
		return slices.EqualFunc(x, y, func(p, q step) bool { return p.reward == q.reward && slices.Equal(p.obs, q.obs) })
	}
	if len(a) != 120 {
		t.Errorf("240 s at 2 s are %d steps", len(a))
	}
	if !same(a, b) {
		t.Error("the same seed gave another episode")
	}
	if same(a, c) {
		t.Error("another seed gave the same episode")
	}
}

// Beside another law the reward is what the agent does better on the same work, in units of
// that law's workers.
func TestBeside(t *testing.T) {
	const weight = 3
	law := must(policy.New("static:n=5"))
	cfg := burst(t, 240).cfg
	cfg.Beside = law
	f := must(NewFarm("Farm-v0", cfg))
	f.WeighLate([]float64{weight})
	_, info := f.Reset(1, nil)
	var parts, metrics [5]float64
	for over := false; !over; {
		_, _, _, over, info = f.Step(slices.Index(info.Mask, true)) // the least that is allowed: bursts come too late
		for i, x := range info.Parts {
			parts[i] += x
		}
		for i, x := range info.Metrics {
			metrics[i] += x
		}
	}
	s := *cfg.Episode(1).Scenario
	s.Horizon = cfg.Horizon
	other := must(sim.New(sim.Config{Scenario: &s, Tasks: s.Draw(1), Seed: 1}))
	want, err := other.Play(t.Context(), sim.Driver{Policy: law, Guard: &guard.Settings{}})
	if err != nil {
		t.Fatal(err)
	}
	tasks, target := float64(len(s.Draw(1).At)), s.Farm.Target
	late := (metrics[MetricLate] - float64(other.Totals().Late)) / (tasks * s.Farm.Interval / s.Horizon * (1 - target))
	workers := (metrics[MetricWorkers] - want.WorkerSeconds) / (s.Farm.Interval * want.MeanWorkers)
	if late == 0 || math.Abs(parts[0]+weight*late) > 1e-9*math.Abs(late) || math.Abs(parts[1]+workers) > 1e-9*math.Abs(workers) {
		t.Errorf("parts %v: want %g for lateness and %g for workers", parts[:3], -weight*late, -workers)
	}
}

// Who does what the law beside does has neither reward nor cost, whatever the load.
func TestBesideItself(t *testing.T) {
	cfg := burst(t, 240).cfg
	cfg.Rule, cfg.Guard = must(policy.New("staffing")), &guard.Settings{}
	cfg.Beside = cfg.Rule
	f := must(NewFarm("Farm-v0", cfg))
	for _, seed := range []uint64{1, 2, 1} {
		_, info := f.Reset(seed, nil)
		for over := false; !over; {
			action := learned.Hold
			if info.Mask[learned.Rule] {
				action = learned.Rule
			}
			if _, _, _, over, info = f.Step(action); info.Parts[0] != 0 || math.Abs(info.Parts[1]) > 1e-9 {
				t.Fatalf("parts %v: want none of lateness and workers", info.Parts)
			}
		}
	}
}

// An action that the mask forbids is a mistake in the program.
func TestFarmRefusesMaskedActions(t *testing.T) {
	f := burst(t, 60)
	_, info := f.Reset(1, nil)
	forbidden := slices.Index(info.Mask, false) // one replica is there: nothing can go
	if forbidden < 0 {
		t.Fatal("all actions are allowed")
	}
	defer func() {
		if recover() == nil {
			t.Error("it was taken")
		}
	}()
	f.Step(forbidden)
}

func BenchmarkFarm(b *testing.B) {
	f := burst(b, 1800)
	r := rand.New(rand.NewPCG(1, 1))
	_, info := f.Reset(0, nil)
	for i := range uint64(b.N) {
		var truncated bool
		_, _, _, truncated, info = f.Step(any(r, info.Mask))
		if truncated {
			_, info = f.Reset(i+1, nil)
		}
	}
}
