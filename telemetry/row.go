package telemetry

import (
	"time"

	"farmhand/policy"
)

// Row is what is kept of one tick of a farm. What is unknown stays unknown: a
// count of tasks is, where nothing of the last interval was measured, and a mean
// is, where there is nothing to take it of.
type Row struct {
	At time.Time // of the observation, by the ledger's clock, to the microsecond

	// The last interval.
	Length      policy.Maybe // seconds asked for
	Covered     policy.Maybe // seconds of it that were measured
	Arrivals    policy.Maybe // tasks
	Starts      policy.Maybe // attempts handed to workers
	Done        policy.Maybe // results accepted
	Decided     policy.Maybe // tasks
	Late        policy.Maybe // of the decided
	Failed      policy.Maybe // attempts
	Lost        policy.Maybe // attempts lost by the infrastructure
	BusyAnswers policy.Maybe // of workers
	ServiceMean policy.Maybe // seconds
	ServiceSD   policy.Maybe // seconds
	SojournP95  policy.Maybe // seconds

	// This instant.
	Waiting    policy.Maybe // tasks
	Running    policy.Maybe // tasks
	Delayed    policy.Maybe // tasks
	OldestWait policy.Maybe // seconds
	Overdue    policy.Maybe // tasks
	Desired    int          // replicas
	Ready      int          // replicas
	StartupLag policy.Maybe // seconds, mean
	CPU        policy.Maybe // cores
	BusyShare  policy.Maybe // of the slots, 0…1

	// What the farm was asked to keep: it may be set anew at any time.
	Slots    int          // per replica
	Deadline policy.Maybe // seconds; 0 = none

	// The decision, in replicas.
	Wish  int // of the policy
	Final int // what was wanted in the end
}

// RowOf is the row of a tick: what was seen, what the policy wished and how many
// replicas were wanted in the end. Numbers are rounded to what a block keeps of
// them, so that a row comes out of a block as it went in.
func RowOf(o *policy.Observation, wish, final int) Row {
	w := &o.Last
	r := Row{
		At: o.At.UTC().Truncate(time.Microsecond), Length: policy.Maybe(w.Length), Covered: policy.Maybe(w.Covered),
		Arrivals: policy.Maybe(w.Arrivals), Starts: policy.Maybe(w.Starts), Done: policy.Maybe(w.Done),
		Decided: policy.Maybe(w.Decided), Late: policy.Maybe(w.Late), Failed: policy.Maybe(w.Failed),
		Lost: policy.Maybe(w.Lost), BusyAnswers: policy.Maybe(w.Busy),
		ServiceMean: policy.Unknown, ServiceSD: policy.Unknown, SojournP95: policy.Unknown,
		Waiting: o.Waiting, Running: o.Running, Delayed: o.Delayed, OldestWait: o.OldestWait, Overdue: o.Overdue,
		Desired: o.Desired, Ready: o.Ready, StartupLag: o.StartupLag, CPU: o.CPU, BusyShare: o.Busy,
		Slots: o.Slots, Deadline: policy.Maybe(o.Deadline), Wish: wish, Final: final,
	}
	if !(w.Covered > 0) {
		for _, count := range []*policy.Maybe{&r.Arrivals, &r.Starts, &r.Done, &r.Decided, &r.Late, &r.Failed, &r.Lost, &r.BusyAnswers} {
			*count = policy.Unknown
		}
	}
	if w.Service.N > 0 {
		r.ServiceMean = policy.Maybe(w.Service.Mean)
	}
	if w.Service.N > 1 {
		r.ServiceSD = policy.Maybe(w.Service.SD)
	}
	if w.Sojourn.N > 0 {
		r.SojournP95 = policy.Maybe(w.Sojourn.P95)
	}
	return r.rounded()
}

// rounded is the row as a block keeps it.
func (r Row) rounded() Row {
	for _, c := range columns {
		x, known := c.get(&r)
		c.set(&r, x, known)
	}
	return r
}
