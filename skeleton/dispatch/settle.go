package dispatch

import (
	"context"
	"runtime"
	"time"

	"farmhand/skeleton/ledger"
)

const (
	// busyFlush is how long busy answers wait for an outcome to travel with.
	busyFlush = 50 * time.Millisecond
	// lastWord is how long the settle loop goes on trying after everything else
	// has stopped.
	lastWord = 10 * time.Second
)

// lanes is how many exchanges with the ledger are under way at once: while one
// is, the tasks of another run.
const lanes = 2

// settle brings outcomes to the ledger, as many at once as there are, and takes
// new tasks in the same breath. It never drops an outcome while the process
// lives: a store that is away is waited for. It ends when the outcomes do.
func (r *runner) settle() {
	batch := make([]outcome, 0, ledger.MaxBatch)
	var flush <-chan time.Time
	for {
		batch = batch[:0]
		select {
		case o, ok := <-r.outcomes:
			if !ok {
				return
			}
			batch = append(batch, o)
		case <-r.busyWake:
			if flush == nil {
				flush = time.After(busyFlush)
			}
			continue
		case <-flush:
		}
		flush = nil
		batch = r.gather(batch)
		r.settleBatch(batch)
	}
}

// gather adds the outcomes that are there, after letting those be made that
// only wait for a processor: larger batches for no time lost.
func (r *runner) gather(batch []outcome) []outcome {
	for round := 0; round < 2; round++ {
		runtime.Gosched()
		for len(batch) < ledger.MaxBatch {
			select {
			case o, ok := <-r.outcomes:
				if ok {
					batch = append(batch, o)
					continue
				}
			default:
			}
			break
		}
	}
	return batch
}

func (r *runner) settleBatch(batch []outcome) {
	busy := int(r.busy.Swap(0))
	if len(batch) == 0 && busy == 0 {
		return
	}
	outcomes := make([]ledger.Outcome, len(batch))
	ended := make([]*attempt, len(batch))
	for i, o := range batch {
		outcomes[i], ended[i] = o.Outcome, o.a
	}
	done, taken, ok := r.settleUntilHeard(outcomes, busy)
	if !ok {
		return // stopped: the leases stay held and are reported
	}
	r.drop(ended)
	for i, v := range done.Verdicts {
		if v == ledger.Refused {
			r.cfg.Log.Warn("an outcome was refused: the lease was not the task's current one", "farm", r.name,
				"job", outcomes[i].Lease.Job, "task", outcomes[i].Lease.Index, "outcome", outcomes[i].Kind)
		}
	}
	r.shrink(done.Window, done.Live)
	if len(taken.Leases) == 0 {
		poke(r.wake) // the take loop waits for what comes next
	}
}

// settleUntilHeard repeats until the ledger has answered. After the runner was
// stopped it goes on for lastWord only.
func (r *runner) settleUntilHeard(outcomes []ledger.Outcome, busy int) (ledger.Settled, ledger.Taken, bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	unwatch := context.AfterFunc(r.ctx, func() { time.AfterFunc(lastWord, cancel) })
	defer unwatch()
	retry := newBackoff(r.cfg.Uniform)
	for {
		s, t, err := r.exchange(ctx, outcomes, busy)
		if err == nil {
			return s, t, true
		}
		r.cfg.Log.Warn("cannot settle", "farm", r.name, "outcomes", len(outcomes), "error", err)
		if !retry.wait(ctx) {
			return s, t, false
		}
	}
}

// exchange settles, and takes as much as fits if taking goes on.
func (r *runner) exchange(ctx context.Context, outcomes []ledger.Outcome, busy int) (ledger.Settled, ledger.Taken, error) {
	r.starting.RLock()
	defer r.starting.RUnlock()
	room := min(ledger.MaxBatch, r.free()+len(outcomes))
	if room > 0 && r.taking.Err() == nil && !r.deleted() {
		s, t, err := r.ledger.Exchange(ctx, r.cfg.Owner, outcomes, busy, room)
		for _, l := range t.Leases {
			r.start(l)
		}
		return s, t, err
	}
	s, err := r.ledger.Settle(ctx, outcomes, busy)
	return s, ledger.Taken{Waiting: s.Waiting}, err
}
