package evaluate

import (
	"math"
	"testing"

	"farmhand/sim"
	"farmhand/sim/workload"
)

// small is a quarter of an hour with a load that changes.
func small(horizon float64) *workload.Scenario {
	s := &workload.Scenario{
		Name: "small", Horizon: horizon, Service: workload.LogNormalOf(0.1, 0.5),
		Arrivals: workload.Levels{Levels: []workload.Level{{Rate: 10, For: workload.Constant{Value: 60}}, {Rate: 50, For: workload.Constant{Value: 30}}}},
		Farm:     workload.DefaultFarm(), Platform: workload.DefaultPlatform(),
	}
	s.Farm.Deadline, s.Farm.Target, s.Farm.Max = 0.4, 0.9, 12
	return s
}

// No other policy is on target for less than the oracle.
func TestOracleIsTheBest(t *testing.T) {
	s := small(600)
	list := []Contender{Plan(t.Context(), 400)}
	c := Calibrator{Settings: Settings{Jobs: 2}, Budget: Budget{Random: 16, Generations: 2, Population: 8, Final: 3, Horizon: 600, Seeds: seeds(1, 2)}}
	for _, name := range []string{"static", "threshold", "regime-oracle"} {
		family := Regime()
		if name != "regime-oracle" {
			var err error
			if family, err = LawFamily(name); err != nil {
				t.Fatal(err)
			}
		}
		found, err := c.Calibrate(t.Context(), family, []*workload.Scenario{s})
		if err != nil {
			t.Fatal(err)
		}
		best, err := found.Contender(family, found.Best)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, best)
	}
	study := Study{Settings: Settings{Jobs: 2}, Seeds: seeds(1001, 3)}
	entries, err := study.Run(t.Context(), []Case{{s, list}})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries[0].Episodes {
		if float64(e.Result.OnTime()) < s.Farm.Target {
			t.Errorf("seed %d: the oracle has %.3f on time", e.Seed, e.Result.OnTime())
		}
		for _, other := range entries[1:] {
			r := other.Episodes[i].Result
			if float64(r.OnTime()) >= s.Farm.Target && r.WorkerSeconds < e.Result.WorkerSeconds {
				t.Errorf("seed %d: %s needs %.0f worker-seconds, the oracle %.0f", e.Seed, other.Contender.Spec, r.WorkerSeconds, e.Result.WorkerSeconds)
			}
		}
	}
}

// The same seed has the same plan.
func TestPlanIsDeterministic(t *testing.T) {
	s := small(200)
	c := sim.Config{Scenario: s, Tasks: s.Draw(5), Seed: 5}
	plan := func() []int {
		p, err := findPlan(t.Context(), c, 100*len(c.Tasks.At), simulate)
		if err != nil {
			t.Fatal(err)
		}
		return p.counts
	}
	a, b := plan(), plan()
	for k := range a {
		if a[k] != b[k] {
			t.Fatalf("interval %d: %d, then %d", k, a[k], b[k])
		}
	}
}

// What the model plays again after a change is what it plays anew.
func TestPlanModelIsConsistent(t *testing.T) {
	s := small(300)
	c := sim.Config{Scenario: s, Tasks: s.Draw(3), Seed: 3}
	m := newPlanModel(c)
	m.adopt(m.sketch())
	search := planSearch{planModel: m, r: workload.Stream(1, 2)}
	for range 2000 {
		search.step(func(cost float64, late int) bool { return search.r.IntN(3) > 0 })
	}
	anew := newPlanModel(c)
	anew.adopt(m.plan)
	if anew.lates != m.lates || math.Abs(anew.cost-m.cost) > 1e-6 {
		t.Errorf("late %d, cost %g; anew %d, %g", m.lates, m.cost, anew.lates, anew.cost)
	}
}

// The model is near the simulator.
func TestPlanModelIsTrue(t *testing.T) {
	s := small(900)
	c := sim.Config{Scenario: s, Tasks: s.Draw(3), Seed: 3}
	m := newPlanModel(c)
	for _, plan := range [][]int{m.sketch(), regime(c, 1, 1, 4, 0).counts, regime(c, 1.2, 0.5, 2, 4).counts} {
		m.adopt(plan)
		r, err := simulate(t.Context(), c, sim.Driver{Policy: &planned{name: "plan", interval: m.interval, counts: plan}})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("late %d in the model, %d; worker-seconds %.0f, %.0f", m.lates, r.Late, m.cost, r.WorkerSeconds)
		if late := float64(m.lates-r.Late) / float64(r.Tasks); math.Abs(late) > 0.02 || math.Abs(m.cost/r.WorkerSeconds-1) > 0.02 {
			t.Errorf("late %d in the model, %d; worker-seconds %.0f, %.0f", m.lates, r.Late, m.cost, r.WorkerSeconds)
		}
	}
}

// On a work so small that all plans can be tried, the search finds the best of them.
func TestSearchFindsTheBestPlan(t *testing.T) {
	s := small(10) // five intervals
	s.Arrivals = workload.Levels{Levels: []workload.Level{{Rate: 10, For: workload.Constant{Value: 4}}, {Rate: 40, For: workload.Constant{Value: 6}}}}
	s.Farm.Target, s.Farm.Start, s.Farm.Max = 0.6, 2, 5
	c := sim.Config{Scenario: s, Tasks: s.Draw(8), Seed: 8}
	m := newPlanModel(c)
	allowed := int(0.4 * float64(len(m.at)))
	best := math.Inf(1)
	plan := make([]int, 5)
	var try func(k int)
	try = func(k int) {
		if k == len(plan) {
			m.adopt(plan)
			if m.lates <= allowed {
				best = min(best, m.cost)
			}
			return
		}
		for n := 1; n <= 5; n++ {
			plan[k] = n
			try(k + 1)
		}
	}
	try(0)
	m.adopt([]int{2, 2, 2, 2, 2})
	search := planSearch{planModel: m, r: workload.Stream(1, 2), price: 0.3}
	search.search(allowed, m.played+500_000, true)
	if m.lates > allowed || m.cost > best+1e-9 {
		t.Errorf("found %v: %g with %d late of %d, best %g", m.plan, m.cost, m.lates, allowed, best)
	}
}

// The regime oracle acts before a rise and after a fall.
func TestRegime(t *testing.T) {
	s := small(120)
	tasks := &workload.Tasks{Horizon: 120, Changes: []workload.Change{{At: 0, Rate: 10}, {At: 50, Rate: 50}, {At: 80, Rate: 10}}}
	p := regime(sim.Config{Scenario: s, Tasks: tasks}, 1, 0, 4, 6)
	for k, n := range p.counts {
		at := 2 * float64(k)
		want := 1
		if at+4 >= 50 && at-6 < 80 {
			want = 5
		}
		if n != want {
			t.Errorf("at %g s: %d, want %d", at, n, want)
		}
	}
}
