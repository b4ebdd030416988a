package dispatch

import (
	"errors"
	"runtime"
	"time"

	"farmhand/skeleton/ledger"
)

// maxBatchBytes bounds the results that travel to the ledger in one call.
const maxBatchBytes = 8 << 20

// lanes is how many exchanges with the ledger are under way at once: while one
// is, the tasks of another run. More of them only make the batches smaller.
const lanes = 2

// settle brings outcomes to the ledger, as many at once as there are, and takes
// new tasks in the same breath. It never drops an outcome while the process
// lives: a store that is away is waited for.
func (r *runner) settle() {
	var b batch
	flush, pause := time.NewTimer(0), time.NewTimer(0)
	defer flush.Stop()
	defer pause.Stop()
	<-flush.C
	var reported time.Time
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.ended:
		case <-flush.C:
		}
		for r.gather(&b, pause) {
			if len(b.attempts) == 0 {
				// Busy answers alone shrink the window at most once per BusyEvery.
				if wait := ledger.BusyEvery - time.Since(reported); wait > 0 {
					r.uncollect(&b)
					flush.Reset(wait)
					break
				}
			}
			if b.busy > 0 {
				reported = time.Now()
			}
			if !r.settleBatch(&b) {
				return
			}
		}
	}
}

// batch is what goes to the ledger in one call.
type batch struct {
	attempts []*attempt
	outcomes []ledger.Outcome
	busy     int
}

// gather collects a batch when it is time, and after letting those tasks end that
// only wait for a processor: a larger batch for no time lost.
func (r *runner) gather(b *batch, timer *time.Timer) bool {
	called, ok := r.pause(timer)
	if !ok {
		return false
	}
	runtime.Gosched()
	runtime.Gosched()
	some := r.collect(b)
	if called && !some {
		poke(r.wake) // another lane was faster: it may have missed what arrived
	}
	return some
}

// collect moves what there is from the outbox to a batch. An outcome that could
// not be settled goes alone.
func (r *runner) collect(b *batch) bool {
	clear(b.attempts)
	clear(b.outcomes)
	b.attempts, b.outcomes = b.attempts[:0], b.outcomes[:0]
	r.mu.Lock()
	defer r.mu.Unlock()
	b.busy, r.busy = r.busy, 0
	n, bytes := 0, 0
	for _, a := range r.outbox[:min(len(r.outbox), ledger.MaxBatch)] {
		bytes += len(a.end.body)
		if n > 0 && (bytes > maxBatchBytes || a.spoilt > 0 || r.outbox[0].spoilt > 0) {
			break
		}
		n++
	}
	b.attempts = append(b.attempts, r.outbox[:n]...)
	rest := copy(r.outbox, r.outbox[n:])
	clear(r.outbox[rest:])
	r.outbox = r.outbox[:rest]
	return n > 0 || b.busy > 0
}

// uncollect takes busy answers back that are not reported yet.
func (r *runner) uncollect(b *batch) {
	r.mu.Lock()
	r.busy += b.busy
	r.mu.Unlock()
}

// settleBatch repeats until the ledger has answered; where it is there but cannot
// take the batch, the outcomes go one by one. It returns false when the runner
// ends: the leases stay held and are reported.
func (r *runner) settleBatch(b *batch) bool {
	for _, a := range b.attempts {
		b.outcomes = append(b.outcomes, a.outcome())
	}
	if len(b.attempts) == 1 && b.attempts[0].spoilt > 0 {
		return r.settleEach(b)
	}
	retry := backoff{uniform: r.cfg.Uniform}
	for {
		err := r.exchange(b, retry.n == 0)
		if err == nil {
			return true
		}
		retry.complain(r.cfg.Log, "cannot settle", err, "farm", r.name, "outcomes", len(b.outcomes))
		if len(b.attempts) > 0 && r.ctx.Err() == nil && !errors.Is(err, ledger.ErrUnavailable) {
			return r.settleEach(b)
		}
		if !retry.wait(r.ctx.Done()) {
			return false
		}
	}
}

