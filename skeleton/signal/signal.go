// Package signal holds what a farm measures, second by second, and turns it into
// what a policy sees.
//
// The ledger's counters (submitted, done, late …) never lose anything: a snapshot
// of them is taken every second, and their differences are exact, whatever
// dispatchers die. What only a dispatcher sees (hand-overs, busy answers, the
// distributions of wait, service and sojourn) its Recorder counts; once a second
// that is added to the farm's Second. A Series keeps the last 15 minutes of
// Seconds and fills in a policy.Observation.
//
// A Second exists only where a dispatcher was alive to write it: no Second means
// unknown, a Second without counts means quiet.
//
// The package knows no network, no files and no clock. redissignal keeps Seconds
// in Redis; the simulator hands its own to the same Series.
package signal

import (
	"time"

	"farmhand/skeleton/ledger"
)

// Patience is how long what a dispatcher counted may be on its way. What comes
// later is dropped, or old work would look like work of now; and a silence that
// is no longer than this is bridged, for nothing can be missing from it.
const Patience = 5 * time.Second

// Kept is how much of the past is kept.
const Kept = 15 * time.Minute

// Snapshot are the counters of a farm's ledger at one instant.
type Snapshot struct {
	At time.Time // by the ledger's clock
	ledger.Counts
	Timed  int // ended so far with a due: the decided ones
	Late   int // of them
	Lapsed int // leases that lapsed so far
}

// Tally is what dispatchers count. The zero value is nothing counted.
type Tally struct {
	Starts  int // tasks leased, to be handed to workers
	Busy    int // answers of busy workers
	Failed  int // attempts that failed or timed out
	Lost    int // attempts whose replica was lost
	Wait    Hist
	Service Hist
	Sojourn Hist
}

// Merge adds what o has counted.
func (t *Tally) Merge(o *Tally) {
	t.Starts += o.Starts
	t.Busy += o.Busy
	t.Failed += o.Failed
	t.Lost += o.Lost
	from := o.hists()
	for i, h := range t.hists() {
		h.Merge(from[i])
	}
}

func (t *Tally) hists() [3]*Hist { return [3]*Hist{&t.Wait, &t.Service, &t.Sojourn} }

// Events is how much was counted; 0 means that nothing happened.
func (t *Tally) Events() int {
	return t.Starts + t.Busy + t.Failed + t.Lost + t.Sojourn.N
}

// Deltas are what one dispatcher has counted, by farm.
type Deltas map[string]*Tally

// Of returns the farm's tally, an empty one where there was none.
func (d Deltas) Of(farm string) *Tally {
	t := d[farm]
	if t == nil {
		t = &Tally{}
		d[farm] = t
	}
	return t
}

// Merge adds what o has counted.
func (d Deltas) Merge(o Deltas) {
	for farm, t := range o {
		d.Of(farm).Merge(t)
	}
}

// Second is one second of a farm in which a dispatcher was alive.
type Second struct {
	Unix     int64 // which one
	Snapshot       // the last one taken in it, with a heartbeat
	Tally          // what dispatchers brought in it
}

// Reading is what a store tells of a farm: the seconds since an earlier reading,
// in order. The last of them, if it is that of now, may still grow.
type Reading struct {
	Now     time.Time // by the ledger's clock
	Seconds []Second
}
