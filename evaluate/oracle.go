package evaluate

import (
	"fmt"
	"math"
	"time"

	"farmhand/policy"
	"farmhand/sim"
)

// elapsed is the time of a run that a policy made for it sees: the first decision
// is at its beginning.
func elapsed(o *policy.Observation, m policy.Memory) float64 {
	at := float64(o.At.UnixNano()) / float64(time.Second)
	began, ok := m["began"]
	if !ok {
		began = at
		m["began"] = at
	}
	return at - began
}

// planned is a policy that knows beforehand what it will wish.
type planned struct {
	name     string
	interval float64
	counts   []int
}

func (p *planned) Name() string { return p.name }

func (p *planned) Decide(o *policy.Observation, m policy.Memory) policy.Decision {
	k := int(elapsed(o, m)/p.interval + 1e-6)
	return policy.Decision{Replicas: p.counts[min(max(k, 0), len(p.counts)-1)], Reason: "as planned"}
}

// Regime is the family of the regime oracle. It knows the rate of arrivals at every
// instant, the future too, but not the single arrivals:
//
//	n(t)     = ⌈headroom·a + β√a⌉, a = rate·mean service/slots, for the highest rate
//	           from t − after to t + before
//	before   how long before a rise the replicas are asked for: at least a start-up lag
//	after    how long after a fall they are kept
//
// What can be won over a well tuned rule by knowing when the load changes is the
// difference to this bound.
func Regime() Family {
	f := Family{Name: "regime-oracle", Free: []policy.Tunable{
		{Name: "headroom", Default: 1, Range: policy.Range{Min: 0.5, Max: 3, Log: true}},
		{Name: "beta", Default: 1, Range: policy.Range{Min: -1, Max: 4}},
		{Name: "before", Default: 4, Range: policy.Range{Min: 0, Max: 12}},
		{Name: "after", Default: 0, Range: policy.Range{Min: -4, Max: 12}},
	}}
	f.Make = func(v []float64) (Contender, error) {
		return Contender{
			Name: f.Name, Origin: Bound, Free: len(v), Unguarded: true, Version: "1",
			Spec: fmt.Sprintf("%s:headroom=%g,beta=%g,before=%g,after=%g", f.Name, v[0], v[1], v[2], v[3]),
			Make: func(c sim.Config) (policy.Policy, error) { return regime(c, v[0], v[1], v[2], v[3]), nil },
		}, nil
	}
	return f
}

// regime is the regime oracle's plan for one run.
func regime(c sim.Config, headroom, beta, before, after float64) *planned {
	farm, tasks := &c.Scenario.Farm, c.Tasks
	p := &planned{name: "regime-oracle", interval: farm.Interval, counts: make([]int, max(1, int(math.Ceil(tasks.Horizon/farm.Interval))))}
	service := c.Scenario.Service.Mean() + c.Scenario.Platform.Overhead
	count := func(rate float64) int {
		a := rate * service / float64(max(1, farm.Slots))
		return min(max(int(math.Ceil(headroom*a+beta*math.Sqrt(a)-1e-9)), farm.Min, 1), farm.Max)
	}
	for k := range p.counts {
		from := float64(k)*farm.Interval - after
		to := max(from, float64(k)*farm.Interval+before)
		p.counts[k] = max(farm.Min, 1)
		for i, change := range tasks.Changes {
			end := tasks.Horizon
			if i+1 < len(tasks.Changes) {
				end = tasks.Changes[i+1].At
			}
			if change.At <= to && end > from {
				p.counts[k] = max(p.counts[k], count(change.Rate))
			}
		}
	}
	return p
}
