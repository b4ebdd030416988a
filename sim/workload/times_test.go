package workload

import (
	"math"
	"testing"
)

// Every kind at k times the rate has k times the arrivals, and changes when it did.
func TestTimes(t *testing.T) {
	trace, err := ReadTrace("testdata/tiny.csv")
	if err != nil {
		t.Fatal(err)
	}
	replay, err := NewReplay(trace, ReplayOptions{Bin: 300})
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]Arrivals{
		"poisson": Poisson{5}, "levels": Levels{Levels: []Level{{2, Uniform{20, 30}}, {9, Uniform{20, 30}}}},
		"sinusoid": Sinusoid{Mean: 8, Amplitude: 7, Period: 300}, "ramp": Ramp(1, 9, 600), "walk": Walk{Min: 2, Max: 20, Start: 9, Step: 2, Every: 5},
		"flash":       Flash{Base: 4, Plateaus: []Plateau{{12, Uniform{100, 500}, Constant{100}}}},
		"selfsimilar": SelfSimilar{Mean: 6, Sources: 10, Hurst: 0.7, On: 1, Off: 2}, "replay": replay,
	} {
		const horizon, k = 900, 3
		q, ok := Times(p, k)
		if !ok {
			t.Errorf("%s cannot be had at another rate", name)
			continue
		}
		var ratio []float64
		for seed := range uint64(30) {
			few, slow := p.Draw(Stream(seed, StreamArrivals), horizon, nil)
			many, fast := q.Draw(Stream(seed, StreamArrivals), horizon, nil)
			ratio = append(ratio, float64(len(many))/float64(len(few)))
			if len(slow) != len(fast) {
				t.Fatalf("%s: %d changes of the rate, at %d times it %d", name, len(slow), k, len(fast))
			}
			for i := range slow {
				if slow[i].At != fast[i].At || math.Abs(fast[i].Rate-k*slow[i].Rate) > 1e-9*fast[i].Rate {
					t.Fatalf("%s: change %+v is %+v at %d times the rate", name, slow[i], fast[i], k)
				}
			}
		}
		if mean, half := interval(ratio); math.Abs(mean-k) > half+0.02*k {
			t.Errorf("%s: %.3f ± %.3f times the arrivals, want %d", name, mean, half, k)
		}
	}
	if p, ok := Times(&Instants{At: []float64{1, 2}}, 2); ok || p == nil {
		t.Error("tasks that came when they came are had at another rate")
	}
}
