package farmenv

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"farmhand/policy"
	"farmhand/policy/guard"
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

// What is late in a step counts only up to a bound.
func TestLatenessIsBounded(t *testing.T) {
	const weight, most = 3, 2
	plain, other := burst(t, 240), burst(t, 240)
	other.cfg.LateStep = most
	for _, f := range []*Farm{plain, other} {
		f.WeighLate([]float64{weight})
	}
	_, info := plain.Reset(1, nil)
	other.Reset(1, nil)
	bounded := 0
	for over := false; !over; { // the least that is allowed: bursts come too late
		action := slices.Index(info.Mask, true)
		_, _, _, _, want := plain.Step(action)
		late := want.Parts[0]
		if late < -weight*most {
			late, bounded = -weight*most, bounded+1
		}
		sum := late + want.Parts[1] + want.Parts[2]
		var got float64
		_, got, _, over, info = other.Step(action)
		if math.Abs(got-sum) > 1e-12*math.Abs(sum) || sum == 0 {
			t.Fatalf("a reward is %g: want %g", got, sum)
		}
	}
	if bounded == 0 {
		t.Error("never was so much late that it was bounded")
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
