package policy

import "fmt"

// target-tracking keeps a metric per slot at a target, as the clouds offer it (Amazon's
// is the model):
//
//	point   the mean of a period, per ready slot; there is one a period
//	out     above target at up points in a row: ⌈total/(target·slots)⌉
//	in      below nine tenths of it at down points in a row, and no change for
//	        cooldown seconds: the same
//
// total is that of all replicas, so replicas that start count for what they will take
// over, and are not asked for twice. That is what its warm-up and its cooldown outwards
// are for. It also says that the way in is more gradual than that, but not how.
//
// Defaults are those of its alarms: a minute, three points out, fifteen in, 300 s. It
// has none for the target: 70 % busy is usual.
//
// Memory: that of meter; above and below, the points in a row; changed, when it last
// wished for a change.
var targetTracking = Law{
	Name: "target-tracking",
	Doc:  "target tracking of the clouds: total/target, after minutes above or a quarter of an hour below",
	Params: []Param{
		metricParam(metricBusy),
		{Name: "target", Doc: "of the metric per slot", Default: 0.7, Min: 0.01, Max: 1000, Search: Range{Min: 0.1, Max: 5, Log: true}},
		periodParam,
		{Name: "up", Doc: "points above the target", Default: 3, Min: 1, Max: 1000, Integer: true, Search: Range{Min: 1, Max: 5}},
		{Name: "down", Doc: "points below nine tenths of it", Default: 15, Min: 1, Max: 1000, Integer: true, Search: Range{Min: 1, Max: 30, Log: true}},
		cooldownParam,
		floorParam,
		capParam,
	},
	make: func(p Params) Policy {
		return tracker{p.Spec(), newMeter(p), p.Get("target"), int(p.Get("up")), int(p.Get("down")), p.Get("cooldown"), newLimits(p)}
	},
}

// What target-tracking and step-scaling share.
var (
	periodParam   = Param{Name: "period", Doc: "seconds a point", Default: 60, Min: 1, Max: 3600, Search: Range{Min: 2, Max: 60, Log: true}}
	cooldownParam = Param{Name: "cooldown", Doc: "seconds from any change to a step in", Default: 300, Min: 0, Max: 3600, Search: Range{Min: 2, Max: 600, Log: true}}
)

func newMeter(p Params) meter { return meter{metric(p.Get("metric")), p.Get("period")} }

type tracker struct {
	spec string
	meter
	target   float64
	up, down int
	cooldown float64
	limits
}

func (s tracker) Name() string { return s.spec }

func (s tracker) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	now := seconds(o.At)
	p, ok := s.read(o, m)
	if !ok {
		return wait(o, m, "point", now)
	}
	n, why := asked(o), "as it is"
	above, below := streak(m, "above", p.share > s.target), streak(m, "below", p.share < 0.9*s.target)
	wish := s.clamp(o, count(p.total/(s.target*o.slots())))
	switch {
	case above >= s.up && wish > n:
		n, why = wish, "out"
	case below >= s.down && wish < n && !within(m, "changed", now, s.cooldown):
		n, why = wish, "in"
	}
	if n = s.clamp(o, n); n != asked(o) {
		m["changed"] = now
	}
	d := Decision{Replicas: n}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("%s %s, %s per slot, target %g; above at %d points, below at %d: %s",
			digits(p.total), s.metric, digits(p.share), s.target, above, below, why)
	}
	return d
}
