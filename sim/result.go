package sim

import (
	"math"
	"slices"

	"farmhand/policy"
)

// Result is what a run came to. Times are seconds.
type Result struct {
	Horizon       float64
	Tasks         int // arrived
	Decided       int // with a due: every one counts, the unfinished as late
	Late          int
	Done          int
	Dead          int
	Unfinished    int
	P50, P95, P99 float64 // of the sojourns of the finished
	MaxSojourn    float64
	Wait, Service float64 // means over the finished
	WorkerSeconds float64
	MeanWorkers   float64
	PeakWorkers   int
	BusyFraction  float64 // of slot-seconds of started replicas
	Windows       int     // intervals in which tasks were decided
	Violating     int     // of them below the target
	Actions       int
	Starts        int
	Flaps         int
	HandBacks     int // of a learned policy to its fallback
	Crashes       int
	Lost          int     // attempts
	Busy          int     // answers of busy replicas
	Saturated     bool    // the offered load is more than max replicas can do
	Events        int     // arrivals and completions
	Mean          float64 // number in system, averaged over time (for Little's law)
}

// OnTime is the share of tasks on time; unknown where none has a due.
func (r *Result) OnTime() policy.Maybe {
	if r.Decided == 0 {
		return policy.Unknown
	}
	return policy.Maybe(1 - float64(r.Late)/float64(r.Decided))
}

// Totals are what a run has come to so far: what it costs and how late it is. A
// task is late from its due on, whether it has ended or not.
type Totals struct {
	At            float64
	Tasks         int // arrived
	Waiting       int
	Leased        int // running, parked, or with their results on the way
	Delayed       int
	Done, Dead    int
	Decided, Late int // of the tasks with a due
	WorkerSeconds float64
	Workers       int // paid for at this instant
	Actions       int
	Starts        int
	Flaps         int
}

// Totals may be asked for at each decision.
func (s *Sim) Totals() Totals {
	c := &s.count
	overdue := s.overdue()
	return Totals{
		At: s.now, Tasks: s.arrived, Waiting: s.line.n, Leased: s.live + s.coming, Delayed: c.delayed, Done: c.done, Dead: c.dead,
		Decided: c.timed + overdue, Late: c.late + overdue, WorkerSeconds: c.paid.until(s.now), Workers: c.paid.n,
		Actions: c.actions, Starts: c.starts, Flaps: c.flaps,
	}
}

// overdue is the number of unfinished tasks that are past their due.
func (s *Sim) overdue() int {
	n := s.lookAtLine().overdue + s.lookAtLeases().overdue
	s.eachDelayed(func(task int32) {
		if s.due(task) < s.now {
			n++
		}
	})
	return n
}

// eachDelayed calls fn with the tasks that wait for their next attempt.
func (s *Sim) eachDelayed(fn func(task int32)) {
	if s.count.delayed == 0 {
		return
	}
	s.agenda.all(func(e event) {
		if e.id&^maxIndex == delayEnds {
			fn(int32(e.id & maxIndex))
		}
	})
}

// unfinished calls fn with the tasks that have arrived and not ended.
func (s *Sim) unfinished(fn func(task int32)) {
	s.line.all(s.arrived, fn)
	for i := range s.leases {
		if t := s.leases[i].task; t != none {
			fn(t)
		}
	}
	s.eachDelayed(fn)
}

// Result is what the run came to, as if it ended now: what is unfinished, and has a
// due, is late.
func (s *Sim) Result() Result {
	c := s.count
	c.intervals = slices.Clone(c.intervals)
	s.unfinished(func(task int32) {
		if due := s.due(task); due < math.Inf(1) {
			c.decide(due, s.now, true)
		}
	})
	for i := range s.leases {
		if l := &s.leases[i]; l.replica != none && l.task != none {
			c.worked += s.now - l.began
		}
	}
	r := Result{
		Horizon: s.now, Tasks: s.arrived, Decided: c.timed, Late: c.late, Done: c.done, Dead: c.dead, Unfinished: c.inSystem.n,
		P50: c.quantile(0.50), P95: c.quantile(0.95), P99: c.quantile(0.99), MaxSojourn: c.maxSojourn,
		WorkerSeconds: c.paid.until(s.now), PeakWorkers: c.peak,
		Actions: c.actions, Starts: c.starts, Flaps: c.flaps, HandBacks: c.handBacks, Crashes: c.crashes, Lost: c.lost, Busy: c.busy,
		Saturated: s.saturated(), Events: s.arrived + c.done,
	}
	if c.done > 0 {
		r.Wait, r.Service = c.wait/float64(c.done), c.service/float64(c.done)
	}
	if s.now > 0 {
		r.MeanWorkers, r.Mean = r.WorkerSeconds/s.now, c.inSystem.until(s.now)/s.now
	}
	if r.WorkerSeconds > 0 {
		r.BusyFraction = c.worked / (r.WorkerSeconds * float64(s.slots))
	}
	for _, i := range c.intervals {
		if i.decided > 0 {
			r.Windows++
			if float64(i.decided-i.late) < s.farm.Target*float64(i.decided) {
				r.Violating++
			}
		}
	}
	return r
}

// saturated reports whether the work that is offered in the whole run is more than
// as many replicas as there may be can do.
func (s *Sim) saturated() bool {
	most := s.farm.Max
	if p := s.platform.Cap; p > 0 && (most == 0 || p < most) {
		most = p
	}
	return most > 0 && s.work.total+float64(len(s.at))*s.overhead > s.horizon*float64(most*s.slots)
}
