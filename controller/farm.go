package controller

import (
	"sync"
	"time"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/signal"
	"farmhand/telemetry"
)

// farm is one farm in the memory of a controller. What has to survive stands in
// state; the rest can be read again.
type farm struct {
	name string

	mu     sync.Mutex // guards what follows: a pulse and the end of a scale call meet here
	worker Worker
	eff    effective
	state  state
	series *signal.Series
	warm   bool // the series has been read, or it was tried

	fence   int64     // of our lease; 0 = we do not hold it
	owner   string    // who does
	until   time.Time // our lease is good until then, by the local clock
	next    time.Time // decide then
	ticked  time.Time // when it decided last
	look    time.Time // look then, between decisions; zero = no need
	call    bool      // a scale call is under way
	called  time.Time // when the last one ended
	acted   *Acted    // the call that ended since the last receipt
	want    int       // what it wanted at the last decision, before the capacity cut it
	share   int       // what the capacity left it then; 0 = all
	unsaved bool      // what a call came to is not saved yet
	usage   Usage
	usedOK  bool
	blocked string    // why the ledger hands nothing out; "" = it does
	used    time.Time // when usage was asked for last
	last    *Receipt
	trial   *guard.Trial // that ended since the last decision
	mind    mind         // as of the last decision
	judged  time.Time    // when a review of it began last, or it was first to be reviewed; zero = it is not
	served  signal.Hist  // service times since the last receipt
	counted int64        // second of Unix time up to which they were gathered
	wake    func()       // ends the subscription to new work; nil = none
}

// observe makes the observation of this instant.
func (f *farm) observe(now time.Time, g *ledger.Gauges, r *signal.Reading) policy.Observation {
	e := &f.eff
	wanted := f.state.wanted(f.worker.Desired)
	o := signal.NewObservation(skeleton.Farm{Name: f.name, Settings: e.Settings, Ready: f.worker.Ready, Target: wanted}, now)
	o.Min, o.Max = f.state.bounds(e.Min, e.Max, now)
	if f.share > 0 && (o.Max == 0 || f.share < o.Max) { // the guard spends no token on what cannot be
		o.Max = f.share
	}
	if g != nil {
		signal.Gauge(&o, g)
		f.blocked = g.Blocked
		if slots := f.worker.Ready * e.Slots; slots > 0 {
			o.Busy = policy.Maybe(min(1, float64(g.Leased)/float64(slots)))
		}
	}
	if f.usedOK {
		o.CPU, o.Memory = policy.Maybe(f.usage.CPU), policy.Maybe(f.usage.Memory)
	}
	if r != nil {
		f.series.Add(r)
	}
	f.series.Observe(&o)
	telemetry.Round(&o)                    // a day of receipts is half as large, and replays the same
	if o.Stale() && f.state.Lower != nil { // a scale-down does not go on in the dark
		f.state.Lower = nil
		o.Desired, o.Starting = f.worker.Desired, max(0, f.worker.Desired-f.worker.Ready)
	}
	return o
}

// entry is the farm as dispatchers see it.
func (f *farm) entry() skeleton.Farm {
	return skeleton.Farm{Name: f.name, Settings: f.eff.Settings, Ready: f.worker.Ready, Target: f.state.wanted(f.worker.Desired), Problems: f.eff.Problems}
}
