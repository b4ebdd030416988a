package workload

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The built-in scenarios offer the load that their definitions imply, and the
// same seed gives the same tasks.
func TestBuiltinLoad(t *testing.T) {
	for name, want := range map[string]float64{
		"burst-cron-150ms": 80, "burst-150ms": 110, "constant": 100, "periodic": 110, "variable": 110, "bursty": 50 + 150*27.5/147.5,
		"ramp": 110, "flash": 60 + 120*480/3600.,
	} {
		s, err := Find(name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var rates []float64
		for seed := range uint64(6) {
			rates = append(rates, float64(count(s, seed))/s.Horizon)
		}
		mean, half := interval(rates)
		if math.Abs(mean-want) > half+0.01*want {
			t.Errorf("%s: %.4g ± %.2g arrivals per second, want %.4g", name, mean, half, want)
		}
		a, b := s.Draw(7), s.Draw(7)
		if !slices.Equal(a.At, b.At) || !slices.Equal(a.Service, b.Service) || !slices.Equal(a.Changes, b.Changes) {
			t.Errorf("%s: the same seed gives other tasks", name)
		}
		if c := s.Draw(8); slices.Equal(a.At, c.At) {
			t.Errorf("%s: another seed gives the same arrivals", name)
		}
	}
}

// The built-in scenarios never change: all results are compared on them.
func TestBuiltinsAreFixed(t *testing.T) {
	var got strings.Builder
	for i := range builtin {
		got.Write(builtin[i].YAML())
		got.WriteString("\n")
	}
	want, err := os.ReadFile(filepath.Join("testdata", "builtin.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("a built-in scenario has changed; make another one instead:\n%s", diff)
	}
}

// interval is the mean of samples and the half width of its 99.9 % interval.
func interval(x []float64) (mean, half float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		half += (v - mean) * (v - mean) / (n - 1)
	}
	return mean, 3.5 * math.Sqrt(half/n)
}

// count of a scenario's arrivals.
func count(s *Scenario, seed uint64) int {
	at, _ := s.Arrivals.Draw(Stream(seed, StreamArrivals), s.Horizon, nil)
	return len(at)
}
