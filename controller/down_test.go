package controller_test

import (
	"errors"
	"testing"
	"time"
)

// published are the windows since the last time it was asked.
func (l *ledgers) published() []window {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.windows
	l.windows = nil
	return list
}

// The window is lowered by the decision itself; the call follows when the live
// leases fit, or one interval later.
func TestWindowFirst(t *testing.T) {
	for name, c := range map[string]struct {
		service time.Duration
		call    time.Duration // after the decision
	}{
		"nothing runs":           {0, 0},
		"leases end soon":        {900 * time.Millisecond, time.Second},
		"leases end in a minute": {time.Minute, interval},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.add("f", 5, "policy", "static:n=5")
				a := w.start("A")
				w.settle()
				if c.service > 0 {
					w.set(func() { w.service = c.service })
					w.submit("f", 5)
					w.after(110 * time.Millisecond)
				}
				w.override(a, "f", "policy", "static:n=2")
				decided := time.Now()
				w.after(interval + time.Second)

				windows, calls := w.ledgers.published(), w.platform.made()
				if len(calls) != 1 || calls[0].n != 2 {
					t.Fatalf("calls %v", calls)
				}
				within(t, "the call", calls[0].at.Sub(decided), c.call, 300*time.Millisecond)
				for _, p := range windows {
					if !p.at.Before(decided) && p.Target != 2 {
						t.Errorf("window of %d replicas %s after the decision", p.Target, p.at.Sub(decided))
					}
				}
			})
		})
	}
}

// What a call is still under way for is not handed out again, however long it
// takes.
func TestWindowStaysLowDuringTheCall(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 5, "policy", "static:n=5")
		c := w.start("A")
		w.settle()
		w.platform.set(func() { f.lag = 3500 * time.Millisecond })
		w.override(c, "f", "policy", "static:n=1")
		decided := time.Now()
		w.after(5 * time.Second)
		if calls := w.platform.made(); len(calls) != 1 || calls[0].n != 1 {
			t.Fatalf("calls %v", calls)
		}
		for _, p := range w.ledgers.published() {
			if p.at.After(decided) && p.Target != 1 {
				t.Errorf("window of %d replicas %s after the decision", p.Target, p.at.Sub(decided))
			}
		}
	})
}

// A scale-down that fails is tried again at each tick, not at once and again and
// again, and its window stays low.
func TestFailedScaleDown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 5, "policy", "static:n=5")
		c := w.start("A")
		w.settle()
		w.platform.set(func() { f.err = errors.New("502") })
		w.override(c, "f", "policy", "static:n=1")
		decided := time.Now()
		w.after(10 * time.Second)
		calls := w.platform.made()
		if len(calls) < 5 || len(calls) > 6 {
			t.Errorf("%d calls in five intervals", len(calls))
		}
		for i := 1; i < len(calls); i++ {
			within(t, "the next try", calls[i].at.Sub(calls[i-1].at), interval, 10*time.Millisecond)
		}
		for _, p := range w.ledgers.published() {
			if p.at.After(decided) && p.Target != 1 {
				t.Errorf("window of %d replicas %s after the decision", p.Target, p.at.Sub(decided))
			}
		}
		w.platform.set(func() { f.err = nil })
		w.after(2 * interval)
		if f := farm(t, c, "f"); f.Desired != 1 || !f.Conditions["Healthy"].Status {
			t.Errorf("once the platform works: %+v", f)
		}
	})
}
