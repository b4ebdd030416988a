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
// can show only overshoots, nor than S, since no task takes less. Delayed tasks count
// when they wait again. Fewer replicas than there are would be fewer at once: as many
// are kept as it takes to work off what waits by its due (60 s old in a farm without),
// or in an interval.
//
// No more than the tasks. Slots beyond the tasks that are there and those that arrive
// within L + I have nothing to do: neither a nor n of a drain exceeds them, nor does
// n where there is no deadline to be kept.
//
// Hold. Load comes back, so what a steady load needs is held for down seconds. A
// backlog that is gone is gone: what drains it is held only until the replicas
// that were asked for can have worked, L + I. And the count goes down only where band
// more load and backlog would not ask for as many as there are, or measured noise would
// move it up and down.
//
// Special cases. No arrivals and no task: the farm's Min. Services longer than the
// short window: their load is seen in the running tasks more than in λ, a is at least
// those. S or λ unknown: the tasks that run (or the busy share, if more) are the
// load, as Little's law has it: a + β·√a, or with a queue one slot for each task up
// to twice the slots there are. Neither λ nor a task: hold. Replicas that start and of
// which none becomes ready for a minute, or 5 (L + I), may never: a backlog then asks for
// as many again as are ready at most.
//
// The rest is off by default, and there for calibration. trend adds to λ what it
// will have grown by L + I from now, at the slope between the short and the long
// window. window keeps λ from falling below its mean of about so many seconds, an
// exponential one: up at once, down as the average goes. boost is a share more while a
// level that is 1.5 times the one before is younger than hold. A wish below the count
// waits until no change was wished for cooldown seconds.
//
// Defaults: headroom 1.1 covers the errors of λ and S; β 0.5 lets half of the tasks
// of a farm without deadline wait for a moment, and with one the goal asks for more;
// down 60 s is Knative's window, a fifth of that of Kubernetes; drain 1 is the
// formula; with band 5 % a farm of three Erlangs is calm at a boundary where services
// have a cv of 0.6 (sim, P01), with 3 % it is not, and it costs 0 to 1.5 %. floor, cap and drain = 0 are there for calibration too: where bursts pass
// before a replica is ready the best rule hardly moves.
//
// Memory: the past wishes that trail.peak keeps, of both; with window the mean λ and
// when it was taken (mean, meanat); with cooldown when a change was wished for last
// (changed); while replicas start, how many were ready and since when (came, cameat).
var staffing = Law{
	Name: "staffing",
	Doc:  "the fewest replicas with which an M/G/c queue is on time and a backlog drains",
	Params: []Param{
		headroomParam,
		betaParam,
		drainParam,
		floorParam,
		capParam,
		{Name: "down", Doc: "seconds that the wish for a steady load is held", Default: 60, Min: 0, Max: 3600, Search: Range{Min: 2, Max: 600, Log: true}},
		{Name: "trend", Doc: "times the growth of the arrival rate until a new replica works", Default: 0, Min: 0, Max: 10, Search: Range{Min: 0, Max: 2}},
		{Name: "window", Doc: "seconds of the mean below which the arrival rate does not fall", Default: 0, Min: 0, Max: 3600, Search: Range{Min: 0, Max: 300}},
		{Name: "cooldown", Doc: "seconds from any change to a step down", Default: 0, Min: 0, Max: 3600, Search: Range{Min: 0, Max: 120}},
		{Name: "band", Doc: "share more of the load with which the count must be too large to go down", Default: 0.05, Min: 0, Max: 1, Search: Range{Min: 0, Max: 0.5}},
		{Name: "boost", Doc: "share more at the beginning of a burst", Default: 0, Min: 0, Max: 10, Search: Range{Min: 0, Max: 2}},
		{Name: "hold", Doc: "seconds of that", Default: 10, Min: 0, Max: 3600, Search: Range{Min: 2, Max: 60, Log: true}},
	},
	make: func(p Params) Policy {
		return staff{
			spec: p.Spec(), sizer: newSizer(p), floor: p.Get("floor"), cap: p.Get("cap"), down: p.Get("down"), trend: p.Get("trend"),
			window: p.Get("window"), cooldown: p.Get("cooldown"), band: p.Get("band"), boost: p.Get("boost"), hold: p.Get("hold"),
		}
	},
}

type staff struct {
	spec string
	sizer
	floor, cap, down float64
	trend, window    float64
	cooldown, band   float64
	boost, hold      float64
}

var steadyWishes, drainWishes = wishes(""), wishes("drain")

func (s staff) Name() string { return s.spec }

func (s staff) Decide(o *Observation, m Memory) Decision {
	return s.decide(o, m, &punctuality{})
}

