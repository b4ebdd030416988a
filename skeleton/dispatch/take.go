package dispatch

import (
	"context"
	"sync"
	"time"

	"farmhand/skeleton/ledger"
)

// Bounds of the take loop's timer. The upper one is also how long a window that
// recovers from busy answers may go unnoticed, since no event tells of that.
const (
	minNap = 5 * time.Millisecond
	maxNap = time.Second
)

// take leases tasks while there is room, and sleeps until something happened:
// work arrived, the window grew, a delay or a lease is over. What becomes free
// by settling is taken by the settle loop.
func (r *runner) take() {
	retry := backoff{uniform: r.cfg.Uniform}
	for {
		select {
		case <-r.drained:
			return
		case <-r.wake:
		}
		for {
			more, err := r.takeSome()
			if err != nil {
				retry.complain(r.cfg.Log, "cannot take tasks", err, "farm", r.name)
				if !retry.wait(r.drained) {
					return
				}
				continue
			}
			retry.reset()
			if !more {
				break
			}
		}
	}
}

// takeSome takes what fits and starts it. It reports whether there may be more:
// if not, the window is full, nothing waits, or the settle loop wakes us when
// there is room.
//
// The context is the one that ends everything, not one of taking: what the
// ledger handed out must be heard of.
func (r *runner) takeSome() (more bool, err error) {
	if r.call() {
		return false, nil
	}
	n := r.ask(0)
	if n == 0 {
		return false, nil
	}
	defer r.answered(n)
	take := r.ledger.Take
	if r.deleted() {
		take = r.ledger.TakeAny
	}
	t, err := take(r.ctx, r.cfg.Owner, n)
	if err != nil {
		return false, err
	}
	r.start(t)
	return len(t.Leases) == n, nil
}

// start runs what was taken.
func (r *runner) start(t ledger.Taken) {
	r.waiting.Store(int64(t.Waiting))
	r.nap(t)
	if len(t.Leases) > 0 {
		r.cfg.Observer.Taken(r.name, len(t.Leases))
		now := time.Now()
		as := make([]attempt, len(t.Leases))
		for i := range as {
			a := &as[i]
			a.r, a.lease, a.taken = r, &t.Leases[i], now
			a.ctx, a.cancel = context.WithCancelCause(context.Background())
		}
		for _, a := range r.hold(as) {
			go a.run()
		}
	}
	r.shrink(t.Window, t.Live)
}

// hold takes over new leases and returns those to run now. Where tasks wait that
// met busy workers, the new ones queue up behind them (P69).
func (r *runner) hold(as []attempt) []*attempt {
	run := make([]*attempt, 0, len(as))
	deleted := r.deleted()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range as {
		a := &as[i]
		a.index = len(r.held)
		r.held = append(r.held, a)
		switch {
		case deleted:
			r.close(a, ending{kind: ledger.Rejected, reason: reasonDeleted})
		case r.draining:
			r.close(a, ending{kind: ledger.Released, reason: errStopped.Error()})
		default:
			a.met = r.memory.recall(a.lease, r.cfg.TimeToLive)
			run = append(run, r.park.swap(a))
		}
	}
	if !r.watching {
		r.watching = true
		time.AfterFunc(overtimeEvery, r.watchOvertime)
	}
	return run
}

// nap sets the timer for what no event will tell.
func (r *runner) nap(t ledger.Taken) {
	d := t.Next
	if t.Waiting > 0 || t.Blocked != "" {
		d = maxNap
		if t.Next > 0 {
			d = min(d, t.Next)
		}
	}
	if d > 0 {
		r.alarm.set(min(max(d, minNap), maxNap), r.wake)
	}
}

// alarm pokes once, at the earliest time it was set to.
type alarm struct {
	mu    sync.Mutex
	at    time.Time   // guarded by mu; zero = not set
	timer *time.Timer // guarded by mu
}

func (l *alarm) set(d time.Duration, wake chan<- struct{}) {
	at := time.Now().Add(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.at.IsZero() && !at.Before(l.at) {
		return
	}
	l.at = at
	if l.timer == nil {
		l.timer = time.AfterFunc(d, func() {
			l.mu.Lock()
			l.at = time.Time{}
			l.mu.Unlock()
			poke(wake)
		})
		return
	}
	l.timer.Reset(d)
}

func (l *alarm) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}
