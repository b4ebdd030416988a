package controller_test

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// away lets everything that is kept in Redis fail, or work again.
func (w *world) away(err error) {
	w.keeper.set(func() { w.keeper.err = err })
	w.ledgers.set(func() { w.ledgers.err = err })
	w.signals.set(func() { w.signals.err = err })
	w.log.set(func() { w.log.err = err })
}

// While Redis is away nothing is done, and it is asked again every second. When
// it is back the farm goes on where it was.
func TestRedisAway(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"a moment": 3 * time.Second, "longer than the lease": time.Minute} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.add("f", 1, "max", "9", "service", "400ms")
				c := w.start("A")
				w.settle()
				before := w.last("f")
				w.away(errAway)
				w.submit("f", 500)
				w.platform.listed()
				w.after(lasts)
				if n := w.platform.listed(); n < int(lasts/time.Second)-1 || n > int(lasts/time.Second)+1 {
					t.Errorf("tried %d times in %s", n, lasts)
				}
				if calls, r := w.platform.made(), w.last("f"); len(calls) > 0 || r.Seq != before.Seq {
					t.Errorf("calls %v, receipt %d", calls, r.Seq)
				}
				if s := c.Status(); !strings.Contains(s.Error, errAway.Error()) {
					t.Errorf("status %+v", s)
				}
				w.away(nil)
				w.after(1500 * time.Millisecond)
				if calls := w.platform.made(); len(calls) != 1 || calls[0].n < 2 {
					t.Errorf("once it is back: %v", calls)
				}
				if r := w.last("f"); r.Seq > before.Seq+3 || r.Fence != before.Fence || r.Foreign != nil {
					t.Errorf("receipt %d under fence %d: %+v", r.Seq, r.Fence, r.Foreign)
				}
				if s := c.Status(); s.Error != "" || time.Since(s.Updated) > 2*time.Second {
					t.Errorf("status %+v", s)
				}
			})
		})
	}
}

// A controller that begins while Redis is away does its work when it is there.
func TestRedisAwayAtTheBegin(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "policy", "static:n=3")
		w.away(errAway)
		c := w.start("A")
		w.after(20 * time.Second)
		if s := c.Status(); !s.Updated.IsZero() || s.Error == "" {
			t.Errorf("status %+v", s)
		}
		w.away(nil)
		w.after(1100 * time.Millisecond)
		if calls := w.platform.made(); len(calls) != 1 {
			t.Errorf("calls %v", calls)
		}
	})
}

// What could not be saved, or told the dispatchers, is not done.
func TestNothingIsDoneUnsaved(t *testing.T) {
	for name, c := range map[string]struct{ spoil, mend func(w *world) }{
		"state": {
			func(w *world) { w.keeper.set(func() { w.keeper.saveErr = errAway }) },
			func(w *world) { w.keeper.set(func() { w.keeper.saveErr = nil }) },
		},
		"windows": {
			func(w *world) { w.ledgers.set(func() { w.ledgers.publishErr = errAway }) },
			func(w *world) { w.ledgers.set(func() { w.ledgers.publishErr = nil }) },
		},
	} {
		for _, n := range []string{"1", "9"} {
			t.Run(name+" to "+n, func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					w.add("f", 5, "policy", "static:n=5")
					a := w.start("A")
					w.settle()
					c.spoil(w)
					w.override(a, "f", "policy", "static:n="+n)
					w.after(20 * time.Second)
					if calls := w.platform.made(); len(calls) > 0 {
						t.Errorf("calls %v", calls)
					}
					c.mend(w)
					w.after(2 * interval)
					if calls := w.platform.made(); len(calls) != 1 {
						t.Errorf("afterwards: %v", calls)
					}
				})
			})
		}
	}
}

// Receipts are for people: a farm is scaled without them.
func TestLogAway(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		c := w.start("A")
		w.settle()
		w.log.set(func() { w.log.err = errAway })
		w.override(c, "f", "policy", "static:n=4")
		w.after(time.Second)
		if calls := w.platform.made(); len(calls) != 1 {
			t.Errorf("calls %v", calls)
		}
	})
}

// A platform that cannot be reached is no platform without workers.
func TestPlatformAway(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 2, "policy", "static:n=2")
		c := w.start("A")
		w.settle()
		before := w.last("f").Seq
		w.platform.set(func() { w.platform.listErr = errors.New("gateway away") })
		w.platform.listed()
		w.after(20 * time.Second)
		if s, n := c.Status(), w.platform.listed(); !strings.Contains(s.Error, "gateway away") || n < 19 || n > 21 {
			t.Errorf("status %+v after %d lists", s, n)
		}
		r, err := w.ledgers.Roster(background)
		if err != nil || len(r.Farms) != 1 || r.Farms[0].Missing != 0 || r.Farms[0].Ready != 2 {
			t.Errorf("roster %+v, %v", r, err)
		}
		if seq := w.last("f").Seq; seq != before {
			t.Errorf("%d decisions about nobody knows what", seq-before)
		}
		w.platform.set(func() { w.platform.listErr = nil })
		w.after(1100 * time.Millisecond)
		if s := c.Status(); s.Error != "" || w.last("f").Seq != before+1 || w.last("f").Foreign != nil {
			t.Errorf("afterwards: %+v, %+v", s, w.last("f"))
		}
	})
}
