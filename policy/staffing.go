package policy

import (
	"fmt"
	"math"
)

// staffing sizes a farm as queueing theory does, and is what a farm runs unless it
// says otherwise. It counts in slots, of which a replica has one or more:
//
//	load    a = headroom·λ·S, in Erlangs: slots at work. λ is that of rate.go, S
//	        Observation.Service
//	steady  the fewest n ≥ a + β·√a with P(wait + service ≤ deadline) ≥ goal
//	drain   n = a + drain·q/T           where work is queued or about to be
//	replicas = ⌈max(steady, drain)/slots⌉, at least 1; from floor to cap;
//	           the largest steady of the last down seconds, and drain of L + I
//
// Steady. The square root is the law of Halfin and Whitt: with n = a + β·√a the share
// of tasks that wait stays the same at any size. Without a deadline that is all.
// With one, queueing.go tells how many are on time: Erlang's C, waits stretched
// by (1 + cs²)/2 for services with the measured cs² (arrivals taken as Poisson,
// ca² = 1; cs² = 1 until thirty services were seen), lognormal services. The goal
// is the target, but where few services fit into the deadline at all no number of
// replicas reaches it: waiting may always spoil a tenth of the lateness that the
// target allows, goal = min(target, F(D) − (1 − target)/10).
//
// Drain. Replicas wished for now work after the start-up lag L, and what they do is
// seen an interval I later. Until then those that are ready, and half of those
// that start, go on: the work queued then is q = waiting·S + (a − those)·L, in
// slot-seconds. It should be gone when the first waiting task is due (where none
// has a due, within the deadline, or within 60 s in a farm without one): T is the
// time until then less L, but not less than L + I, since haste beyond what a decision
// can show only overshoots. Delayed tasks count when they wait again.
//
// Hold. Load comes back, so what a steady load needs is held for down seconds. A
// backlog that is gone is gone: what drains it is held only until the replicas
// that were asked for can have worked, L + I.
//
// Special cases. No arrivals and no task: the farm's Min. Services longer than the
// short window: their load is seen in the running tasks more than in λ, a is at least
// those. S or λ unknown: the tasks that run (or the busy share, if more) are the
// load, as Little's law has it: a + β·√a, or with a queue one slot for each task up
// to twice the slots there are. Neither λ nor a task: hold.
//
// Defaults: headroom 1.1 covers the errors of λ and S; β 0.5 lets half of the tasks
// of a farm without deadline wait for a moment, and with one the goal asks for more;
// down 60 s is Knative's window, a fifth of that of Kubernetes; drain 1 is the
// formula. floor, cap and drain = 0 are there for calibration: where bursts pass
// before a replica is ready the best rule hardly moves.
//
// Memory: the past wishes that trail.peak keeps, of both.
var staffing = Law{
	Name: "staffing",
	Doc:  "the fewest replicas with which an M/G/c queue is on time and a backlog drains",
	Params: []Param{
		{Name: "headroom", Doc: "times the offered load", Default: 1.1, Min: 0.5, Max: 4, Search: Range{Min: 0.7, Max: 2.5, Log: true}},
		{Name: "beta", Doc: "slots beyond the load, at least, in square roots of the load", Default: 0.5, Min: 0, Max: 10, Search: Range{Min: 0, Max: 3}},
		{Name: "drain", Doc: "times the slots that drain a backlog in time", Default: 1, Min: 0, Max: 10, Search: Range{Min: 0, Max: 2}},
		{Name: "floor", Doc: "least replicas", Default: 0, Min: 0, Max: most, Integer: true, Search: Range{1, 256, true, true}},
		{Name: "cap", Doc: "most replicas; wins over floor", Default: most, Min: 0, Max: most, Integer: true, Search: Range{1, 256, true, true}},
		{Name: "down", Doc: "seconds that the wish for a steady load is held", Default: 60, Min: 0, Max: 3600, Search: Range{Min: 2, Max: 600, Log: true}},
	},
	make: func(p Params) Policy {
		return staff{
			spec: p.Spec(), headroom: p.Get("headroom"), beta: p.Get("beta"), drain: p.Get("drain"),
			floor: p.Get("floor"), cap: p.Get("cap"), down: p.Get("down"),
		}
	},
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

type staff struct {
	spec                                    string
	headroom, beta, drain, floor, cap, down float64
}

func (s staff) Name() string { return s.spec }

func (s staff) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	lambda := rate(o, patience(o))
	if !lambda.Known() && tasks(o.Waiting)+tasks(o.Running) == 0 {
		return Hold(o, "no task is there, and nothing is known of the arrivals")
	}
	steady, replicas, why := s.wish(o, lambda)
	now := s.bound(replicas)
	if now != count(replicas) {
		why += fmt.Sprintf("; bounded to %d", now)
	}
	at, soon := seconds(o.At), lag(o)+clip(o.Interval, 0, 1e9)
	held := count(steadyWishes.peak(m, at, s.down, possible(o, s.bound(steady))))
	draining := count(drainWishes.peak(m, at, soon, possible(o, now)))
	switch {
	case held > now && held >= draining:
		why += fmt.Sprintf("; %d was wished within %s", held, span(s.down))
	case draining > now:
		why += fmt.Sprintf("; %d was wished within %s", draining, span(soon))
	}
	return Decision{Replicas: max(now, held, draining), Reason: why}
}

