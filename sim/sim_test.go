package sim

import (
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"farmhand/policy"
	"farmhand/sim/workload"
)

// everything is a scenario with every feature, under a load that rises and falls.
func everything() (*workload.Scenario, *workload.Tasks) {
	sc := &workload.Scenario{Name: "everything", Farm: workload.Farm{Interval: 2, Deadline: 1, Target: 0.95, Timeout: 2, Slots: 2, Min: 1, Max: 30, Start: 3,
		Attempts: 3, Failing: 0.02}, Platform: workload.Platform{Startup: lognormal{2, 0.3}, Call: uniform{0, 0.2}, Seen: uniform{0, 1}, Stop: uniform{0, 1},
		Answer: uniform{0, 0.01}, Overhead: 0.001, Victim: workload.RandomVictim, Crashes: 0.001}}
	tasks := poisson(3, 40, lognormal{0.2, 0.8}, 600)
	r := workload.Stream(3, 77)
	for i, at := range tasks.At {
		tasks.At[i] = at + 4*math.Sin(at/30)*math.Sin(at/30)/2
		tasks.Class = append(tasks.Class, uint8(r.IntN(3)))
		tasks.Tenant = append(tasks.Tenant, uint16(r.IntN(5)))
		tasks.Deadline = append(tasks.Deadline, 0.5+r.Float64())
	}
	tasks.Horizon += 2
	return sc, tasks
}

// trajectory is all that a run shows, as numbers.
func trajectory(t testing.TB, s *Sim, cfg Config) (list []float64) {
	if err := s.Reset(cfg); err != nil {
		t.Error(err)
		return nil
	}
	var o policy.Observation
	for k := 0; ; k++ {
		s.Observe(&o)
		list = o.AppendVector(append(list, s.Now(), float64(s.Totals().Late), s.Totals().WorkerSeconds))
		s.Scale(1 + (k*k/3)%17)
		if !s.Advance() {
			r := s.Result()
			return append(list, r.P99, r.Wait, r.Mean, float64(r.Crashes), float64(r.Lost), float64(r.Dead))
		}
	}
}

// The same scenario, tasks and seed give the same trajectory, whatever runs beside,
// in fresh memory or used.
func TestRunsAreDeterministic(t *testing.T) {
	sc, tasks := everything()
	cfg := Config{Scenario: sc, Tasks: tasks, Seed: 9}
	old := runtime.GOMAXPROCS(1)
	want := trajectory(t, &Sim{}, cfg)
	runtime.GOMAXPROCS(8)
	defer runtime.GOMAXPROCS(old)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			s := &Sim{}
			other := cfg
			other.Seed = uint64(i)
			random := *sc
			random.Platform.Balance, random.Farm.FIFO = workload.RandomReplica, i%2 == 0
			other.Scenario = &random
			trajectory(t, s, other)
			got := trajectory(t, s, cfg)
			if len(got) != len(want) {
				t.Errorf("%d numbers, want %d", len(got), len(want))
				return
			}
			for k := range got {
				if math.Float64bits(got[k]) != math.Float64bits(want[k]) {
					t.Errorf("number %d is %g, want %g", k, got[k], want[k])
					return
				}
			}
		})
	}
	group.Wait()
	cfg.Seed++
	other := trajectory(t, &Sim{}, cfg)
	for k := range other {
		if k >= len(want) || other[k] != want[k] {
			return
		}
	}
	t.Error("another seed gives the same run")
}

// In the memory of runs before, a run allocates nothing.
func TestNothingIsAllocatedPerEvent(t *testing.T) {
	sc, tasks := everything()
	for _, c := range []struct {
		name  string
		sc    *workload.Scenario
		tasks *workload.Tasks
	}{{"plain", plain(12), poisson(1, 40, exponential(0.2), 600)}, {"everything", sc, tasks}} {
		s := &Sim{}
		var o policy.Observation
		play := func() (n float64, events int) {
			if err := s.Reset(Config{Scenario: c.sc, Tasks: c.tasks, Seed: 1}); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for k := 0; ; k++ {
				s.Observe(&o)
				if c.name != "plain" {
					s.Scale(6 + k%13)
				}
				if !s.Advance() {
					break
				}
			}
			runtime.ReadMemStats(&after)
			return float64(after.Mallocs - before.Mallocs), s.Result().Events
		}
		for range 3 { // memory grows to what is needed
			play()
		}
		if n, events := play(); n > 20 || events < 40_000 { // the runtime allocates a little
			t.Errorf("%s: %g allocations with %d events", c.name, n, events)
		}
	}
}

