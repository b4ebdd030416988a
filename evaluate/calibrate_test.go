package evaluate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"farmhand/policy"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// toyArrivals are other arrivals that look the same.
type toyArrivals struct{ workload.Arrivals }

func (a toyArrivals) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []workload.Change) {
	return a.Arrivals.Draw(r, horizon/2, at)
}

// toyFamily has two parameters. In toyRun workers cost 10 + (x − 0.3)² + (ln y − ln
// 20)², and y below 20 makes tasks late: cheapest on target is x = 0.3, y = 20.
func toyFamily() Family {
	f := Family{Name: "toy", Free: []policy.Tunable{
		{Name: "x", Default: 2, Range: policy.Range{Min: -1, Max: 4}},
		{Name: "y", Default: 100, Integer: true, Range: policy.Range{Min: 1, Max: 400, Log: true}},
	}}
	f.Make = func(v []float64) (Contender, error) {
		return member(fmt.Sprintf("toy:x=%g,y=%g", v[0], v[1]), v...), nil
	}
	return f
}

func toyRun(v []float64, c sim.Config) (late, cost float64) {
	if len(v) < 2 {
		return 0, 1
	}
	d := math.Log(v[1] / 20)
	noise := float64(c.Seed%5) / 1000
	return 0.1 + noise - 0.002 - 0.05*d, (10 + (v[0]-0.3)*(v[0]-0.3) + 4*max(0, d) + 10*noise) * offered(c.Tasks)
}

func TestCalibrationFindsTheOptimum(t *testing.T) {
	var first *Calibration
	for _, jobs := range []int{1, 4} {
		c := Calibrator{Settings: Settings{Jobs: jobs, run: made(toyRun)}, Budget: FullBudget()}
		found, err := c.Calibrate(t.Context(), toyFamily(), []*workload.Scenario{toy("toy")})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = found
		} else if !reflect.DeepEqual(found, first) {
			t.Errorf("with %d jobs: %+v, want %+v", jobs, found, first)
		}
	}
	b := first.Best
	if math.Abs(b.Values[0]-0.3) > 0.25 || b.Values[1] < 20 || b.Values[1] > 23 || !b.OnTarget {
		t.Errorf("best %+v", b)
	}
	if first.Free != 2 || first.Evaluations != 120+5*16+8*7 || math.Abs(first.Hours-(120/4+80+56)) > 1e-9 {
		t.Errorf("%+v", first)
	}
	for i := range first.Front[1:] {
		if a, b := first.Front[i], first.Front[i+1]; a.OnTime[0] < b.OnTime[0] || a.Cost <= b.Cost {
			t.Errorf("front %+v", first.Front)
		}
	}
}

// No seed of an evaluation is ever touched while choosing.
func TestCalibrationKeepsToTrainingSeeds(t *testing.T) {
	var wrong atomic.Int32
	c := Calibrator{Settings: Settings{Jobs: 2}, Budget: FullBudget()}
	c.run = func(ctx context.Context, config sim.Config, d sim.Driver) (sim.Result, error) {
		if !slices.Contains(TrainingSeeds(), config.Seed) || config.Tasks.Horizon > 3600 {
			wrong.Add(1)
		}
		return made(toyRun)(ctx, config, d)
	}
	long := toy("long")
	long.Horizon = 7200
	if _, err := c.Calibrate(t.Context(), toyFamily(), []*workload.Scenario{long}); err != nil || wrong.Load() > 0 {
		t.Errorf("%d runs of other seeds or more than an hour; %v", wrong.Load(), err)
	}
}

// Of a scenario that is shorter than the horizon several seeds make an evaluation.
func TestCalibrationOfShortRuns(t *testing.T) {
	var runs atomic.Int32
	c := Calibrator{Settings: Settings{Jobs: 2}, Budget: FullBudget()}
	c.run = func(ctx context.Context, config sim.Config, d sim.Driver) (sim.Result, error) {
		runs.Add(1)
		return made(toyRun)(ctx, config, d)
	}
	short := toy("short")
	short.Horizon = 500
	found, err := c.Calibrate(t.Context(), toyFamily(), []*workload.Scenario{short})
	if err != nil || runs.Load() != 120*1+80*7+56 || found.Evaluations != 256 {
		t.Errorf("%d runs, %+v, %v", runs.Load(), found, err)
	}
}

