package policy

import (
	"fmt"
	"math"
)

// openfaas-ce is the autoscaling of OpenFaaS Community Edition: an alert on the rate of
// completed invocations, and nothing else.
//
//	alert     results a second over the short window > rate, at two looks in a row, which
//	          are look seconds apart
//	firing    every repeat seconds: step = ⌈top·factor/100⌉ more, at most top
//	resolved  at once to floor
//
// top is the smaller of the farm's max and cap, floor the larger of its min and that. A queue, tasks that run, and errors never
// count: a farm of long tasks that ends less than five a second stays at its min.
//
// As observed at its gateway and told in its public documentation: Prometheus looks
// each 15 s at the rate of ten seconds, the alert must have held for 5 s, which makes two looks;
// the alert manager waits 5 s before it tells of a new alert (wait), repeats each
// 30 s, and tells of the end within 10 s, taken as half of that here. The short window is
// ten seconds at intervals up to three.
//
// Defaults: rate 5, factor 20 percent (the documentation; an alert without the label
// counts as 10), and the edition's hard cap of 5. A larger cap is what a patched gateway
// would do.
//
// Memory: look, when it looks again; over, how many looks in a row were above the
// rate; firing, 1 while the gateway has been told so; tell, when it is told next.
var openfaasCE = Law{
	Name: "openfaas-ce",
	Doc:  "OpenFaaS CE: a step up while results come fast, straight back when they do not",
	Params: []Param{
		{Name: "rate", Doc: "results a second that fire the alert", Default: 5, Min: 0, Max: 1e6, Search: Range{Min: 0.5, Max: 500, Log: true}},
		{Name: "factor", Doc: "percent of the most replicas that a step has; 0 never up", Default: 20, Min: 0, Max: 100, Search: Range{Min: 1, Max: 100, Log: true}},
		{Name: "cap", Doc: "most replicas", Default: 5, Min: 1, Max: most, Integer: true, Search: capParam.Search},
		floorParam,
		{Name: "look", Doc: "seconds between looks", Default: 15, Min: 1, Max: 300},
		{Name: "wait", Doc: "seconds before the gateway is told of a new alert", Default: 5, Min: 0, Max: 300},
		{Name: "repeat", Doc: "seconds between steps", Default: 30, Min: 1, Max: 3600, Search: Range{Min: 5, Max: 120, Log: true}},
	},
	make: func(p Params) Policy {
		return alertScaler{p.Spec(), newLimits(p), p.Get("rate"), p.Get("factor"), p.Get("look"), p.Get("wait"), p.Get("repeat")}
	},
}

// resolveDelay is the seconds from the end of an alert to the gateway's knowing.
const resolveDelay = 5

type alertScaler struct {
	spec string
	limits
	rate, factor, look, wait, repeat float64
}

func (s alertScaler) Name() string { return s.spec }

func (s alertScaler) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	if o.Short.Covered <= 0 {
		return Hold(o, "nothing is known of the results")
	}
	now, results := seconds(o.At), o.Short.Done/o.Short.Covered
	if due(m, "look", now, s.look) {
		s.alert(m, now, results > s.rate)
	}
	n, why := asked(o), "as it is"
	tell, pending := m["tell"]
	if pending && (now >= tell || tell > now+s.repeat+s.wait+resolveDelay) {
		lo, hi := s.bounds(o)
		top := float64(hi)
		if m["firing"] == 1 {
			if step := math.Ceil(top * s.factor / 100); step > 0 {
				n, why = max(count(min(float64(n)+step, top)), lo), "firing: a step up"
			}
			m["tell"] = now + s.repeat
		} else {
			n, why = lo, "resolved: the least"
			delete(m, "tell")
		}
	}
	d := Decision{Replicas: n}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("%s results/s, alert above %g: %s", digits(results), s.rate, why)
	}
	return d
}

// alert follows the rate from look to look.
func (s alertScaler) alert(m Memory, now float64, over bool) {
	if !over {
		m["over"] = 0
		if m["firing"] == 1 {
			m["firing"], m["tell"] = 0, now+resolveDelay
		}
		return
	}
	m["over"] = min(clip(m["over"], 0, 2)+1, 2)
	if m["over"] == 2 && m["firing"] != 1 {
		m["firing"], m["tell"] = 1, now+s.wait
	}
}
