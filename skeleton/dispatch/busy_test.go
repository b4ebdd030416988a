package dispatch_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/dispatch"
	"farmhand/skeleton/ledger"
)

// pool is a worker function of so many single-slot replicas: who finds all of
// them busy is told so.
type pool struct {
	slots   int
	service time.Duration

	mu    sync.Mutex
	used  int
	order []int // tasks in the order they found a free replica
	start map[int]time.Time
}

func (p *pool) call(ctx context.Context, t skeleton.Task, _ []byte) skeleton.Call {
	p.mu.Lock()
	if p.used >= p.slots {
		p.mu.Unlock()
		return full
	}
	p.used++
	p.order = append(p.order, t.Index)
	p.start[t.Index] = time.Now()
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.used--
		p.mu.Unlock()
	}()
	return work(ctx, p.service)
}

// 50 tasks at 5 single-slot workers, window 50: nobody starves, the oldest go
// first, the longest wait is at most twice that of a plain queue (P69).
func TestBusyOldestFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(50, 50)
		p := &pool{slots: 5, service: 100 * time.Millisecond, start: map[int]time.Time{}}
		begin := time.Now()
		d := start(t, s, p.call)
		after(time.Minute)
		fifo := 9 * p.service // the last five of ten rounds
		for i, at := range p.start {
			if wait := at.Sub(begin); wait > 2*fifo {
				t.Errorf("task %d waited %s, in a queue at most %s", i, wait, fifo)
			}
		}
		if s.count(skeleton.Done) != 50 || s.count(skeleton.Dead) != 0 {
			t.Errorf("%d done", s.count(skeleton.Done))
		}
		// The first five are whoever comes first; after that the oldest.
		if rest := p.order[5:]; !slices.IsSorted(rest) {
			t.Errorf("out of order: %v", p.order)
		}
		stop(t, d)
	})
}

// New tasks queue up behind those that met busy workers.
func TestNewTasksDoNotOvertake(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(10, 8)
		p := &pool{slots: 1, service: 100 * time.Millisecond, start: map[int]time.Time{}}
		d := start(t, s, p.call)
		for range 20 {
			after(50 * time.Millisecond)
			s.submit(1)
		}
		after(time.Minute)
		if s.count(skeleton.Done) != 28 || !slices.IsSorted(p.order[1:]) {
			t.Errorf("%d done, order %v", s.count(skeleton.Done), p.order)
		}
		stop(t, d)
	})
}

// Nothing but busy workers for the time to live: a dead letter "no capacity",
// and not one attempt was charged. The offers come every 2 to 20 ms.
func TestBusyIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(1, 1)
		calls := 0
		d := start(t, s, func(context.Context, skeleton.Task, []byte) skeleton.Call {
			calls++
			return full
		}, func(c *dispatch.Config) { c.TimeToLive = time.Minute })
		after(time.Minute - time.Second)
		if s.count(skeleton.Leased) != 1 {
			t.Error("given up too early")
		}
		after(2 * time.Second)
		s.read(func() {
			if r := s.tasks[0]; r.state != skeleton.Dead || r.reason != "no capacity" || r.failed != 0 || r.task.Lost != 0 {
				t.Errorf("%+v", r)
			}
			if s.busy != calls || calls < 60_000/20 || calls > 60_000/2 {
				t.Errorf("%d calls, %d reported busy", calls, s.busy)
			}
		})
		stop(t, d)
	})
}

// Being given back to the queue does not lengthen the time to live.
func TestBusyIsBoundedAcrossReleases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(1, 1)
		d := start(t, s, func(context.Context, skeleton.Task, []byte) skeleton.Call { return full },
			func(c *dispatch.Config) { c.TimeToLive = time.Minute })
		for i := range 70 {
			after(time.Second)
			s.set(func(*skeleton.Farm) {}, i%2)
		}
		s.read(func() {
			if r := s.tasks[0]; r.state != skeleton.Dead || r.reason != "no capacity" || !slices.Contains(r.kinds, ledger.Released) {
				t.Errorf("%+v", r)
			}
		})
		stop(t, d)
	})
}

