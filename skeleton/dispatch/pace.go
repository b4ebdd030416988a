package dispatch

import "time"

// settleEvery is how often the ledger is told of outcomes while no work waits for
// what they free. Each call costs it as much as tens of tasks do.
const settleEvery = time.Millisecond

// pace says when a lane last turned to the ledger, and whether one holds outcomes
// back.
type pace struct {
	pausing bool
	last    time.Time
}

// pause holds a lane back while nothing is known to wait and the ledger was told
// of outcomes less than settleEvery ago. It ends early (called) when work arrives,
// which the lane then takes in the same breath. It is not ok to go on while
// another lane pauses: that one will see to all outcomes.
func (r *runner) pause(timer *time.Timer) (called, ok bool) {
	r.mu.Lock()
	p := &r.pace
	d := settleEvery - time.Since(p.last)
	switch {
	case p.pausing:
		r.mu.Unlock()
		return false, false
	case d <= 0 || r.waiting.Load() > 0 || r.draining || len(r.outbox) == 0:
		p.last = time.Now()
		r.mu.Unlock()
		return false, true
	}
	p.pausing = true
	r.mu.Unlock()
	timer.Reset(d)
	select {
	case <-timer.C:
	case <-r.called:
	case <-r.drained:
	case <-r.ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if called = !p.pausing; called {
		select {
		case <-r.called: // it came as the timer fired
		default:
		}
	}
	p.pausing, p.last = false, time.Now()
	return called, true
}

// call ends a lane's pause. It reports whether there was one: then what arrived is
// left to that lane.
func (r *runner) call() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.pace.pausing || r.deleted() {
		return false
	}
	r.pace.pausing = false
	poke(r.called)
	return true
}
