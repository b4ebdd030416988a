package policy

import (
	"fmt"
	"math"
)

// step-scaling changes the count by steps that grow with the distance of a metric per
// slot from its threshold, as the clouds offer it (Amazon's is the model):
//
//	point   the mean of a period, per ready slot
//	out     at or above high at so many points in a row:
//	        k = ⌊(share − high)/width⌋ + 1 steps more, at most 10
//	in      below low at so many points in a row, and no change for cooldown seconds:
//	        ⌊(low − share)/width⌋ + 1 steps fewer
//
// A step is so many replicas, or so many percent of the count, at least one. Within
// warmup seconds of a step out only what the next is larger adds to it, as the service
// does while instances warm up.
//
// Defaults: the service has none but a minute a point and the 300 s; 0.8 and 0.4 with
// steps of one replica each 0.2 are in the way of its examples.
//
// Memory: that of meter; above and below, the points in a row; changed, when it last
// wished for a change; out, when it last stepped out, and added, by how much since the
// warm-up began.
var stepScaling = Law{
	Name: "step-scaling",
	Doc:  "step scaling of the clouds: more steps the farther a metric is from its threshold",
	Params: []Param{
		metricParam(metricBusy),
		{Name: "high", Doc: "of the metric per slot from which it steps out", Default: 0.8, Min: 0.01, Max: 1000, Search: Range{Min: 0.3, Max: 3, Log: true}},
		{Name: "low", Doc: "of the metric per slot below which it steps in", Default: 0.4, Min: 0, Max: 1000, Search: Range{Min: 0.05, Max: 1, Log: true}},
		{Name: "width", Doc: "of the metric per slot for each step more", Default: 0.2, Min: 0.01, Max: 1000, Search: Range{Min: 0.05, Max: 2, Log: true}},
		{Name: "step", Doc: "replicas or percent a step", Default: 1, Min: 1, Max: 1000, Integer: true, Search: Range{1, 32, true, false}},
		{Name: "change", Doc: "what a step counts", Choices: []string{"replicas", "percent"}},
		periodParam,
		{Name: "points", Doc: "points in a row", Default: 1, Min: 1, Max: 1000, Integer: true, Search: Range{Min: 1, Max: 5}},
		{Name: "warmup", Doc: "seconds in which a step out counts toward the next", Default: 300, Min: 0, Max: 3600, Search: Range{Min: 2, Max: 300, Log: true}},
		cooldownParam,
		floorParam,
		capParam,
	},
	make: func(p Params) Policy {
		return steps{
			spec: p.Spec(), meter: newMeter(p), high: p.Get("high"), low: p.Get("low"), width: p.Get("width"), step: p.Get("step"),
			percent: p.Get("change") == 1, points: int(p.Get("points")), warmup: p.Get("warmup"), cooldown: p.Get("cooldown"), limits: newLimits(p),
		}
	},
}

// mostSteps is how many steps a policy may have; the service allows twenty, both ways.
const mostSteps = 10

type steps struct {
	spec string
	meter
	high, low, width, step float64
	percent                bool
	points                 int
	warmup, cooldown       float64
	limits
}

func (s steps) Name() string { return s.spec }

func (s steps) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	now := seconds(o.At)
	p, ok := s.read(o, m)
	if !ok {
		return wait(o, m, "point", now)
	}
	above, below := streak(m, "above", p.share >= s.high), streak(m, "below", p.share < s.low)
	change := 0.0
	switch {
	case above >= s.points:
		change = s.out(o, m, now, s.change(o, p.share-s.high))
	case below >= s.points && !within(m, "changed", now, s.cooldown):
		change = -min(s.change(o, s.low-p.share), float64(asked(o)))
	}
	if change != 0 {
		m["changed"] = now
	}
	n := count(float64(asked(o)) + change)
	d := Decision{Replicas: s.clamp(o, n)}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("%s %s, %s per slot, between %g and %g nothing: %+g",
			digits(p.total), s.metric, digits(p.share), s.low, s.high, change) + bounded(n, d.Replicas)
	}
	return d
}

// change is the replicas for a distance from the threshold.
func (s steps) change(o *Observation, distance float64) float64 {
	k := min(math.Floor(distance/s.width+1e-9)+1, mostSteps)
	if s.percent {
		return max(1, math.Floor(float64(asked(o))*k*s.step/100))
	}
	return k * s.step
}

// out is what a step adds to those that still warm up.
func (s steps) out(o *Observation, m Memory, now, change float64) float64 {
	added := 0.0
	if within(m, "out", now, s.warmup) {
		added = clip(m["added"], 0, most)
	} else {
		m["out"] = now
	}
	m["added"] = max(change, added)
	return max(0, change-added)
}