// A task that was redriven or run elsewhere after it was given back, or that was
// not taken for long, has all of its time to live again.
func TestBusyStartsAnew(t *testing.T) {
	for name, c := range map[string]struct {
		away time.Duration
		edit func(r *record)
		anew bool
	}{
		"nothing happened": {5 * time.Second, func(*record) {}, false},
		"redriven":         {5 * time.Second, func(r *record) { r.task.Accepted = time.Now() }, true},
		"failed elsewhere": {5 * time.Second, func(r *record) { r.failed++ }, true},
		"lost elsewhere":   {5 * time.Second, func(r *record) { r.task.Lost++ }, true},
		"waited for long":  {time.Minute, func(*record) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStore(1, 1)
				d := start(t, s, func(context.Context, skeleton.Task, []byte) skeleton.Call { return full },
					func(c *dispatch.Config) { c.TimeToLive = time.Minute })
				after(50 * time.Second)
				s.set(func(*skeleton.Farm) {}, 0)
				after(c.away)
				s.read(func() {
					if r := s.tasks[0]; r.state != skeleton.Waiting {
						t.Errorf("not given back: %+v", r)
					}
					c.edit(s.tasks[0])
				})
				s.set(func(*skeleton.Farm) {}, 1)
				for _, again := range []bool{c.anew, false} { // the time to live counts from now, or is soon over
					after(30 * time.Second)
					if (s.count(skeleton.Leased) == 1) != again {
						t.Errorf("alive: %v, want %v", !again, again)
					}
					after(31 * time.Second)
				}
				stop(t, d)
			})
		})
	}
}

// Where nobody listens at all the offers become rare, and stop being rare when
// somebody does.
func TestNobodyListens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(20, 20)
		var mu sync.Mutex
		calls, open := 0, false
		d := start(t, s, func(context.Context, skeleton.Task, []byte) skeleton.Call {
			mu.Lock()
			defer mu.Unlock()
			if open {
				return okay
			}
			calls++
			return skeleton.Call{Failure: skeleton.Refused}
		})
		after(time.Minute)
		mu.Lock()
		if calls > 6000 {
			t.Errorf("%d calls in a minute", calls)
		}
		open = true
		mu.Unlock()
		after(2 * time.Second)
		if s.count(skeleton.Done) != 20 {
			t.Errorf("%d done", s.count(skeleton.Done))
		}
		stop(t, d)
	})
}

// When the window shrinks, the youngest of those that meet busy workers go back
// to their old places; running ones stay.
func TestWindowShrinks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(10, 20)
		p := &pool{slots: 2, service: 30 * time.Second, start: map[int]time.Time{}}
		d := start(t, s, p.call)
		after(time.Second)
		s.set(func(*skeleton.Farm) {}, 4)
		after(2 * time.Second)
		s.read(func() {
			// Two of the first ten run, whichever; of the others the two oldest stay.
			want := slices.Clone(p.order)
			for i := 0; len(want) < 4; i++ {
				if !slices.Contains(p.order, i) {
					want = append(want, i)
				}
			}
			for i, r := range s.tasks {
				if kept := slices.Contains(want, i); kept != (r.state == skeleton.Leased) {
					t.Errorf("task %d is %s; running %v, to be kept %v", i, r.state, p.order, want)
				}
			}
		})
		s.cancel()
		after(time.Millisecond)
		stop(t, d)
	})
}

// Retries a worker asks for are no overload: the window hears of none (P72), and
// Retry-After is waited for.
func TestRetryAfterDoesNotShrinkTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(5, 50)
		var mu sync.Mutex
		asked := map[int]time.Time{}
		d := start(t, s, func(ctx context.Context, task skeleton.Task, _ []byte) skeleton.Call {
			mu.Lock()
			defer mu.Unlock()
			if task.Index%10 != 0 {
				return okay
			}
			if at, ok := asked[task.Index]; ok {
				if wait := time.Since(at); wait < 7*time.Second || wait > 9*time.Second {
					t.Errorf("task %d came back after %s", task.Index, wait)
				}
				return okay
			}
			asked[task.Index] = time.Now()
			return skeleton.Call{Status: 503, CallID: true, RetryWait: 7 * time.Second}
		})
		after(20 * time.Second)
		if s.count(skeleton.Done) != 50 || s.busy != 0 {
			t.Errorf("%d done, %d busy answers reported", s.count(skeleton.Done), s.busy)
		}
		stop(t, d)
	})
}

// A worker that is gone from two lists, 30 s apart: what waits and what meets the
// gateway's 404 become dead letters "worker deleted"; before that they stay (P54).
func TestWorkerDeleted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(3, 10)
		gone := func(context.Context, skeleton.Task, []byte) skeleton.Call { return skeleton.Call{Status: 404} }
		d := start(t, s, gone)
		after(time.Second)
		s.set(func(f *skeleton.Farm) { f.Missing = 29 * time.Second }, 0)
		after(time.Second)
		if n := s.count(skeleton.Dead); n != 0 {
			t.Fatalf("%d dead too early", n)
		}
		s.set(func(f *skeleton.Farm) { f.Missing = 30 * time.Second }, 0)
		after(time.Millisecond)
		s.read(func() {
			for i, r := range s.tasks {
				if r.state != skeleton.Dead || r.reason != "worker deleted" {
					t.Errorf("task %d: %s %q", i, r.state, r.reason)
				}
			}
		})
		s.submit(5) // what comes later, too
		after(time.Millisecond)
		if n := s.count(skeleton.Dead); n != 15 {
			t.Errorf("%d dead", n)
		}
		stop(t, d)
	})
}
