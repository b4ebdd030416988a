package dispatch

import (
	"context"
	"time"

	"farmhand/skeleton/ledger"
)

// maxReserve is how long before the end of a stop at most the calls are cut off,
// so that there is time to settle; lastWord is for settling after a stop whose
// context ended unforeseen.
const (
	maxReserve = 2 * time.Second
	lastWord   = time.Second
)

// drain stops taking at once and gives back what no worker has.
func (r *runner) drain() {
	r.mu.Lock()
	if r.draining {
		r.mu.Unlock()
		return
	}
	r.draining = true
	close(r.drained)
	r.refuse()
	r.freed()
	r.mu.Unlock()
	r.clearPark(ledger.Released, errStopped.Error())
}

// stop returns the number of leases that could not be ended.
func (r *runner) stop(ctx context.Context) int {
	r.drain()
	if !r.emptied(r.patience(ctx)) {
		r.mu.Lock()
		for _, a := range r.held {
			r.cut(a, errStopped)
		}
		r.mu.Unlock()
		last := ctx
		if ctx.Err() != nil {
			var cancel context.CancelFunc
			last, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastWord)
			defer cancel()
		}
		r.emptied(last.Done(), func() {})
	}
	r.end()
	r.alarm.stop()
	r.loops.Wait()
	r.once.Do(func() { close(r.stopped) })
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held)
}

// patience ends when calls must be cut off: shortly before ctx does.
func (r *runner) patience(ctx context.Context) (<-chan struct{}, func()) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx.Done(), func() {}
	}
	reserve := min(maxReserve, time.Until(deadline)/4)
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-reserve))
	return ctx.Done(), cancel
}

// emptied waits until nothing is held, or another stop has ended, or until done is
// closed.
func (r *runner) emptied(done <-chan struct{}, cancel func()) bool {
	defer cancel()
	for {
		select {
		case <-r.empty:
			r.mu.Lock()
			n := len(r.held) + r.asked
			r.mu.Unlock()
			if n == 0 {
				return true
			}
		case <-r.stopped:
			return true
		case <-done:
			return false
		}
	}
}