// With two scenarios one configuration has to be on target on both.
func TestPooledCalibration(t *testing.T) {
	c := Calibrator{Settings: Settings{Jobs: 2}, Budget: FullBudget()}
	c.run = made(func(v []float64, config sim.Config) (late, cost float64) {
		if len(v) == 2 && config.Scenario.Name == "hard" {
			v = []float64{v[0], v[1] / 2}
		}
		return toyRun(v, config)
	})
	found, err := c.Calibrate(t.Context(), toyFamily(), []*workload.Scenario{toy("toy"), toy("hard")})
	if err != nil {
		t.Fatal(err)
	}
	if y := found.Best.Values[1]; y < 40 || y > 60 || len(found.Best.OnTime) != 2 {
		t.Errorf("best %+v", found.Best)
	}
	if member, err := found.Contender(toyFamily(), found.Best); err != nil || member.Free != 2 {
		t.Errorf("%+v %v", member, err)
	}
}

// The fewest replicas that suffice, by bisection: 23 here.
func TestCalibratingACount(t *testing.T) {
	f, err := LawFamily("static")
	if err != nil || !f.Counted {
		t.Fatalf("%+v %v", f, err)
	}
	runs := 0
	c := Calibrator{Budget: FullBudget()}
	c.run = func(_ context.Context, config sim.Config, d sim.Driver) (sim.Result, error) {
		runs++
		n := float64(d.Policy.Decide(&policy.Observation{Min: 1}, policy.Memory{}).Replicas)
		return result(max(0, 0.1+0.01*(22.5-n)), n*3600), nil
	}
	found, err := c.Calibrate(t.Context(), f, []*workload.Scenario{toy("toy")})
	if err != nil || found.Best.Specification != "static:n=23" {
		t.Fatalf("%+v %v", found, err)
	}
	if runs > 6+6*8 || len(found.Front) < 4 {
		t.Errorf("%d runs, front %+v", runs, found.Front)
	}
}

func TestCalibrationIsKept(t *testing.T) {
	store := &shelf{}
	var runs atomic.Int32
	c := Calibrator{Settings: Settings{Store: store, Jobs: 2}, Budget: QuickBudget()}
	c.run = func(ctx context.Context, config sim.Config, d sim.Driver) (sim.Result, error) {
		runs.Add(1)
		return made(toyRun)(ctx, config, d)
	}
	want := func(what string, known bool, f Family, s *workload.Scenario) {
		t.Helper()
		runs.Store(0)
		if _, err := c.Calibrate(t.Context(), f, []*workload.Scenario{s}); err != nil {
			t.Fatal(err)
		}
		if (runs.Load() <= 2) != known { // two probes
			t.Errorf("%s: %d runs", what, runs.Load())
		}
	}
	want("new", false, toyFamily(), toy("toy"))
	want("known", true, toyFamily(), toy("toy"))
	s := toy("toy")
	s.Farm.Target = 0.8
	want("another target", false, toyFamily(), s)
	f := toyFamily()
	f.Free[0].Max = 5
	want("another range", false, f, toy("toy"))
	c.Budget.Random++
	want("another budget", false, toyFamily(), toy("toy"))
}