var steadyWishes, drainWishes = wishes(""), wishes("drain")

// bound is a count between floor and cap.
func (s staff) bound(replicas float64) int { return count(min(max(replicas, s.floor), s.cap)) }

// possible is what can be of a wish. What cannot is not held either, or a raised
// max would scale an idle farm up.
func possible(o *Observation, n int) float64 {
	if o.Max > 0 {
		n = min(n, o.Max)
	}
	return float64(n)
}

// lag is the measured start-up lag, or an interval.
func lag(o *Observation) float64 {
	return clip(o.StartupLag.Or(clip(o.Interval, 0, 1e9)), 0, 1e9)
}

// wish is the wish of this instant, in replicas, that for a steady load alone,
// and why.
func (s staff) wish(o *Observation, lambda Maybe) (level, replicas float64, why string) {
	service := clip(float64(o.Service), 0, 1e6)
	waiting, running := tasks(o.Waiting), tasks(o.Running)
	switch {
	case waiting+running == 0 && lambda == 0:
		return float64(o.Min), float64(o.Min), fmt.Sprintf("idle: the least is %d", o.Min)
	case service == 0:
		replicas, why = s.blind(o, "service time")
		return replicas, replicas, why
	case !lambda.Known():
		replicas, why = s.blind(o, "arrival rate")
		return replicas, replicas, why
	}
	load := s.headroom * float64(lambda) * service
	why = fmt.Sprintf("load %s of %s/s at %s", digits(load), digits(float64(lambda)), span(service))
	if service > o.Short.Length && running > load {
		load = running
		why = fmt.Sprintf("load %s of running tasks", digits(load))
	}
	steady, goal := s.steady(o, load, service)
	why += fmt.Sprintf("; %d for %s", count(steady/o.slots()), goal)
	drain, left := s.backlog(o, load, service)
	if drain > steady {
		why += fmt.Sprintf("; %d to catch up with %s waiting in %s", count(drain/o.slots()), digits(waiting), span(left))
	}
	whole := func(slots float64) float64 { return max(1, math.Ceil(slots/o.slots()-1e-9)) }
	return whole(steady), whole(max(steady, drain)), why
}

// steady is the slots that keep a steady load on time, and what for.
func (s staff) steady(o *Observation, load, service float64) (slots float64, goal string) {
	root := load + s.beta*math.Sqrt(load)
	deadline, target := clip(o.Deadline, 0, 1e9), clip(o.Target, 0, 0.9999)
	if deadline == 0 {
		return root, "the load"
	}
	cs2 := variation(o)
	p := newPunctuality(deadline, newLognormal(service, cs2))
	aim := min(target, p.fits-(1-target)/10)
	if aim <= 0 {
		return root, "the load, as services take longer than " + span(deadline)
	}
	slots = fewest(load, root, func(c int, wait float64) bool {
		return p.share(wait, waitOfWaiting(c, load, service, 1, cs2)) >= aim
	})
	return slots, fmt.Sprintf("%.4g%% within %s", 100*aim, span(deadline))
}

// variation is cs², of the shortest window that saw enough services.
func variation(o *Observation) float64 {
	for _, w := range []*Window{&o.Short, &o.Long} {
		if w.Service.N >= 30 {
			return clip(w.Service.CV2(), 0, 100)
		}
	}
	return 1
}

// backlog is the slots that drain what is queued when new replicas are ready, and
// in what time; no more than the load where nothing is queued then.
func (s staff) backlog(o *Observation, load, service float64) (slots, left float64) {
	interval, lag := clip(o.Interval, 0, 1e9), lag(o)
	left = max(o.NextDue.Or(patience(o))-lag, lag+interval, 1e-3)
	able := o.ready() + max(0, float64(o.Starting))/2*o.slots()
	work := max(0, tasks(o.Waiting)*service+(load-able)*lag)
	return load + s.drain*work/left, left
}

// blind sizes a farm of which the service time or the arrival rate is unknown by
// the tasks that are there.
func (s staff) blind(o *Observation, unknown string) (replicas float64, why string) {
	waiting, running := tasks(o.Waiting), tasks(o.Running)
	there := o.ready()
	busy := max(running, clip(float64(o.Busy), 0, 1)*there)
	wish := busy + s.beta*math.Sqrt(busy)
	if waiting > 0 {
		wish = max(wish, min(busy+waiting, 2*max(there, o.slots())))
	}
	return max(1, math.Ceil(wish/o.slots()-1e-9)),
		fmt.Sprintf("%s unknown: %s tasks run, %s wait", unknown, digits(running), digits(waiting))
}
