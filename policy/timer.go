package policy

import "fmt"

// timer is staffing with a clock: a table over the age of the level says how far it
// prepares for the highest load of the levels before:
//
//	age of the level     share
//	below first          begin
//	below second         between
//	from second on       after
//
//	n = own + share·max(0, before − own)
//
// own and before are the replicas that the model of staffing gives the load of now and
// that of before. A backlog is drained as there, but what drains it is held only while
// replicas start: once they work the backlog tells. A load that goes up and down is
// prepared for when the time is near; on the upper level before is own, and the
// table says nothing. The interval in which a load rises shows a part of the rise alone,
// so for three intervals after one nothing that was prepared is given up. Other
// wishes are not held: the table says what comes back, and when.
//
// This is what a learner can gain from history where bursts come by a clock, written
// down by hand; it has to be told when. It is here as the ablation of such learners, more
// than as a law to run. The idea is a hazard rate: how soon a level of that age ends.
//
// Defaults: half a minute of rest, then all that was needed before for two minutes, then
// half of it. They fit no farm in particular. Calibration leaves begin, second and after
// alone: in the two hundred trials that it has, four parameters come to more than seven
// where bursts come by a clock, and to less on loads that this law is not for.
//
// Memory: the past wishes that drain.
var timer = Law{
	Name: "timer",
	Doc:  "staffing that prepares for the load of before, by a table over the age of the level",
	Params: []Param{
		headroomParam,
		{Name: "drain", Doc: drainParam.Doc, Default: 1, Min: 0, Max: 10, Search: Range{Min: 0.5, Max: 8, Log: true}},
		{Name: "first", Doc: "seconds of age where the second row begins", Default: 30, Min: 0, Max: 86_400, Search: Range{Min: 5, Max: 300, Log: true}},
		{Name: "second", Doc: "seconds after first where the third row begins", Default: 120, Min: 0, Max: 86_400},
		{Name: "begin", Doc: "share in the first row", Default: 0, Min: 0, Max: 2},
		{Name: "between", Doc: "share in the second row", Default: 1, Min: 0, Max: 2, Search: Range{Min: 0, Max: 1.5}},
		{Name: "after", Doc: "share in the third row", Default: 0.5, Min: 0, Max: 2},
	},
	make: func(p Params) Policy {
		first := p.Get("first")
		return clock{
			p.Spec(), sizer{p.Get("headroom"), betaParam.Default, p.Get("drain")}, [2]float64{first, first + p.Get("second")},
			[3]float64{p.Get("begin"), p.Get("between"), p.Get("after")},
		}
	},
}

type clock struct {
	spec string
	sizer
	ages   [2]float64
	shares [3]float64
}

func (c clock) Name() string { return c.spec }

func (c clock) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	lambda := rate(o)
	if !lambda.Known() && inFarm(o) == 0 {
		return Hold(o, "no task is there, and nothing is known of the arrivals")
	}
	var p punctuality
	z := c.size(o, lambda, &p)
	before, share := c.before(o, &p), c.share(o.Level.Age)
	ready := z.level
	if before > z.level {
		ready += share * (before - z.level)
		if burst(o) && o.Level.Age < 3*o.Interval {
			ready = max(ready, min(before, float64(asked(o))))
		}
	}
	at, soon := seconds(o.At), leadTime(o)
	drain := 0
	if z.drain > z.steady {
		drain = count(z.replicas)
	}
	now := count(max(ready, z.replicas))
	n, peak := now, count(drainWishes.peak(m, at, soon, possible(o, drain)))
	if o.Starting > 0 {
		n = max(n, peak)
	}
	d := Decision{Replicas: n}
	if o.Quiet {
		return d
	}
	d.Reason = z.explain(o)
	if before > z.level {
		d.Reason += fmt.Sprintf("; %s of the %s needed before, as the level is %s old", digits(share), digits(before), span(o.Level.Age))
	}
	if n > now {
		d.Reason += fmt.Sprintf("; %d was wished within %s", n, span(soon))
	}
	return d
}

// share is the table.
func (c clock) share(age float64) float64 {
	for i, end := range c.ages {
		if age < end {
			return c.shares[i]
		}
	}
	return c.shares[len(c.ages)]
}

// before is the replicas for the highest load of the levels before; 0 where there was
// none or the service time is unknown.
func (c clock) before(o *Observation, p *punctuality) float64 {
	highest, service := 0.0, clip(float64(o.Service), 0, 1e6)
	for _, l := range o.Past {
		highest = max(highest, clip(l.Rate, 0, fastest))
	}
	if highest == 0 || service == 0 {
		return 0
	}
	slots, _ := c.steady(o, c.headroom*highest*service, service, p)
	return whole(o, slots)
}