// settleEach settles one by one, so that an outcome the ledger cannot take does
// not hold up the others: it is set aside. When the store goes away meanwhile,
// what is left goes back to the outbox.
func (r *runner) settleEach(b *batch) bool {
	poke(r.wake) // nothing is taken on this way
	for i, a := range b.attempts {
		one := batch{attempts: b.attempts[i : i+1], outcomes: b.outcomes[i : i+1], busy: b.busy}
		err := r.exchange(&one, false)
		if err != nil && a.spoilt+1 >= maxSpoilt && !errors.Is(err, ledger.ErrUnavailable) {
			one.outcomes = []ledger.Outcome{a.unsettleable()}
			if r.exchange(&one, false) == nil {
				r.cfg.Log.Error("an outcome could not be settled: the task is a dead letter", "farm", r.name, "job", a.lease.Job, "task", a.lease.Index, "error", err)
				err = nil
			}
		}
		switch {
		case err == nil:
			b.busy = 0
		case r.ctx.Err() != nil:
			return false
		case errors.Is(err, ledger.ErrUnavailable):
			r.putBack(b, i)
			retry := backoff{uniform: r.cfg.Uniform}
			return retry.wait(r.ctx.Done())
		default:
			r.setAside(a, err)
		}
	}
	r.uncollect(b)
	return true
}

// Bounds of the pause of an outcome that the ledger cannot take, and how often it
// is tried before the ledger is offered a dead letter in its place: after two
// minutes. The outcome itself is always tried first, since the fault may be the
// ledger's, and mended.
const (
	minAside  = 100 * time.Millisecond
	maxAside  = 30 * time.Second
	maxSpoilt = 12
)

// reasonSpoilt is of tasks whose outcome the ledger cannot take.
const reasonSpoilt = "the outcome cannot be stored"

// setAside lets an outcome wait for its next try, with its lease, but not in the
// way of the others. It comes back at the end of the outbox.
func (r *runner) setAside(a *attempt, err error) {
	if a.spoilt%maxSpoilt == 0 {
		r.cfg.Log.Error("an outcome cannot be settled", "farm", r.name, "job", a.lease.Job, "task", a.lease.Index, "tries", a.spoilt+1, "error", err)
	}
	pause := min(maxAside, minAside<<min(a.spoilt, maxSpoilt))
	a.spoilt++
	time.AfterFunc(pause, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.outbox = append(r.outbox, a)
		poke(r.ended)
	})
}

// unsettleable is a dead letter in the place of an outcome that cannot be stored.
func (a *attempt) unsettleable() ledger.Outcome {
	o := a.outcome()
	o.Kind, o.Status, o.Type, o.Body, o.Reason, o.Delay = ledger.Rejected, 0, "", nil, reasonSpoilt, 0
	return o
}

// putBack returns a batch to the outbox from its i-th outcome on.
func (r *runner) putBack(b *batch, i int) {
	r.mu.Lock()
	r.outbox = append(r.outbox, b.attempts[i:]...)
	poke(r.ended)
	r.mu.Unlock()
	r.uncollect(b)
}

// exchange settles, and takes what becomes free: whether something waits for it, the
// ledger knows best.
func (r *runner) exchange(b *batch, take bool) error {
	if take && !r.deleted() {
		if room := r.ask(len(b.attempts)); room > 0 {
			defer r.answered(room)
			s, t, err := r.ledger.Exchange(r.ctx, r.cfg.Owner, b.outcomes, b.busy, room)
			if err == nil {
				r.settled(b, s)
				r.start(t)
				if len(t.Leases) == room {
					poke(r.wake) // there may be more
				}
			}
			return err
		}
	}
	s, err := r.ledger.Settle(r.ctx, b.outcomes, b.busy)
	if err == nil {
		r.settled(b, s)
		r.waiting.Store(int64(s.Waiting))
		r.shrink(s.Window, s.Live)
		if s.Waiting > 0 || r.deleted() {
			poke(r.wake)
		}
	}
	return err
}

// settled notes what the ledger made of a batch: it sets the timer for the
// delays that begin, and tells the log of outcomes that came too late.
func (r *runner) settled(b *batch, s ledger.Settled) {
	r.mu.Lock()
	r.drop(b.attempts...)
	r.mu.Unlock()
	r.cfg.Observer.Settled(r.name, b.outcomes, s.Verdicts, b.busy)
	var soonest time.Duration
	refused := 0
	for i, v := range s.Verdicts {
		o := &b.outcomes[i]
		if v == ledger.Refused {
			refused++
		}
		if o.Delay > 0 && (soonest == 0 || o.Delay < soonest) {
			soonest = o.Delay
		}
	}
	if soonest > 0 {
		r.alarm.set(max(soonest, minNap), r.wake)
	}
	if refused > 0 {
		r.cfg.Log.Warn("outcomes came too late: their leases had lapsed", "farm", r.name, "outcomes", refused)
	}
}