func (s staff) decide(o *Observation, m Memory, p *punctuality) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	lambda := s.rate(o, m)
	if !lambda.Known() && inFarm(o) == 0 {
		return Hold(o, "no task is there, and nothing is known of the arrivals")
	}
	z := s.size(o, lambda, p)
	boosted := s.boost > 0 && burst(o) && o.Level.Age <= s.hold
	if boosted {
		z.replicas *= 1 + s.boost
	}
	wish, level, there := s.bound(z.replicas), s.bound(z.level), asked(o)
	now, why := wish, ""
	if n := max(level, there, count(2*float64(o.Ready))); s.inVain(o, m) && now > n {
		now, why = n, "; no more, as none has become ready"
	}
	if s.band > 0 && level < there {
		wide := s.wider(1+s.band).size(o, lambda, p)
		if s.bound(wide.level) >= there {
			level = there
		}
		if now < there && s.bound(wide.replicas) >= there {
			now, why = there, fmt.Sprintf("; %d is near enough", there)
		}
	}
	at := seconds(o.At)
	held := count(steadyWishes.peak(m, at, s.down, possible(o, level)))
	draining := count(drainWishes.peak(m, at, leadTime(o), possible(o, now)))
	n, calm := s.calm(o, m, max(now, held, draining))
	d := Decision{Replicas: n}
	if o.Quiet {
		return d
	}

	d.Reason = z.explain(o)
	if boosted {
		d.Reason += fmt.Sprintf("; a burst: %d", count(z.replicas))
	}
	if wish != count(z.replicas) {
		d.Reason += fmt.Sprintf("; bounded to %d", wish)
	}
	d.Reason += why
	switch {
	case held > now && held >= draining:
		d.Reason += fmt.Sprintf("; %d was wished within %s", held, span(s.down))
	case draining > now:
		d.Reason += fmt.Sprintf("; %d was wished within %s", draining, span(leadTime(o)))
	}
	d.Reason += calm
	return d
}

// rate is the arrival rate to size for.
func (s staff) rate(o *Observation, m Memory) Maybe {
	lambda := rate(o)
	if !lambda.Known() {
		return lambda
	}
	if s.trend > 0 {
		lambda += Maybe(s.trend * slope(o) * leadTime(o))
		lambda = Maybe(clip(float64(lambda), 0, fastest))
	}
	if s.window > 0 {
		at := seconds(o.At)
		mean, ok := m["mean"]
		if since := at - m["meanat"]; ok && since > 0 {
			mean += (float64(lambda) - mean) * -math.Expm1(-since/s.window)
		} else if !ok {
			mean = float64(lambda)
		}
		if mean = clip(mean, 0, fastest); lambda == 0 && mean*s.window < 0.1 {
			mean = 0 // not a task in ten windows: an idle farm goes to its least
		}
		m["mean"], m["meanat"] = mean, at
		lambda = max(lambda, Maybe(mean))
	}
	return lambda
}

// slope is by how much the arrival rate grows a second: the short window's less that of
// the long, over the time between their middles; 0 where it is unknown.
func slope(o *Observation) float64 {
	short, long := o.Short.Rate(), o.Long.Rate()
	apart := (o.Long.Covered - o.Short.Covered) / 2
	if !short.Known() || !long.Known() || !(apart > 0) {
		return 0
	}
	return clip(float64(short-long)/apart, -fastest, fastest)
}

// burst reports whether the load rose when its level began.
func burst(o *Observation) bool {
	return len(o.Past) > 0 && o.Level.Age > 0 && o.Level.Rate > 1.5*o.Past[0].Rate
}

// inVain reports whether replicas start and none has become ready for a minute, or five
// lead times: more of them may not come either.
func (s staff) inVain(o *Observation, m Memory) bool {
	now, ready := seconds(o.At), clip(float64(o.Ready), 0, most)
	since, ok := m["cameat"]
	switch {
	case o.Starting <= 0:
		delete(m, "came")
		delete(m, "cameat")
		return false
	case !ok || since > now || ready != m["came"]:
		m["came"], m["cameat"] = ready, now
		return false
	}
	return now-since >= max(60, 5*leadTime(o))
}

// calm leaves out steps down that come too soon.
func (s staff) calm(o *Observation, m Memory, n int) (int, string) {
	if s.cooldown == 0 {
		return n, ""
	}
	now, desired, why := seconds(o.At), asked(o), ""
	if changed, ok := m["changed"]; n < desired && ok && changed <= now && now < changed+s.cooldown {
		n, why = desired, "; the last change was too short ago"
	}
	if n != desired {
		m["changed"] = now
	}
	return n, why
}

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
