package dispatch_test

import (
	"context"
	"testing"
	"time"

	"farmhand/skeleton"
)

// staggered is a worker whose tasks end one after the other, each so long after
// the one before it.
func staggered(first, step time.Duration) worker {
	return func(ctx context.Context, t skeleton.Task, body []byte) skeleton.Call {
		call := work(ctx, first+time.Duration(t.Index)*step)
		call.Body = body
		return call
	}
}

// Outcomes that nobody waits for go to the ledger a thousand times a second at
// most, however many tasks end: and each of them a millisecond late at most.
func TestOutcomesKeepCompany(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(500, 400)
		d := start(t, s, staggered(5*time.Millisecond, 50*time.Microsecond)) // they end within 20 ms
		after(15 * time.Millisecond)
		if n := s.count(skeleton.Done); n < 180 || n > 201 {
			t.Errorf("%d of 201 tasks that have ended are done", n)
		}
		after(11 * time.Millisecond)
		if n := s.count(skeleton.Done); n != 400 || s.settles > 22 {
			t.Errorf("%d done after %d calls", n, s.settles)
		}
		stop(t, d)
	})
}

// Where work waits for what outcomes free, they do not wait.
func TestOutcomesMakeRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(1, 100)
		d := start(t, s, takes(100*time.Microsecond))
		after(10 * time.Millisecond)
		if n := s.count(skeleton.Done); n < 99 { // nobody waits for the slot of the last
			t.Errorf("%d of 100 done", n)
		}
		stop(t, d)
	})
}

// Work that arrives is taken at once, with the outcomes that were held back; and
// also where these cannot be stored.
func TestWorkEndsThePause(t *testing.T) {
	for _, spoilt := range []string{"", "1"} {
		bubble(t, func(t *testing.T) {
			s := newStore(10, 2)
			s.spoilt = spoilt
			d := start(t, s, staggered(time.Millisecond, 200*time.Microsecond))
			after(1300 * time.Microsecond) // the second ended 0.2 ms after the first
			if n := s.count(skeleton.Done); n != 1 {
				t.Errorf("%d done: the second is not held back", n)
			}
			s.submit(1)
			after(0)
			if n, leased := s.count(skeleton.Done), s.count(skeleton.Leased); spoilt == "" && n != 2 || s.count(skeleton.Waiting) != 0 {
				t.Errorf("%d done, %d run", n, leased)
			}
			s.fault(func() { s.spoilt = "" })
			after(time.Second)
			if n := s.count(skeleton.Done); n != 3 {
				t.Errorf("%d done in the end", n)
			}
			stop(t, d)
		})
	}
}
