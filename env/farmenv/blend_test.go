package farmenv

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"farmhand/sim/workload"
)

// A blend is all arrivals of both, and its rate at any instant the sum of theirs; stretched,
// they take longer, and are as many.
func TestBlendOfArrivals(t *testing.T) {
	steps := workload.OnOff(30, workload.Constant{Value: 50}, workload.Constant{Value: 80})
	b := blend{stretched{steps, 2}, workload.Poisson{Rate: 10}}
	at, changes := b.Draw(rand.New(rand.NewPCG(1, 1)), 2400, []float64{-1})
	if at[0] != -1 || !slices.IsSorted(at) {
		t.Fatal("what was drawn before is gone, or the instants are out of order")
	}
	for i, want := range []workload.Change{{At: 0, Rate: 10}, {At: 160, Rate: 25}, {At: 260, Rate: 10}, {At: 420, Rate: 25}} {
		if got := changes[i]; math.Abs(got.At-want.At) > 1e-9 || math.Abs(got.Rate-want.Rate) > 1e-9 {
			t.Errorf("change %d is %v: want %v", i, got, want)
		}
	}
	for _, period := range []struct{ from, to, rate float64 }{{0, 160, 10}, {160, 260, 25}, {260, 420, 10}} {
		n := 0
		for _, x := range at[1:] {
			if x >= period.from && x < period.to {
				n++
			}
		}
		if want := period.rate * (period.to - period.from); math.Abs(float64(n)-want) > 5*math.Sqrt(want) {
			t.Errorf("%d tasks from %g to %g s: want about %g", n, period.from, period.to, want)
		}
	}
}

// Blends have the rate of their scenario, half to twice, and differ with the seed alone.
func TestBlended(t *testing.T) {
	m := NewMix(600, found(t, "constant", "periodic", "bursty")...)
	seen := map[string]bool{}
	for kind, s := range m.Scenarios {
		for seed := range uint64(20) {
			b := m.Blended(kind, seed)
			if again := m.Blended(kind, seed); again.Arrivals.String() != b.Arrivals.String() || !strings.HasSuffix(b.Name, ", blended") {
				t.Fatalf("%s with %v, then %v", b.Name, b.Arrivals, again.Arrivals)
			}
			seen[b.Arrivals.String()] = true
			rate := float64(len(b.Draw(seed).At)) / b.Horizon / m.rate[kind]
			if rate < 0.4 || rate > 2.5 { // bursty differs from hour to hour
				t.Errorf("%s of seed %d has %g times the rate", s.Name, seed, rate)
			}
			if b.Farm != s.Farm || b.Service != s.Service {
				t.Errorf("%s has another farm", s.Name)
			}
		}
	}
	if len(seen) < 60 {
		t.Errorf("%d blends are different: want 60", len(seen))
	}
	m.Blend = true
	blended := 0
	for seed := range uint64(400) {
		if e := m.Episode(seed); strings.HasSuffix(e.Scenario.Name, ", blended") {
			blended++
		}
	}
	if blended < 160 || blended > 240 {
		t.Errorf("%d of 400 episodes are blends: want half", blended)
	}
}

// Tasks that came when they came are not blended.
func TestBlendedKeepsRecordedTasks(t *testing.T) {
	s := *found(t, "constant")[0]
	s.Arrivals = &workload.Instants{At: []float64{1, 2, 3}}
	m := NewMix(600, &s)
	if b := m.Blended(0, 1); b.Arrivals != s.Arrivals || b.Name != s.Name {
		t.Errorf("%s has %v", b.Name, b.Arrivals)
	}
}
