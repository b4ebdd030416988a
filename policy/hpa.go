package policy

import "fmt"

// hpa is the horizontal pod autoscaler of Kubernetes, as horizontal.go has it, on an
// External metric with a target per replica:
//
//	every sync seconds: ⌈total/(target·slots)⌉, within tolerance as it is,
//	the largest of the last window seconds, at most max(2n, 4), from floor to cap
//
// total is either the slots at work, which is what processor time is to a farm whose
// workers compute, or the tasks in the farm, a custom metric. Between syncs it keeps
// what is.
//
// The defaults are those of Kubernetes 1.35: a sync each 15 s, tolerance 10 %, 300 s
// down; the target is the 80 % of the processor that it takes where none is named.
// As there, no rules apply unless one of upwindow, pods, percent, downpercent and
// period is set; the others then have the values of a behavior block's defaults: up by
// the larger of pods and percent a period, down by downpercent a period.
//
// Memory: next, when the next sync is due, and that of horizontal.
var hpa = Law{
	Name: "hpa",
	Doc:  "horizontal pod autoscaler of Kubernetes: total/target, the largest of five minutes",
	Params: []Param{
		metricParam(metricBusy),
		{Name: "target", Doc: "of the metric per slot", Default: 0.8, Min: 0.01, Max: 1000, Search: Range{Min: 0.1, Max: 5, Log: true}},
		syncParam,
		toleranceParam,
		windowParam,
		floorParam,
		capParam,
		{Name: "upwindow", Doc: "seconds whose least proposal counts upwards", Default: 0, Min: 0, Max: 3600},
		{Name: "pods", Doc: "replicas added a period, at most", Default: 4, Min: 0, Max: 1000, Integer: true},
		{Name: "percent", Doc: "percent added a period, at most", Default: 100, Min: 0, Max: 1000},
		{Name: "downpercent", Doc: "percent taken away a period, at most", Default: 100, Min: 0, Max: 100},
		{Name: "period", Doc: "seconds of these", Default: 15, Min: 1, Max: 600},
	},
	make: func(p Params) Policy {
		h := newHorizontal(p)
		h.up = scalingRules{window: p.Get("upwindow"), tolerance: h.tolerance, limits: []scalingLimit{
			{value: p.Get("pods"), period: p.Get("period")}, {percent: true, value: p.Get("percent"), period: p.Get("period")},
		}}
		h.down = scalingRules{window: h.stabilization, tolerance: h.tolerance, limits: []scalingLimit{
			{percent: true, value: p.Get("downpercent"), period: p.Get("period")},
		}}
		for _, name := range []string{"upwindow", "pods", "percent", "downpercent", "period"} {
			h.rules = h.rules || p.Get(name) != p.fallback(name)
		}
		return &podScaler{p.Spec(), metric(p.Get("metric")), p.Get("target"), p.Get("sync"), h, newLimits(p)}
	},
}

// What hpa and keda share.
var (
	syncParam      = Param{Name: "sync", Doc: "seconds between looks", Default: 15, Min: 1, Max: 300, Search: Range{Min: 2, Max: 60, Log: true}}
	toleranceParam = Param{Name: "tolerance", Doc: "share of the target by which the metric may be off", Default: 0.1, Min: 0, Max: 1, Search: Range{Min: 0, Max: 0.5}}
	windowParam    = Param{Name: "window", Doc: "seconds whose largest proposal counts downwards", Default: 300, Min: 0, Max: 3600, Search: Range{Min: 2, Max: 600, Log: true}}
)

func newHorizontal(p Params) horizontal {
	return horizontal{tolerance: p.Get("tolerance"), stabilization: p.Get("window")}
}

type podScaler struct {
	spec         string
	metric       metric
	target, sync float64
	core         horizontal
	limits
}

func (s *podScaler) Name() string { return s.spec }

func (s *podScaler) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	now := seconds(o.At)
	if !due(m, "next", now, s.sync) {
		return wait(o, m, "next", now)
	}
	lo, hi := s.bounds(o)
	return s.core.decide(o, m, lo, hi, s.metric.total(o), s.target*o.slots(), s.metric)
}

// decide is a sync between two bounds, on a metric whose total and target per replica
// are given.
func (h *horizontal) decide(o *Observation, m Memory, lo, hi int, total, target float64, of metric) Decision {
	in := hpaReading{now: seconds(o.At), total: Maybe(total), current: asked(o), status: asked(o), min: lo, max: hi}
	a := h.sync(m, in, target)
	d := Decision{Replicas: a.desired}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("%s %s at %s a replica: %s", digits(total), of, digits(target), a.able)
		if a.limited != "" && a.limited != "DesiredWithinRange" {
			d.Reason += ", " + a.limited
		}
	}
	return d
}

// wait keeps what is until something is due.
func wait(o *Observation, m Memory, key string, now float64) Decision {
	d := Decision{Replicas: asked(o)}
	if !o.Quiet {
		d.Reason = "it looks again in " + span(m[key]-now)
	}
	return d
}
