package farmenv

import (
	"math"
	"slices"
	"testing"

	"farmhand/env"
	"farmhand/env/envtest"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim/workload"
)

func found(t testing.TB, names ...string) (list []*workload.Scenario) {
	t.Helper()
	for _, name := range names {
		s, err := workload.Find(name, workload.Options{})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// Farms that vary are those that a policy can do something for: they have room, a
// deadline that can be kept, and are as different as is said.
func TestVaried(t *testing.T) {
	m := NewMix(1800, found(t, "constant", "periodic", "ramp")...)
	var loads, means, ratios, lags []float64
	for seed := range uint64(90) {
		kind := int(seed % 3)
		s, base := m.Varied(kind, seed), m.Scenarios[kind]
		if _, err := workload.Parse(s.YAML(), "varied.yaml", workload.Options{}); err != nil {
			t.Fatal(err)
		}
		tasks := s.Draw(seed)
		busy, kept := 0.0, 0
		for _, x := range tasks.Service {
			busy += x
			if x <= s.Farm.Deadline {
				kept++
			}
		}
		if share := float64(kept) / float64(len(tasks.Service)); share < base.Farm.Target {
			t.Errorf("seed %d: %.3f of the tasks could be on time if none waited: want %g", seed, share, base.Farm.Target)
		}
		load := busy / s.Horizon
		if load > 0.3*float64(s.Farm.Max) {
			t.Errorf("seed %d: a load of %.1f of %d replicas", seed, load, s.Farm.Max)
		}
		loads, means = append(loads, load), append(means, s.Service.Mean())
		ratios, lags = append(ratios, s.Farm.Deadline/s.Service.Mean()), append(lags, s.Platform.Startup.Mean())
	}
	for name, x := range map[string][]float64{"loads": loads, "services": means, "deadlines": ratios, "start-ups": lags} {
		if lo, hi := slices.Min(x), slices.Max(x); hi < 8*lo {
			t.Errorf("%s from %.3g to %.3g: want more", name, lo, hi)
		}
	}
}

// Equal seeds choose the same episode; all scenarios, and all of their work, are chosen.
func TestMixCoversAll(t *testing.T) {
	m := NewMix(600, found(t, "constant", "ramp")...)
	m.Anywhere, m.Vary = true, true
	kinds, varied, late := [2]int{}, 0, 0
	for seed := range uint64(200) {
		a, b := m.Episode(seed), m.Episode(seed)
		if a.Kind != b.Kind || a.From != b.From || string(a.Scenario.YAML()) != string(b.Scenario.YAML()) {
			t.Fatal("the same seed chose another episode")
		}
		kinds[a.Kind]++
		if a.Scenario != m.Scenarios[a.Kind] {
			varied++
		}
		if a.From > 2000 {
			late++
		}
		if a.From < 0 || a.From > 3000 {
			t.Fatalf("begins at %g s of 3600, 600 long", a.From)
		}
	}
	if min(kinds[0], kinds[1]) < 60 || varied < 110 || varied > 190 || late < 40 {
		t.Errorf("%v of each, %d varied, %d of the last third", kinds, varied, late)
	}
}

// What is left of a load after an instant is what arrives after it.
func TestAfter(t *testing.T) {
	s := found(t, "burst-cron-150ms")[0]
	whole := s.Draw(1)
	part := after(whole, 1000)
	if part.Horizon != 2600 || len(part.Service) != len(part.At) || part.Changes[0].At != 0 {
		t.Fatalf("%g s, %d instants, %d services, first change %+v", part.Horizon, len(part.At), len(part.Service), part.Changes[0])
	}
	n := len(whole.At) - len(part.At)
	if whole.At[n-1] >= 1000 || whole.At[n] < 1000 || math.Abs(part.At[0]-(whole.At[n]-1000)) > 1e-9 || part.Service[0] != whole.Service[n] {
		t.Errorf("task %d at %g is task 0 at %g", n, whole.At[n], part.At[0])
	}
}

// Farms of all kinds are environments as others.
func TestVariedFarmsConform(t *testing.T) {
	rule, err := policy.New("staffing")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMix(300, found(t, "constant", "periodic", "ramp", "bursty")...)
	m.Anywhere, m.Vary = true, true
	envtest.Check(t, func() env.Env {
		f, err := NewFarm("Farm-v0", FarmConfig{Episode: m.Episode, Rule: rule, Guard: &guard.Settings{Learned: true}, Horizon: 300})
		if err != nil {
			t.Fatal(err)
		}
		return f
	})
}

// A rest delays all work by as much, and the work after it is the same.
func TestRests(t *testing.T) {
	s, err := workload.Find("burst-cron-150ms", workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := NewMix(600, s)
	m.Rests = true
	rested := 0
	for seed := range uint64(400) {
		if r := m.Episode(seed).Rest; r > 0 && r <= longestRest {
			rested++
		} else if r != 0 {
			t.Fatalf("a rest of %g s", r)
		}
	}
	if rested < 70 || rested > 130 {
		t.Errorf("%d of 400 episodes begin with a rest: want a quarter", rested)
	}
	tasks := s.Draw(3)
	later, after := Rested(s, tasks, 3)
	rest := later.Horizon - s.Horizon
	if rest <= 0 || rest > longestRest || after.Horizon != tasks.Horizon+rest || len(after.At) != len(tasks.At) {
		t.Fatalf("%d tasks in %g s after a rest of %g s", len(after.At), after.Horizon, rest)
	}
	for i, at := range after.At {
		if math.Abs(at-rest-tasks.At[i]) > 1e-9 {
			t.Fatalf("task %d comes at %g s after a rest of %g s: want %g s", i, at, rest, tasks.At[i])
		}
	}
	if c := after.Changes; c[0] != (workload.Change{}) || len(c) != len(tasks.Changes)+1 || math.Abs(c[1].At-rest-tasks.Changes[0].At) > 1e-9 {
		t.Errorf("changes %v after those of %v", c[:2], tasks.Changes[:1])
	}
	f, err := NewFarm("Farm-v0", FarmConfig{Episode: func(seed uint64) Episode { return Episode{Scenario: s, Rest: 100} }, Rule: must(policy.New("staffing")), Horizon: 300})
	if err != nil {
		t.Fatal(err)
	}
	_, info := f.Reset(1, nil)
	decided, seconds := 0.0, 0.0
	for over := false; !over; {
		_, _, _, over, info = f.Step(slices.Index(info.Mask, true))
		if seconds += info.Metrics[MetricSeconds]; seconds < 100 {
			decided += info.Metrics[MetricDecided]
		}
	}
	if decided > 0 || math.Abs(seconds-400) > 1e-6 {
		t.Errorf("%g tasks in the rest, an episode of %g s: want none, and 400 s", decided, seconds)
	}
}

func must[T interface{}](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
