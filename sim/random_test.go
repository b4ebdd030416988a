package sim

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"farmhand/policy"
	"farmhand/sim/workload"
)

// scenarios draws farms, platforms and tasks with everything that a simulator may
// meet.
func scenarios(t *rapid.T) Config {
	maybe := func(what string, l workload.Law) workload.Law {
		if rapid.Bool().Draw(t, what) {
			return l
		}
		return nil
	}
	either := func(what string, laws ...workload.Law) workload.Law {
		return rapid.SampledFrom(append(laws, nil)).Draw(t, what)
	}
	share := func(what string, most float64) float64 {
		return rapid.SampledFrom([]float64{0, 0, 0.1, 1}).Draw(t, what) * most
	}
	sc := &workload.Scenario{Name: "random", Farm: workload.Farm{
		Interval: rapid.SampledFrom([]float64{0.3, 1, 2, 8}).Draw(t, "interval"), Deadline: rapid.SampledFrom([]float64{0, 0.15, 3}).Draw(t, "deadline"),
		Target: 0.95, Timeout: rapid.SampledFrom([]float64{0, 0.5, 55}).Draw(t, "timeout"), Prior: rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "prior"),
		Slots: rapid.IntRange(0, 4).Draw(t, "slots"), Max: rapid.SampledFrom([]int{0, 8, 20}).Draw(t, "max"), Start: rapid.IntRange(0, 5).Draw(t, "start"),
		Attempts: rapid.IntRange(0, 3).Draw(t, "attempts"), Failing: share("failing", 0.5), FIFO: rapid.Bool().Draw(t, "fifo"),
	}, Platform: workload.Platform{
		Startup: maybe("startup", lognormal{2, 1}), Call: maybe("call", uniform{0, 3}), Seen: either("seen", uniform{0, 1}, workload.Looks{Every: 1}), Stop: maybe("stop", uniform{0, 2}),
		Answer: either("answer", uniform{0, 0.1}, workload.Held{Value: 0.05}), Overhead: share("overhead", 0.1), Blocking: rapid.IntRange(0, 4).Draw(t, "blocking") == 0,
		Cap:     rapid.SampledFrom([]int{0, 0, 5, 7}).Draw(t, "cap"),
		Victim:  rapid.SampledFrom([]workload.Victim{"", workload.IdleFirst, workload.RandomVictim}).Draw(t, "victim"),
		Balance: rapid.SampledFrom([]workload.Balance{"", workload.LeastBusy, workload.RandomReplica}).Draw(t, "balance"), Crashes: share("crashes", 0.2),
	}}
	tasks := &workload.Tasks{Horizon: rapid.SampledFrom([]float64{7, 30, 90}).Draw(t, "horizon")}
	seed := rapid.Uint64().Draw(t, "seed")
	r := workload.Stream(seed, workload.StreamArrivals)
	at := 0.0
	for range rapid.IntRange(0, 300).Draw(t, "tasks") {
		if r.IntN(3) > 0 { // often many at once
			at += r.ExpFloat64() * 0.2
		}
		if at >= tasks.Horizon {
			break
		}
		tasks.At = append(tasks.At, at)
		tasks.Service = append(tasks.Service, r.ExpFloat64()*0.3*float64(r.IntN(3)))
	}
	n := len(tasks.At)
	fill := func(what string, fn func()) {
		if rapid.IntRange(0, 3).Draw(t, what) == 0 {
			fn()
		}
	}
	fill("deadlines", func() {
		for range n {
			tasks.Deadline = append(tasks.Deadline, float64(r.IntN(3)))
		}
	})
	fill("classes", func() {
		for range n {
			tasks.Class = append(tasks.Class, uint8(r.IntN(3)))
		}
	})
	fill("tenants", func() {
		for range n {
			tasks.Tenant = append(tasks.Tenant, uint16(r.IntN(4)))
		}
	})
	return Config{Scenario: sc, Tasks: tasks, Seed: seed}
}

// Whatever is simulated and whatever is asked for: nothing panics, no task is lost,
// costs and observations are numbers, and the end is reached.
func TestRandomScenarios(t *testing.T) { rapid.Check(t, playRandom) }

// FuzzScenarios is the same for the fuzzer.
func FuzzScenarios(f *testing.F) { f.Fuzz(rapid.MakeFuzz(playRandom)) }

func playRandom(t *rapid.T) {
	cfg := scenarios(t)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	wishes := rapid.SliceOfN(rapid.IntRange(-1, 25), 1, 40).Draw(t, "wishes")
	var o policy.Observation
	last := Totals{}
	for k := 0; ; k++ {
		if err := s.sound(); err != nil {
			t.Fatalf("at %g s: %v", s.Now(), err)
		}
		s.Observe(&o)
		finite(t, &o)
		if got := s.Scale(wishes[k%len(wishes)]); got < 0 || cfg.Scenario.Platform.Cap > 0 && got > cfg.Scenario.Platform.Cap {
			t.Fatalf("%d are wanted", got)
		}
		if err := s.sound(); err != nil {
			t.Fatalf("at %g s, after scaling: %v", s.Now(), err)
		}
		more := s.Advance()
		now := s.Totals()
		if now.At <= last.At && last.At > 0 || now.WorkerSeconds < last.WorkerSeconds || now.Late < last.Late || now.Done < last.Done {
			t.Fatalf("from %+v to %+v", last, now)
		}
		last = now
		if !more {
			break
		}
	}
	r := s.Result()
	if err := r.sane(); err != nil {
		t.Fatal(err)
	}
	if s.Now() != cfg.Tasks.Horizon || r.Tasks != len(cfg.Tasks.At) || s.Advance() {
		t.Fatalf("ended at %g s of %g with %d tasks of %d", s.Now(), cfg.Tasks.Horizon, r.Tasks, len(cfg.Tasks.At))
	}
	// The area under the number in the system is the time that tasks spent in it.
	spent := 0.0
	s.unfinished(func(task int32) { spent += s.now - s.at[task] })
	ended := r.Mean*s.now - spent
	if finished := (r.Wait + r.Service) * float64(r.Done); ended < finished-1e-6 || r.Dead == 0 && s.platform.Answer == nil && math.Abs(ended-finished) > 1e-6*max(1, ended) {
		t.Fatalf("the finished spent %g s in the system, or %g", ended, finished)
	}
}

// Where tasks differ in nothing, the plain line serves them as the live ledger's
// queue does.
func TestPlainLineIsTheQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := scenarios(t)
		cfg.Tasks.Deadline, cfg.Tasks.Class, cfg.Tasks.Tenant = nil, nil, nil
		play := func(ordered bool) (list []policy.Observation, r Result) {
			s := &Sim{}
			if err := s.reset(cfg, ordered); err != nil {
				t.Fatal(err)
			}
			for k := 0; ; k++ {
				var o policy.Observation
				s.Observe(&o)
				list = append(list, o)
				s.Scale((k*7 + 3) % 11)
				if !s.Advance() {
					return list, s.Result()
				}
			}
		}
		line, a := play(false)
		queue, b := play(true)
		if d := cmp.Diff(line, queue, equalMaybes); d != "" || a != b {
			t.Fatalf("line and queue differ: %s\n%s", d, cmp.Diff(a, b))
		}
	})
}

// equalMaybes lets unknown equal unknown.
var equalMaybes = cmp.Comparer(func(a, b policy.Maybe) bool { return a == b || !a.Known() && !b.Known() })
