package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"farmhand/sim"
)

// bySeed is lateness and cost that depend on the policy and on the work.
func bySeed(values []float64, c sim.Config) (late, cost float64) {
	x := float64(c.Seed%7) / 100
	if len(values) > 0 {
		return x, values[0] + 10*x + float64(len(c.Tasks.At))
	}
	return x, 1
}

func cases() []Case {
	return []Case{
		{toy("one"), []Contender{member("a", 1), member("b", 2)}},
		{toy("two"), []Contender{member("a", 3)}},
	}
}

// The result does not depend on how many runs go on at a time.
func TestStudyIsDeterministic(t *testing.T) {
	var first []Entry
	for _, jobs := range []int{1, 2, 7} {
		s := Study{Settings: Settings{Jobs: jobs, run: made(bySeed)}, Seeds: EvaluationSeeds()}
		list, err := s.Run(t.Context(), cases())
		if err != nil || len(list) != 3 {
			t.Fatalf("%d entries, %v", len(list), err)
		}
		for i := range list {
			list[i].Contender.Make, list[i].Scenario = nil, nil
		}
		if first == nil {
			first = list
		} else if !reflect.DeepEqual(list, first) {
			t.Errorf("with %d jobs: %+v, want %+v", jobs, list, first)
		}
	}
	if e := first[2]; e.Contender.Name != "a" || len(e.Episodes) != 20 || e.Episodes[3].Seed != 1004 {
		t.Errorf("%+v", e)
	}
}

// All contenders serve the same tasks.
func TestStudySharesTasks(t *testing.T) {
	seen := map[uint64]*float64{}
	s := Study{Seeds: seeds(1, 3)}
	s.run = func(_ context.Context, c sim.Config, _ sim.Driver) (sim.Result, error) {
		if before := seen[c.Seed]; before != nil && before != &c.Tasks.At[0] {
			t.Errorf("seed %d was drawn twice", c.Seed)
		}
		seen[c.Seed] = &c.Tasks.At[0]
		return result(0, 1), nil
	}
	if _, err := s.Run(t.Context(), cases()[:1]); err != nil {
		t.Fatal(err)
	}
}

// An interrupt keeps what was finished.
func TestStudyInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	runs := 0
	s := Study{Seeds: seeds(1, 5)}
	s.run = func(ctx context.Context, c sim.Config, d sim.Driver) (sim.Result, error) {
		if runs++; runs == 4 {
			stop()
			return sim.Result{}, ctx.Err()
		}
		return result(0.01, 5), nil
	}
	list, err := s.Run(ctx, cases())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	// a and b of seed 1, a of seed 2
	if len(list) != 2 || len(list[0].Episodes) != 2 || len(list[1].Episodes) != 1 {
		t.Errorf("finished: %+v", list)
	}
	if row := list[0].Row(); row.Seeds != 2 || row.Values[WorkerSeconds].Mean != 5 {
		t.Errorf("row %+v", row)
	}
}

// What was run is not run again; what something depends on makes it another thing.
func TestStudyKeeps(t *testing.T) {
	store := &shelf{}
	var runs atomic.Int32
	factor := 1.0
	s := Study{Settings: Settings{Jobs: 2, Store: store}, Seeds: seeds(1, 3)}
	s.run = func(ctx context.Context, c sim.Config, d sim.Driver) (sim.Result, error) {
		if c.Tasks.Horizon == 3600 {
			runs.Add(1)
		}
		return result(0.01, factor), nil
	}
	want := func(what string, n int32, c []Case) {
		t.Helper()
		runs.Store(0)
		list, err := s.Run(t.Context(), c)
		if err != nil || runs.Load() != n || list[0].Episodes[2].Result.WorkerSeconds != factor {
			t.Errorf("%s: %d runs, want %d; %v %v", what, runs.Load(), n, list[0].Episodes, err)
		}
	}
	want("new", 9, cases())
	want("known", 0, cases())
	s.Seeds = seeds(1, 4)
	want("one seed more", 3, cases())
	other := cases()
	other[1].Scenario.Farm.Deadline = 2
	want("another deadline", 4, other)
	other[1].Scenario.Arrivals = toyArrivals{other[1].Scenario.Arrivals}
	want("other arrivals of the same name", 4, other)
	again := cases()
	again[0].Contenders[0].Version = "2"
	want("another version", 4, again)
	factor = 2
	want("another simulator", 12, cases())
}

func TestRow(t *testing.T) {
	e := entry("a", []float64{0.02, 0.2, 0.04}, []float64{3600, 7200, 3600})
	e.Episodes[1].Result.Saturated = true
	row := e.Row()
	if row.Met != 2 || !row.Saturated || !row.OnTarget() {
		t.Errorf("%+v", row)
	}
	near(t, "worst", row.Worst, 0.8, 1e-9)
	raw, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields("on_time late p50_s p95_s p99_s mean_workers peak_workers worker_seconds busy_fraction actions_per_h starts_per_h flaps_per_h handbacks_per_h") {
		for _, suffix := range []string{"", "_lo", "_hi"} {
			if _, ok := got[name+suffix].(float64); !ok {
				t.Errorf("%s%s is %v", name, suffix, got[name+suffix])
			}
		}
	}
	if !strings.HasPrefix(string(raw), `{"policy":"a","scenario":"toy","seeds":3,"on_time":`) || got["parameters"] != "default" {
		t.Errorf("%s", raw)
	}
	if got["on_time_hi"].(float64) > 1 || got["mean_workers"] != 4.0/3 {
		t.Errorf("%s", raw)
	}
}

// A farm without deadlines has no share on time, and nothing to miss.
func TestRowWithoutDues(t *testing.T) {
	e := entry("a", []float64{0}, []float64{1})
	e.Episodes[0].Result.Decided, e.Episodes[0].Result.Done = 0, 0
	row := e.Row()
	raw, err := json.Marshal(row)
	if err != nil || !strings.Contains(string(raw), `"on_time":null`) || !strings.Contains(string(raw), `"p99_s":null`) || !row.OnTarget() {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestStudyNamesWhatFails(t *testing.T) {
	s := Study{Seeds: seeds(1, 1)}
	s.run = func(context.Context, sim.Config, sim.Driver) (sim.Result, error) {
		return sim.Result{}, errors.New("broken")
	}
	if _, err := s.Run(t.Context(), cases()); fmt.Sprint(err) != "a on one, seed 1: broken" {
		t.Errorf("error %v", err)
	}
	if _, err := Law("magic", Given); err == nil || !strings.Contains(err.Error(), "staffing") {
		t.Errorf("error %v", err)
	}
}
