package dispatch

import (
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// idleTake is how long a dispatcher waits at most before it looks again: a
// delay set by another dispatcher may have ended.
const idleTake = time.Second

// take leases tasks while there is room, and sleeps until something happened:
// work arrived, a lease ended here, the window grew, a delay is over.
func (r *runner) take() {
	retry := newBackoff(r.cfg.Uniform)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.taking.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		next := idleTake
		for {
			free := min(r.free(), ledger.MaxBatch)
			if free <= 0 {
				break // the settle loop wakes us
			}
			t, err := r.takeSome(free)
			if err != nil {
				if r.taking.Err() == nil {
					r.cfg.Log.Warn("cannot take tasks", "farm", r.name, "error", err)
				}
				if !retry.wait(r.taking) {
					return
				}
				continue
			}
			retry.reset()
			r.shrink(t.Window, t.Live)
			if len(t.Leases) < free || t.Waiting == 0 {
				if t.Next > 0 {
					next = min(next, t.Next)
				}
				break
			}
		}
		timer.Reset(next)
	}
}

// takeSome takes up to n tasks and starts them.
func (r *runner) takeSome(n int) (t ledger.Taken, err error) {
	r.starting.RLock()
	defer r.starting.RUnlock()
	if err := r.taking.Err(); err != nil {
		return t, err
	}
	// Not the context of taking: what was handed out must be known.
	if r.deleted() {
		t, err = r.ledger.TakeAny(r.ctx, r.cfg.Owner, n)
	} else {
		t, err = r.ledger.Take(r.ctx, r.cfg.Owner, n)
	}
	for _, l := range t.Leases {
		r.start(l)
	}
	return t, err
}

// start runs an attempt.
func (r *runner) start(l ledger.Lease) {
	a := newAttempt(r, l)
	r.hold(a)
	r.attempts.Add(1)
	go func() {
		defer r.attempts.Done()
		if o, ok := a.run(); ok {
			r.outcomes <- outcome{o, a}
			return
		}
		r.drop([]*attempt{a}) // the lease was lost: there is nothing to settle
		poke(r.wake)
	}()
}

// shrink gives back busy tasks, the youngest first, when more leases live than
// the window allows.
func (r *runner) shrink(window, live int) {
	if live > window && !r.deleted() {
		r.room.evict(live - window)
	}
}

// backoff of the loops against a store that is away: full jitter up to 2 s.
type backoff struct {
	n       int
	uniform func() float64
}

func newBackoff(uniform func() float64) *backoff { return &backoff{uniform: uniform} }

func (b *backoff) reset() { b.n = 0 }

type doner interface{ Done() <-chan struct{} }

// wait returns false when ctx ended.
func (b *backoff) wait(ctx doner) bool {
	b.n++
	t := time.NewTimer(min(2*time.Second, skeleton.Backoff(min(b.n, 3), b.uniform)) + 10*time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
