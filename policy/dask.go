package policy

import (
	"fmt"
	"math"
)

// dask-adaptive is the adaptive cluster of Dask, the nearest relative of a task farm: its
// target is a time in which the work that is there should be done.
//
//	work    (waiting + running)·S, in slot-seconds
//	target  ⌈work/duration⌉ slots, but no more than there are tasks; at least one where
//	        any waits and none is there
//	up      at once
//	down    after votes decisions in a row for it, and no further than to the replicas
//	        that tasks run on
//
// Dask estimates the work from the durations of each kind of task; here S is
// Observation.Service. It closes only workers that are idle; which one is the platform's
// choice here, so the count is bounded instead. What it does about memory is left out:
// tasks' results do not stay with the workers.
//
// Defaults are Dask's: 5 s of work, a decision a second, three votes. The law decides
// with every decision of the farm. Where S is unknown a task counts as half a second, as
// in Dask.
//
// Memory: votes, the decisions in a row for fewer.
var daskAdaptive = Law{
	Name: "dask-adaptive",
	Doc:  "Dask's adaptive cluster: as many slots as do the work that is there in five seconds",
	Params: []Param{
		{Name: "duration", Doc: "seconds in which the work should be done", Default: 5, Min: 0.001, Max: 86_400, Search: Range{Min: 0.02, Max: 60, Log: true}},
		{Name: "votes", Doc: "decisions in a row for fewer", Default: 3, Min: 1, Max: 10_000, Integer: true, Search: Range{Min: 1, Max: 100, Log: true}},
		floorParam,
		capParam,
	},
	make: func(p Params) Policy { return adaptive{p.Spec(), p.Get("duration"), int(p.Get("votes")), newLimits(p)} },
}

// unknownDuration is the seconds that Dask takes a task of unknown duration for.
const unknownDuration = 0.5

type adaptive struct {
	spec     string
	duration float64
	votes    int
	limits
}

func (s adaptive) Name() string { return s.spec }

func (s adaptive) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	there, service := inFarm(o), clip(o.Service.Or(unknownDuration), 0, 1e6)
	slots := min(math.Ceil(there*service/s.duration-1e-9), there)
	target := count(slots / o.slots())
	if o.Desired <= 0 && tasks(o.Waiting) > 0 {
		target = max(target, 1)
	}
	target = s.clamp(o, target)
	n, why := target, "at once"
	if fewer := streak(m, "votes", target < asked(o)); fewer > 0 {
		n = max(target, min(asked(o), count(tasks(o.Running)/o.slots())))
		why = "only idle ones go"
		if fewer < s.votes {
			n, why = asked(o), "but not yet for long enough"
		}
	}
	d := Decision{Replicas: n}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("%s tasks of %s each in %s need %d: %s", digits(there), span(service), span(s.duration), target, why)
	}
	return d
}
