package controller

import (
	"context"
	"errors"
	"time"
)

// plan says what to call, and when to look again. Going up is called at once.
// Going down, the window goes first: the call follows when the live leases fit,
// or one interval later.
func (w *work) plan() {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, s := w.farm, &w.state
	desired := f.worker.Desired
	if r := w.wish; r != nil {
		switch {
		case f.call: // what is under way goes on
		case !r.Mode.Acts():
			s.Lower = nil
		case r.Replicas >= desired:
			s.Lower = nil
			if r.Replicas > desired {
				w.call = &r.Replicas
			}
		case s.Lower == nil || r.Replicas < s.Lower.To: // the window goes first for what is more, too
			s.Lower = &lower{To: r.Replicas, Since: w.now}
		default:
			s.Lower.To = r.Replicas
		}
		s.assess(r, desired, f.worker.Ready, f.blocked)
	}
	failed := f.acted != nil && f.acted.Error != "" // it is tried again at the next tick
	if l, g := s.Lower, w.gauges; l != nil && g != nil && w.heard && !f.call && !failed && f.eff.Mode.Acts() {
		// The gauges were read before this pulse publishes the window: where work
		// waits, it may be taken by the old one until then.
		fits := g.Live <= l.To*f.eff.Slots && (w.now.After(l.Since) || g.Waiting == 0)
		waited := w.now.Sub(l.Since) // by a clock that may be set
		if fits || waited < 0 || waited >= f.eff.Interval*9/10 {
			w.call = &l.To
		}
	}
	if w.call != nil {
		n := *w.call
		w.call, s.Asked, w.dirty = &n, &n, true
	}
	w.dirty = w.dirty || f.unsaved
	if s.Lower != nil || f.call || w.call != nil || f.worker.Ready != s.wanted(desired) {
		f.look = time.Now().Add(min(lookTime, f.eff.Interval))
	}
}

// errLease stands for a call that was not made.
var errLease = errors.New("the lease would not outlive the call: nothing was asked")

// scale asks the platform for n replicas and reads back what came of it, beside
// the loop.
func (c *Controller) scale(f *farm, n int, now time.Time) {
	f.mu.Lock()
	if f.call || f.fence == 0 {
		f.mu.Unlock()
		return
	}
	f.call = true
	before, until, fence := f.worker.Desired, f.until, f.fence
	f.mu.Unlock()
	c.done.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, CallTimeout)
		defer cancel()
		begun := time.Now()
		a := &Acted{At: now, From: before, To: n, ReadBack: before}
		var ready int
		err := errLease
		if begun.Add(CallTimeout).Before(until) { // a process may have been stopped for long
			err = c.cfg.Platform.Scale(ctx, f.name, n)
		}
		if err == nil {
			a.ReadBack, ready, err = c.cfg.Platform.Replicas(ctx, f.name)
		}
		a.Seconds = time.Since(begun).Seconds()

		f.mu.Lock()
		defer f.mu.Unlock()
		defer c.poke()
		f.call = false
		f.called = time.Now()
		if f.fence != fence { // another controller had the farm meanwhile: its state is not that of the call
			return
		}
		f.acted, f.unsaved, f.look = a, true, f.called
		if err != nil {
			a.Error = err.Error()
			f.state.Failed = a.Error
			c.cfg.Log.Warn("a scale call failed", "farm", f.name, "from", before, "to", n, "error", err)
			return
		}
		f.worker.Desired, f.worker.Ready = a.ReadBack, ready
		f.state.Left = &a.ReadBack
		f.state.Lower, f.state.Failed = nil, ""
		if a.ReadBack != n && len(f.state.recent(now)) == 0 { // else it is the other scaler's doing
			f.state.learn(n, a.ReadBack, now)
		}
		if f.series != nil {
			f.series.Scaled(now, before, a.ReadBack)
		}
		c.cfg.Log.Info("scaled", "farm", f.name, "from", before, "to", n, "read_back", a.ReadBack)
	})
}