// A wide front has members on both sides of the target, and is kept.
func TestWiden(t *testing.T) {
	var runs atomic.Int32
	c := Calibrator{Settings: Settings{Jobs: 2, Store: &shelf{}}, Budget: FullBudget()}
	c.run = func(ctx context.Context, config sim.Config, d sim.Driver) (sim.Result, error) {
		runs.Add(1)
		return made(toyRun)(ctx, config, d)
	}
	one := []*workload.Scenario{toy("toy")}
	found, err := c.Calibrate(t.Context(), toyFamily(), one)
	if err != nil {
		t.Fatal(err)
	}
	found.Front = []Tuned{found.Best}
	wide, err := c.Widen(t.Context(), toyFamily(), one, found)
	if err != nil {
		t.Fatal(err)
	}
	first, last := wide.Front[0], wide.Front[len(wide.Front)-1]
	if !reflect.DeepEqual(wide.Best, found.Best) || first.OnTime[0] < 0.92 || last.OnTime[0] >= 0.9 || first.Cost <= last.Cost {
		t.Errorf("front %+v", wide.Front)
	}
	runs.Store(0)
	again, err := c.Widen(t.Context(), toyFamily(), one, found)
	if err != nil || !reflect.DeepEqual(again, wide) || runs.Load() > 2 {
		t.Errorf("%d runs; %+v, %v", runs.Load(), again, err)
	}
}

func TestCalibrationNeedsDues(t *testing.T) {
	s := toy("toy")
	s.Farm.Deadline = 0
	c := Calibrator{Budget: QuickBudget()}
	if _, err := c.Calibrate(t.Context(), toyFamily(), []*workload.Scenario{s}); err == nil || !strings.Contains(err.Error(), "farm.deadline") {
		t.Errorf("error %v", err)
	}
}

// Nothing of a law's parameters is tried that a farm cannot have.
func TestFamilyIsBounded(t *testing.T) {
	f, err := LawFamily("static")
	if err != nil {
		t.Fatal(err)
	}
	s := toy("toy")
	s.Platform.Cap = 5
	f = f.bounded([]*workload.Scenario{s})
	if v := f.values([]float64{1}); v[0] != 5 {
		t.Errorf("most %g, want 5", v[0])
	}
	for _, law := range policy.Laws() {
		f, err := LawFamily(law.Name)
		if err != nil {
			t.Fatal(err)
		}
		p := f.defaults()
		for _, x := range p {
			if !(x >= 0 && x <= 1) {
				t.Errorf("%s: defaults %v", law.Name, p)
			}
		}
		if again := f.point(f.values(p)); !reflect.DeepEqual(f.values(again), f.values(p)) {
			t.Errorf("%s: %v, then %v", law.Name, f.values(p), f.values(again))
		}
	}
}

// The stretch that is most like the whole has its share of the burst.
func TestLikest(t *testing.T) {
	tasks := &workload.Tasks{Horizon: 4000}
	for i := range 4000 {
		n := 1
		if i >= 2900 && i < 3300 { // a tenth of the time
			n = 10
		}
		for k := range n {
			tasks.At = append(tasks.At, float64(i)+float64(k)/20)
		}
	}
	from := likest(tasks, 1000, 2)
	if burst := min(from+1000, 3300) - max(from, 2900); burst < 50 || burst > 150 {
		t.Errorf("from %g: %g s of burst in 1000 s, want about 100", from, burst)
	}
}

func TestStretch(t *testing.T) {
	s := toy("toy")
	tasks := s.Draw(3)
	tasks.Changes = []workload.Change{{At: 0, Rate: 1}, {At: 50, Rate: 2}, {At: 150, Rate: 3}, {At: 300, Rate: 4}}
	c := stretch(s, tasks, 3, 100, 200)
	if c.Scenario.Horizon != 100 || c.Tasks.Horizon != 100 || s.Horizon != 3600 {
		t.Errorf("horizons %g %g %g", c.Scenario.Horizon, c.Tasks.Horizon, s.Horizon)
	}
	for i, at := range c.Tasks.At {
		if at < 0 || at >= 100 || i > 0 && at < c.Tasks.At[i-1] {
			t.Fatalf("arrives at %g", at)
		}
	}
	if want := []workload.Change{{At: 0, Rate: 2}, {At: 50, Rate: 3}}; !reflect.DeepEqual(c.Tasks.Changes, want) {
		t.Errorf("changes %v", c.Tasks.Changes)
	}
	if len(c.Tasks.At) != len(c.Tasks.Service) || stretch(s, tasks, 3, 0, 3600).Tasks != tasks {
		t.Error("services do not go with the arrivals")
	}
}
