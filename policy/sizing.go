package policy

import (
	"fmt"
	"math"
)

// This file is the model of staffing: how many slots a load, a deadline and a backlog
// ask for. staffing.go has the formulas. Other laws use it for loads of their own.

// The parameters of a sizer.
var (
	headroomParam = Param{Name: "headroom", Doc: "times the offered load", Default: 1.1, Min: 0.5, Max: 4, Search: Range{Min: 0.7, Max: 2.5, Log: true}}
	betaParam     = Param{Name: "beta", Doc: "slots beyond the load, at least, in square roots of the load", Default: 0.5, Min: 0, Max: 10, Search: Range{Min: 0, Max: 3}}
	drainParam    = Param{Name: "drain", Doc: "times the slots that drain a backlog in time", Default: 1, Min: 0, Max: 10, Search: Range{Min: 0, Max: 2}}
)

// sizer sizes a farm.
type sizer struct{ headroom, beta, drain float64 }

func newSizer(p Params) sizer { return sizer{p.Get("headroom"), p.Get("beta"), p.Get("drain")} }

// wider is a sizer for so many times the load and the backlog.
func (s sizer) wider(times float64) sizer {
	return sizer{s.headroom * times, s.beta, s.drain * times}
}

// drainTime is within how many seconds a farm without deadline drains a backlog.
const drainTime = 60

// patience is the seconds that a task may take.
func patience(o *Observation) float64 {
	if o.Deadline > 0 {
		return min(o.Deadline, 1e9)
	}
	return drainTime
}

// lag is the measured start-up lag, or an interval.
func lag(o *Observation) float64 {
	return clip(o.StartupLag.Or(clip(o.Interval, 0, 1e9)), 0, 1e9)
}

// leadTime is the seconds until what is wished for now works and can be seen to: the
// start-up lag and an interval.
func leadTime(o *Observation) float64 { return lag(o) + clip(o.Interval, 0, 1e9) }

// size is how large a farm should be, and why.
type size struct {
	level, replicas float64 // for the steady load alone, and in all

	idle            bool
	unknown         string  // what is, so that the tasks that are there decide
	load            float64 // slots
	lambda, service float64
	running         bool    // the load is that of the running tasks
	steady, drain   float64 // slots
	goal            goal
	left            float64 // seconds to drain in
}

// goal is what the steady slots are for: a share of tasks on time, 0 where only the load
// can be served, and why not.
type goal struct {
	share   float64
	tooLong bool // services, for the deadline
}

// size is the size of this instant. p may be new, or of another size of it.
func (s sizer) size(o *Observation, lambda Maybe, p *punctuality) size {
	service := clip(float64(o.Service), 0, 1e6)
	z := size{service: service, lambda: float64(lambda)}
	switch {
	case inFarm(o) == 0 && lambda == 0:
		z.level, z.replicas, z.idle = float64(o.Min), float64(o.Min), true
		return z
	case service == 0:
		z.unknown = "service time"
	case !lambda.Known():
		z.unknown = "arrival rate"
	}
	if z.unknown != "" {
		z.replicas = s.blind(o)
		z.level = z.replicas
		return z
	}
	running := tasks(o.Running)
	there := inFarm(o) + math.Floor(float64(lambda)*leadTime(o))
	z.load = min(s.headroom*float64(lambda)*service, there)
	if service > o.Short.Length && running > z.load {
		z.load, z.running = running, true
	}
	z.steady, z.goal = s.steady(o, z.load, service, p)
	if z.goal.share == 0 {
		z.steady = min(z.steady, there)
	}
	z.drain, z.left = s.backlog(o, z.load, service)
	z.drain = min(z.drain, there)
	z.level, z.replicas = whole(o, z.steady), whole(o, max(z.steady, z.drain))
	return z
}

// whole is the replicas with so many slots, at least one.
func whole(o *Observation, slots float64) float64 {
	return max(1, math.Ceil(slots/o.slots()-1e-9))
}

// explain says why.
func (z *size) explain(o *Observation) string {
	switch {
	case z.idle:
		return fmt.Sprintf("idle: the least is %d", o.Min)
	case z.unknown != "":
		return fmt.Sprintf("%s unknown: %s tasks run, %s wait", z.unknown, digits(tasks(o.Running)), digits(tasks(o.Waiting)))
	}
	why := fmt.Sprintf("load %s of %s/s at %s", digits(z.load), digits(z.lambda), span(z.service))
	if z.running {
		why = fmt.Sprintf("load %s of running tasks", digits(z.load))
	}
	why += fmt.Sprintf("; %d for %s", count(z.steady/o.slots()), z.goal.explain(o))
	if z.drain > z.steady {
		why += fmt.Sprintf("; %d to catch up with %s waiting in %s", count(z.drain/o.slots()), digits(tasks(o.Waiting)), span(z.left))
	}
	return why
}

func (g goal) explain(o *Observation) string {
	switch deadline := span(clip(o.Deadline, 0, 1e9)); {
	case g.tooLong:
		return "the load, as services take longer than " + deadline
	case g.share > 0:
		return fmt.Sprintf("%.4g%% within %s", 100*g.share, deadline)
	}
	return "the load"
}

// steady is the slots that keep a steady load on time, and what for. p is as for size.
func (s sizer) steady(o *Observation, load, service float64, p *punctuality) (slots float64, g goal) {
	root := load + s.beta*math.Sqrt(load)
	deadline, target := clip(o.Deadline, 0, 1e9), clip(o.Target, 0, 0.9999)
	if deadline == 0 {
		return root, goal{}
	}
	cs2 := variation(o)
	p.of(deadline, newLognormal(service, cs2))
	aim := min(target, p.fits-(1-target)/10)
	if aim <= 0 {
		return root, goal{tooLong: true}
	}
	slots = fewest(load, root, func(c int, wait float64) bool {
		return p.share(wait, waitOfWaiting(c, load, service, 1, cs2)) >= aim
	})
	return slots, goal{share: aim}
}

// variation is cs², of the shortest window that saw enough services.
func variation(o *Observation) float64 {
	for _, w := range [...]*Window{&o.Short, &o.Long} {
		if w.Service.N >= 30 {
			return clip(w.Service.CV2(), 0, 100)
		}
	}
	return 1
}

// backlog is the slots that drain what is queued when new replicas are ready, and
// in what time; no more than the load where nothing is queued then. Fewer than there
// are must do with all that waits now.
func (s sizer) backlog(o *Observation, load, service float64) (slots, left float64) {
	interval, lag := clip(o.Interval, 0, 1e9), lag(o)
	waiting := tasks(o.Waiting) * service
	left = max(o.NextDue.Or(patience(o))-lag, leadTime(o), service, 1e-3)
	able := o.ready() + max(0, float64(o.Starting))/2*o.slots()
	slots = load + s.drain*max(0, waiting+(load-able)*lag)/left
	rest := o.NextDue.Or(patience(o) - o.OldestWait.Or(0))
	keep := load + s.drain*waiting/max(rest, interval, 1e-3)
	return max(slots, min(keep, float64(asked(o))*o.slots())), left
}

// blind sizes a farm of which the service time or the arrival rate is unknown by
// the tasks that are there.
func (s sizer) blind(o *Observation) float64 {
	waiting, running := tasks(o.Waiting), tasks(o.Running)
	there := o.ready()
	busy := max(running, clip(float64(o.Busy), 0, 1)*there)
	wish := busy + s.beta*math.Sqrt(busy)
	if waiting > 0 {
		wish = max(wish, min(busy+waiting, 2*max(there, o.slots())))
	}
	return whole(o, wish)
}