// What cannot be simulated is refused, with the field and what would be right.
func TestBadInput(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for want, spoil := range map[string]func(*workload.Scenario, *workload.Tasks){
		"Farm.Interval: 0 ":         func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Interval = 0 },
		"Farm.Interval: NaN ":       func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Interval = nan },
		"Farm.Interval: 1e-09 ":     func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Interval = 1e-9 },
		"Farm.Deadline: 1e+10 ":     func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Deadline = 1e10 },
		"Tasks.Horizon: +Inf ":      func(_ *workload.Scenario, t *workload.Tasks) { t.Horizon = inf },
		"Farm.Interval: +Inf ":      func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Interval = inf },
		"Farm.Deadline: -1 ":        func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Deadline = -1 },
		"Farm.DeadlineFactor: -2 ":  func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.DeadlineFactor = -2 },
		"Farm.Target: 1.5 ":         func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Target = 1.5 },
		"Farm.Timeout: NaN ":        func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Timeout = nan },
		"Farm.Prior: -1 ":           func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Prior = -1 },
		"Farm.Slots: -1 ":           func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Slots = -1 },
		"Farm.Min: 80 ":             func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Min = 80 },
		"Farm.Start: 65 ":           func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Start = 65 },
		"Platform.Cap, 5":           func(s *workload.Scenario, _ *workload.Tasks) { s.Platform.Cap, s.Farm.Start = 5, 6 },
		"Farm.Attempts: 101 ":       func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Attempts = 101 },
		"Farm.Failing: 2 ":          func(s *workload.Scenario, _ *workload.Tasks) { s.Farm.Failing = 2 },
		"Platform.Overhead: -1 ":    func(s *workload.Scenario, _ *workload.Tasks) { s.Platform.Overhead = -1 },
		"Platform.Crashes: -1 ":     func(s *workload.Scenario, _ *workload.Tasks) { s.Platform.Crashes = -1 },
		`Platform.Victim: "oldest"`: func(s *workload.Scenario, _ *workload.Tasks) { s.Platform.Victim = "oldest" },
		`Platform.Balance: "fair"`:  func(s *workload.Scenario, _ *workload.Tasks) { s.Platform.Balance = "fair" },
		"Platform.Startup: the mean of constant is +Inf": func(s *workload.Scenario, _ *workload.Tasks) {
			s.Platform.Startup = constant(inf)
		},
		"Platform.Answer: the mean of constant is -1": func(s *workload.Scenario, _ *workload.Tasks) { s.Platform.Answer = constant(-1) },
		"Tasks.Horizon: 0 ":                           func(_ *workload.Scenario, t *workload.Tasks) { t.Horizon = 0 },
		"Tasks.At[1]: 0.5 ":                           func(_ *workload.Scenario, t *workload.Tasks) { t.At[1] = 0.5 },
		"Tasks.At[0]: -1 ":                            func(_ *workload.Scenario, t *workload.Tasks) { t.At[0] = -1 },
		"Tasks.At[2]: NaN ":                           func(_ *workload.Scenario, t *workload.Tasks) { t.At[2] = nan },
		"Tasks.At[2]: 10 ":                            func(_ *workload.Scenario, t *workload.Tasks) { t.At[2] = 10 },
		"Tasks.Service[1]: -2 ":                       func(_ *workload.Scenario, t *workload.Tasks) { t.Service[1] = -2 },
		"Tasks.Service[0]: NaN ":                      func(_ *workload.Scenario, t *workload.Tasks) { t.Service[0] = nan },
		"Tasks.Service[2]: +Inf ":                     func(_ *workload.Scenario, t *workload.Tasks) { t.Service[2] = inf },
		"Tasks.Service: 2 values":                     func(_ *workload.Scenario, t *workload.Tasks) { t.Service = t.Service[:2] },
		"Tasks.Deadline[0]: -1 ":                      func(_ *workload.Scenario, t *workload.Tasks) { t.Deadline = []float64{-1, 0, 0} },
		"Tasks.Class: 1 values":                       func(_ *workload.Scenario, t *workload.Tasks) { t.Class = []uint8{1} },
		"Tasks.Tenant: 0 values":                      func(_ *workload.Scenario, t *workload.Tasks) { t.Tenant = []uint16{} },
	} {
		sc, tasks := byHand(1, 10, [2]float64{1, 1}, [2]float64{2, 1}, [2]float64{3, 1})
		sc.Farm.Max = 64
		spoil(sc, tasks)
		_, err := New(Config{Scenario: sc, Tasks: tasks})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "want") && !strings.Contains(err.Error(), "the mean") {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("no scenario is no error")
	}
	if _, err := New(Config{Scenario: plain(1)}); err == nil {
		t.Error("neither tasks nor laws are no error")
	}
}
