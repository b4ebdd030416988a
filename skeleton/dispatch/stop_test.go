package dispatch_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// A stop takes nothing more, lets running calls end, and gives back the rest.
func TestStopDrains(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(10, 30)
		p := &pool{slots: 4, service: 10 * time.Second, start: map[int]time.Time{}}
		d := start(t, s, p.call)
		after(time.Second)
		d.Drain()
		after(time.Millisecond)
		if n := s.count(skeleton.Leased); n != 4 {
			t.Errorf("%d leased while draining: only running ones are kept", n)
		}
		beats := 0
		s.read(func() { beats = s.beats })
		begin := time.Now()
		stop(t, d)
		if took := time.Since(begin); took > 9*time.Second+time.Millisecond {
			t.Errorf("it took %s", took)
		}
		s.read(func() {
			if s.live() != 0 || len(s.waiting) != 26 || s.beats != beats {
				t.Errorf("%d leases left, %d waiting, %d beats while draining", s.live(), len(s.waiting), s.beats-beats)
			}
		})
		if n := s.count(skeleton.Done); n != 4 {
			t.Errorf("%d done", n)
		}
	})
}

// Stopping twice is fine: the second stop ends with the first, also when both are
// under way at once, and says the same.
func TestStopTwice(t *testing.T) {
	for name, down := range map[string]bool{"all is settled": false, "leases are left": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStore(3, 3)
				d := start(t, s, takes(7*time.Second))
				after(time.Second)
				s.fault(func() { s.down = down })
				begin := time.Now()
				end := func(limit, least, most time.Duration) {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					if err := d.Stop(ctx); (err != nil) != down {
						t.Errorf("a stop of at most %s: %v", limit, err)
					}
					if took := time.Since(begin); took < least || took > most {
						t.Errorf("a stop of at most %s ended after %s", limit, took)
					}
				}
				least, most := 6*time.Second, 6*time.Second
				if down {
					least, most = 10*time.Second, 10*time.Second
				}
				var stops sync.WaitGroup
				for _, limit := range []time.Duration{10 * time.Second, time.Hour} {
					stops.Go(func() { end(limit, least, most) })
				}
				stops.Wait()
				begin = time.Now()
				end(time.Hour, 0, 0)
			})
		})
	}
}

// What outlasts a stop is cut off in time to say so: it counts as lost and is
// not left to lapse.
func TestStopCutsOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(3, 3)
		d := start(t, s, takes(50*time.Second))
		after(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Error(err)
		}
		if ctx.Err() != nil {
			t.Error("it outlasted its context")
		}
		s.read(func() {
			for _, r := range s.tasks {
				if r.task.Lost != 1 || !r.lease.IsZero() || r.state != skeleton.Waiting {
					t.Errorf("%+v", r)
				}
			}
		})
	})
}

// A task that is refused in the moment of the stop is with no worker: it is given
// back and not charged.
func TestStopReleasesWhatWasRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(3, 3)
		d := start(t, s, func(ctx context.Context, _ skeleton.Task, _ []byte) skeleton.Call {
			<-ctx.Done()
			return skeleton.Call{Failure: skeleton.Refused}
		})
		after(time.Second)
		stop(t, d)
		s.read(func() {
			for _, r := range s.tasks {
				if !slices.Equal(r.kinds, []ledger.Kind{ledger.Released}) || r.state != skeleton.Waiting {
					t.Errorf("%+v", r)
				}
			}
		})
	})
}

// With the store away a stop ends all the same, and says what it leaves.
func TestStopWithoutAStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(3, 3)
		d := start(t, s, takes(time.Second))
		after(500 * time.Millisecond)
		s.fault(func() { s.down = true })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		if err := d.Stop(ctx); err == nil {
			t.Error("three leases are left and nobody is told")
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// The store comes back during the stop: nothing is lost.
func TestStopOutlastsAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(3, 3)
		d := start(t, s, takes(time.Second))
		after(500 * time.Millisecond)
		s.fault(func() { s.down = true })
		time.AfterFunc(6*time.Second, func() { s.fault(func() { s.down = false }) })
		stop(t, d)
		if n := s.count(skeleton.Done); n != 3 {
			t.Errorf("%d done", n)
		}
	})
}

// A stop before the start has found a farm.
func TestStopAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(3, 3)
		s.down = true
		d := start(t, s, takes(time.Second))
		stop(t, d)
	})
}

var _ ledger.Store = (*store)(nil)
