package evaluate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"farmhand/policy"
	"farmhand/sim"
)

// Plan is the oracle that knows all: every arrival, every service time, and how long
// replicas take to start. It searches a plan of replica counts, one for each
// interval, with the fewest worker-seconds that keeps the target in that very run.
//
// Local search on planModel minimises worker-seconds + μ·late tasks over moves that
// raise or lower a stretch of the plan, shift its edges and level it, with a
// temperature that falls, and adapts the price μ until as many are late as may be. A
// plan so found is *executed* in the simulator, and what it came to there corrects
// how many may be late in the model, a few times over. The bound is the best of the
// executed plans that met the target: it is achieved, by a policy that nobody can
// have. It is no lower bound: a better plan may exist. How much better is not known for
// sure. Where all plans can be tried the search finds the best one, and eight times the
// effort saves 0.3 % (burst-cron-150ms, one hour), so a few percent at most are likely.
//
// effort is how often the model may play the work over, up to mostPlayed tasks.
func Plan(ctx context.Context, effort int) Contender {
	return planContender(ctx, effort, simulate)
}

// PlanEffort is that of published figures. mostPlayed keeps any plan below 30 s of a
// core: a task takes some 20 ns.
const (
	PlanEffort = 2000
	mostPlayed = 800_000_000
)

func planContender(ctx context.Context, effort int, run runFunc) Contender {
	c := Contender{Name: "oracle", Spec: fmt.Sprintf("oracle:effort=%d", effort), Origin: Bound, Unguarded: true, Version: "1"}
	c.Make = func(config sim.Config) (policy.Policy, error) {
		if !HasDues(config.Scenario) && config.Tasks.Deadline == nil {
			return nil, fmt.Errorf("evaluate: the oracle plans for deadlines, and the tasks of %s have none", config.Scenario.Name)
		}
		return findPlan(ctx, config, min(effort*len(config.Tasks.At), mostPlayed), run)
	}
	return c
}

// rounds of search and execution.
const rounds = 5

// findPlan returns the best of the executed plans.
func findPlan(ctx context.Context, c sim.Config, effort int, run runFunc) (*planned, error) {
	m := newPlanModel(c)
	m.adopt(m.sketch())
	s := planSearch{planModel: m, r: rand.New(rand.NewPCG(c.Seed, uint64(len(m.at)))), price: 0.3}
	target := (1 - c.Scenario.Farm.Target) * float64(len(m.at))
	allowed := target
	var found *planned
	var short, cost float64
	for i := range rounds {
		share := effort / 2 / (rounds - 1)
		if i == 0 {
			share = effort / 2
		}
		s.search(int(allowed), m.played+share, i == 0)
		p := &planned{name: "oracle", interval: m.interval, counts: slices.Clone(m.plan)}
		r, err := run(ctx, c, sim.Driver{Policy: p})
		if err != nil {
			return nil, err
		}
		if missing := max(0, c.Scenario.Farm.Target-float64(r.OnTime())); found == nil || missing < short || missing == short && r.WorkerSeconds < cost {
			found, short, cost = p, missing, r.WorkerSeconds
		}
		// Where the model is wrong by some share, correct by it, a little less each time.
		allowed = max(0, allowed+(target-float64(r.Late))*math.Pow(0.9, float64(i)))
	}
	return found, nil
}

// planSearch is a local search.
type planSearch struct {
	*planModel
	r     *rand.Rand
	price float64 // μ, worker-seconds for a late task
}

// passes are how often the price is adapted in a search.
const passes = 24

// search until so many tasks were played. From hot, it begins with a temperature.
func (s *planSearch) search(allowed, until int, hot bool) {
	begin, span := s.played, until-s.played
	heat := 0.0
	if hot {
		heat = 1.5 * s.interval
	}
	for pass := range passes {
		stop := begin + span*3/4*(pass+1)/passes
		temperature := heat * math.Pow(1-float64(pass)/passes, 2)
		for s.played < stop {
			s.step(func(cost float64, late int) bool {
				d := cost + s.price*float64(late)
				return d < 0 || d == 0 && s.r.IntN(2) == 0 || temperature > 0 && s.r.Float64() < math.Exp(-d/temperature)
			})
		}
		ratio := (float64(s.lates) + 1) / (float64(allowed) + 1)
		s.price = min(max(s.price*min(max(math.Pow(ratio, 0.5), 0.5), 2), 1e-4), 1e3)
	}
	// To the target from above, then keep to it.
	for s.played < until && s.lates > allowed {
		s.step(func(cost float64, late int) bool { return late < 0 && cost+s.price*float64(late) <= 0 })
		s.price *= 1.0005
	}
	for s.played < until {
		s.step(func(cost float64, late int) bool {
			return s.lates+late <= allowed && (cost < 0 || cost == 0 && (late < 0 || s.r.IntN(2) == 0))
		})
	}
}

// step tries a move.
func (s *planSearch) step(accept func(cost float64, late int) bool) {
	i, counts := s.move()
	if len(counts) == 0 {
		s.played++ // a search in which nothing can move ends too
		return
	}
	cost, late, end := s.try(i, counts)
	if accept(cost, late) {
		s.keep(i, counts, cost, late, end)
	}
}

// move draws a change of the plan, which may be none.
func (s *planSearch) move() (i int, counts []int) {
	i = s.r.IntN(len(s.plan))
	length := min(int(math.Exp(s.r.Float64()*math.Log(60))), len(s.plan)-i)
	counts = slices.Clone(s.plan[i : i+length])
	before := slices.Clone(counts)
	switch kind := s.r.IntN(8); {
	case kind < 4: // raise or lower
		d := []int{-1, 1, -1, 1, -2, 2}[s.r.IntN(6)]
		for k := range counts {
			counts[k] += d
		}
	case kind < 6: // an edge later, or earlier
		value := s.count(i - 1)
		if kind == 5 && i+length < len(s.plan) {
			value = s.plan[i+length]
		}
		for k := range counts {
			counts[k] = value
		}
	default: // level
		value := counts[s.r.IntN(len(counts))]
		for k := range counts {
			counts[k] = value
		}
	}
	for k := range counts {
		counts[k] = min(max(counts[k], s.min), s.max)
	}
	if slices.Equal(counts, before) {
		return i, nil
	}
	return i, counts
}

// sketch is a plan to begin with: for the work that arrives from an interval on until
// a replica asked for now is ready, a + √a.
func (m *planModel) sketch() []int {
	load := make([]float64, len(m.plan))
	for i, at := range m.at {
		load[min(int(at/m.interval), len(load)-1)] += m.service[i] / m.interval / float64(m.slots)
	}
	ahead := int(math.Ceil(m.lag/m.interval)) + 1
	plan := make([]int, len(load))
	for k := range plan {
		a := 0.0
		for j := k; j <= min(k+ahead, len(load)-1); j++ {
			lo, hi := max(0, j-1), min(len(load)-1, j+1)
			a = max(a, (load[lo]+load[j]+load[hi])/3)
		}
		plan[k] = min(max(int(math.Ceil(a+math.Sqrt(a))), m.min), m.max)
	}
	return plan
}
