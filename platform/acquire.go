package platform

import (
	"context"
	"errors"
	"fmt"
)

// Why a call got no replica.
var (
	errGone    = errors.New("the function was deleted, or the platform stops")
	errWaiting = errors.New("too many calls wait for a replica")
	errNoReady = errors.New("no replica became ready in time")
	errBroken  = errors.New("the function keeps failing at start")
)

// busyError says that all ready replicas have as many calls as they take.
type busyError struct{ limit int }

func (e *busyError) Error() string {
	return fmt.Sprintf("Concurrent request limit exceeded. Max concurrent requests: %d", e.limit)
}

// failuresToRefuse is how many starts in a row must fail before calls are
// refused at once instead of held.
const failuresToRefuse = 3

// acquire gives a call its replica: the least busy one that is ready. While
// none is, the call is held until ctx ends, and a function at zero is scaled
// up, once. The caller must release the replica.
func (f *function) acquire(ctx context.Context) (*replica, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if f.closed {
			return nil, errGone
		}
		r, full := f.pick()
		if r != nil {
			r.inflight++
			return r, nil
		}
		if full {
			return nil, &busyError{f.spec.maxInflight}
		}
		if f.desired == 0 {
			f.desired = f.p.clamp(max(1, f.spec.min))
			f.p.log.Info("scaling up from zero", "function", f.name, "replicas", f.desired)
			f.reconcile()
			f.p.saveSoon()
		}
		if f.failures >= failuresToRefuse && f.retry != nil {
			return nil, errBroken
		}
		if f.waiting >= f.p.config.MaxWaiting {
			return nil, errWaiting
		}
		if err := f.hold(ctx); err != nil {
			return nil, err
		}
	}
}

// hold waits until something has changed. The mutex is held before and after,
// not in between.
func (f *function) hold(ctx context.Context) error {
	changed := f.changed
	f.waiting++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.waiting--
	}()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return errNoReady
	}
}

// pick finds the ready replica for the next call; full says that there are
// ready ones, but none may take it. Plain CE picks at random and lets the
// replica refuse. The mutex is held.
func (f *function) pick() (best *replica, full bool) {
	n, count := len(f.replicas), 0
	f.turn++
	for i := range n {
		r := f.replicas[(f.turn+i)%n]
		if r.state != ready {
			continue
		}
		count++
		switch {
		case f.p.config.CE:
			if f.p.random(count) == 0 { // each of them is equally likely in the end
				best = r
			}
		case best == nil || r.inflight < best.inflight:
			best = r
		}
	}
	if best != nil && best.spec.maxInflight > 0 && best.inflight >= best.spec.maxInflight {
		return nil, true
	}
	return best, false
}

// release gives a replica back.
func (f *function) release(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.inflight--
	if r.inflight > 0 || r.state != draining {
		return
	}
	select {
	case <-r.idle:
	default:
		close(r.idle)
	}
}
