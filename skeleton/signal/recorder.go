package signal

import (
	"sync"
	"sync/atomic"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Recorder counts what a dispatcher sees: it is a dispatch.Observer. It is safe
// for concurrent use. Its memory is bounded by the number of farms, however much happens.
type Recorder struct {
	now func() time.Time

	mu    sync.RWMutex       // held for writing only by Drain and for a farm's first event
	farms map[string]*record // guarded by mu
}

type record struct {
	starts, busy atomic.Int64

	mu    sync.Mutex
	tally Tally // guarded by mu; all but Starts and Busy
}

// NewRecorder returns an empty Recorder. It asks now when outcomes are accepted;
// that is the clock of ledger.Outcome's Started.
func NewRecorder(now func() time.Time) *Recorder {
	return &Recorder{now: now, farms: map[string]*record{}}
}

// with calls fn with the farm's record, which Drain leaves alone meanwhile.
func (r *Recorder) with(farm string, fn func(*record)) {
	r.mu.RLock()
	if rec := r.farms[farm]; rec != nil {
		fn(rec)
		r.mu.RUnlock()
		return
	}
	r.mu.RUnlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.farms[farm] == nil {
		r.farms[farm] = &record{}
	}
	fn(r.farms[farm])
}

// Taken implements dispatch.Observer.
func (r *Recorder) Taken(farm string, tasks int) {
	r.with(farm, func(rec *record) { rec.starts.Add(int64(tasks)) })
}

// Answered implements dispatch.Observer. All but busy answers end an attempt:
// Settled counts those.
func (r *Recorder) Answered(farm string, m skeleton.Meaning, _ time.Duration) {
	if m == skeleton.IsBusy {
		r.with(farm, func(rec *record) { rec.busy.Add(1) })
	}
}

// Settled implements dispatch.Observer.
func (r *Recorder) Settled(farm string, outcomes []ledger.Outcome, verdicts []ledger.Verdict, _ int) {
	if len(outcomes) == 0 {
		return
	}
	now := r.now()
	r.with(farm, func(rec *record) {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		for i := range outcomes {
			rec.tally.settle(&outcomes[i], verdicts[i], now)
		}
	})
}

// settle counts an outcome that was settled at now. A refused one counts
// nowhere: its lease had lapsed, which the ledger counts.
func (t *Tally) settle(o *ledger.Outcome, v ledger.Verdict, now time.Time) {
	if v == ledger.Refused {
		return
	}
	switch o.Kind {
	case ledger.Failed, ledger.TimedOut:
		t.Failed++
	case ledger.Rejected:
		if o.Status != 0 { // a worker had it
			t.Failed++
		}
	case ledger.Lost:
		t.Lost++
	case ledger.Success:
		if v == ledger.Verdict(skeleton.Done) {
			t.done(o, now)
		}
	}
}

// done counts a task whose result was accepted.
func (t *Tally) done(o *ledger.Outcome, now time.Time) {
	wait, service, sojourn := Times(o, now)
	t.Wait.Add(wait.Seconds())
	t.Service.Add(service.Seconds())
	t.Sojourn.Add(sojourn.Seconds())
}

// Times are those of a task whose result was accepted at now: from acceptance to
// the last hand-over, from there to the answer, and from acceptance to the accepted
// result. The time before the lease is the server's, the time after it the
// dispatcher's: no difference is taken between two clocks.
func Times(o *ledger.Outcome, now time.Time) (wait, service, sojourn time.Duration) {
	wait = o.Lease.Taken.Sub(o.Lease.Accepted) + o.Waited
	served := o.Service
	if !o.Started.IsZero() {
		served = max(served, now.Sub(o.Started)) // with the way of the result to the ledger
	}
	return wait, o.Service, wait + served
}

// Drain hands over what was counted since the last call, by farm.
func (r *Recorder) Drain() Deltas {
	r.mu.Lock()
	farms := r.farms
	r.farms = make(map[string]*record, len(farms))
	r.mu.Unlock()
	d := make(Deltas, len(farms))
	for farm, rec := range farms { // ours alone now
		rec.tally.Starts, rec.tally.Busy = int(rec.starts.Load()), int(rec.busy.Load())
		d[farm] = &rec.tally
	}
	return d
}
