package dispatch_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"farmhand/skeleton"
	"farmhand/skeleton/dispatch"
	"farmhand/skeleton/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worker is a Caller that is a function.
type worker func(ctx context.Context, t skeleton.Task, body []byte) skeleton.Call

func (w worker) Call(ctx context.Context, t skeleton.Task, body []byte, _ time.Duration) skeleton.Call {
	return w(ctx, t, body)
}

var (
	okay = skeleton.Call{Status: 200, CallID: true}
	full = skeleton.Call{Status: 429, Platform: true, CallID: true}
)

// work takes a while, or is cut off.
func work(ctx context.Context, d time.Duration) skeleton.Call {
	select {
	case <-ctx.Done():
		return skeleton.Call{Failure: skeleton.Unreachable}
	case <-time.After(d):
		return okay
	}
}

// takes returns a worker that works so long.
func takes(d time.Duration) worker {
	return func(ctx context.Context, _ skeleton.Task, _ []byte) skeleton.Call { return work(ctx, d) }
}

func start(t *testing.T, s *store, w worker, edit ...func(c *dispatch.Config)) *dispatch.Dispatcher {
	t.Helper()
	cfg := dispatch.Config{Store: s, Caller: w, Owner: "test"}
	for _, e := range edit {
		e(&cfg)
	}
	d, err := dispatch.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func stop(t *testing.T, d *dispatch.Dispatcher) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// bubble runs a test with a clock of its own.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d) // the clock of the bubble: no time is spent
	synctest.Wait()
}

func TestEveryTaskIsRunOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(50, 2000)
		var calls atomic.Int64
		d := start(t, s, func(ctx context.Context, _ skeleton.Task, _ []byte) skeleton.Call {
			calls.Add(1)
			return work(ctx, 3*time.Millisecond)
		})
		after(time.Second)
		if n := s.count(skeleton.Done); n != 2000 || calls.Load() != 2000 {
			t.Errorf("%d done after %d calls", n, calls.Load())
		}
		s.submit(1) // an idle dispatcher is woken, it does not poll
		after(4 * time.Millisecond)
		if n := s.count(skeleton.Done); n != 2001 {
			t.Errorf("the late task waits: %d done", n)
		}
		stop(t, d)
	})
}

// The surplus is never taken: no more run than the window allows, none is a
// dead letter for it (P71).
func TestWindowBoundsWhatRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(3, 500)
		var live, most atomic.Int64
		d := start(t, s, func(ctx context.Context, _ skeleton.Task, _ []byte) skeleton.Call {
			if n := live.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer live.Add(-1)
			return work(ctx, 10*time.Millisecond)
		})
		after(1667*time.Millisecond + 10*time.Millisecond)
		if most.Load() != 3 || s.count(skeleton.Done) != 500 {
			t.Errorf("%d at once, %d done: a slot stood idle", most.Load(), s.count(skeleton.Done))
		}
		stop(t, d)
	})
}

// A farm that is smaller than its window: each process holds at most Running.
func TestRunningBoundsOneProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(100, 100)
		d := start(t, s, takes(time.Second), func(c *dispatch.Config) { c.Running = 7 })
		after(time.Millisecond)
		if n := s.count(skeleton.Leased); n != 7 {
			t.Errorf("%d leased", n)
		}
		after(15 * time.Second)
		if n := s.count(skeleton.Done); n != 100 {
			t.Errorf("%d done", n)
		}
		stop(t, d)
	})
}

func TestCancelEndsRunningCalls(t *testing.T) {
	for name, tell := range map[string]bool{"by event": true, "by renewal": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStore(5, 10)
				d := start(t, s, takes(50*time.Second))
				after(time.Millisecond)
				if !tell {
					s.fault(func() { s.events = map[int]func(ledger.Event){} })
				}
				s.cancel()
				wait := time.Millisecond
				if !tell {
					wait = ledger.RenewEvery + time.Millisecond
				}
				after(wait)
				s.read(func() {
					if s.live() != 0 {
						t.Errorf("%d leases live on", s.live())
					}
				})
				if n := s.count(skeleton.Cancelled); n != 10 {
					t.Errorf("%d cancelled", n)
				}
				stop(t, d)
			})
		})
	}
}

// A worker that never answers: the attempt ends at its timeout and the slot is
// free again (P49). The timeout is the task's own where that is shorter.
func TestOvertime(t *testing.T) {
	for name, c := range map[string]struct {
		task, want time.Duration
	}{"of the farm": {0, skeleton.DefaultTimeout}, "of the task": {2 * time.Second, 2 * time.Second}, "at most the farm's": {time.Hour, skeleton.DefaultTimeout}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStore(1, 1, func(t *skeleton.Task) { t.Timeout, t.Attempts = c.task, 1 })
				d := start(t, s, takes(24*time.Hour))
				after(c.want + 5*time.Second - time.Millisecond)
				if s.count(skeleton.Leased) != 1 {
					t.Error("it ended too early")
				}
				after(200 * time.Millisecond)
				s.read(func() {
					if r := s.tasks[0]; r.state != skeleton.Dead || !slices.Equal(r.kinds, []ledger.Kind{ledger.TimedOut}) {
						t.Errorf("%+v", r)
					}
				})
				stop(t, d)
			})
		})
	}
}

// A task longer than its lease runs once, because the lease is renewed (P44,
// P45, P70).
func TestLongTasksKeepTheirLeases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(10, 10)
		var calls atomic.Int64
		d := start(t, s, func(ctx context.Context, _ skeleton.Task, _ []byte) skeleton.Call {
			calls.Add(1)
			return work(ctx, 3*ledger.LeaseTime)
		})
		after(3*ledger.LeaseTime + time.Second)
		s.read(func() {
			if s.lapsed != 0 || calls.Load() != 10 || s.renewed < 80 {
				t.Errorf("%d lapsed, %d calls, %d renewals", s.lapsed, calls.Load(), s.renewed)
			}
		})
		stop(t, d)
	})
}

// While handlers burn the only processor, leases are renewed all the same (P50).
func TestRenewalUnderLoad(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := newStore(4, 4)
	var calls sync.WaitGroup
	calls.Add(4)
	spin := func(context.Context, skeleton.Task, []byte) skeleton.Call { // in real time: the point is the processor
		defer calls.Done()
		for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); {
		}
		return okay
	}
	d := start(t, s, spin, func(c *dispatch.Config) { c.RenewEvery = 20 * time.Millisecond })
	calls.Wait()
	stop(t, d) // settles what has ended
	if n := s.count(skeleton.Done); n != 4 || s.renewed < 8 {
		t.Errorf("%d done, %d renewals of 4 leases in over 0.4 s, every 20 ms", n, s.renewed)
	}
}

// Two dispatchers; one cannot renew any more, so its tasks run a second time at
// the other. Each result is accepted once, the others are refused and counted
// (P43).
func TestLapseIsFenced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(16, 8, func(t *skeleton.Task) { t.Timeout = 0 })
		s.set(func(f *skeleton.Farm) { f.Settings.Timeout = 2 * time.Minute }, 16)
		s.fault(func() { s.noRenew = true })
		var calls atomic.Int64
		w := func(ctx context.Context, _ skeleton.Task, _ []byte) skeleton.Call {
			calls.Add(1)
			return work(ctx, 60*time.Second)
		}
		a := start(t, s, w, func(c *dispatch.Config) { c.Owner = "a" })
		after(time.Millisecond)
		b := start(t, s, w, func(c *dispatch.Config) { c.Owner = "b" })
		after(ledger.LeaseTime + time.Second) // all lapse and are taken again
		s.fault(func() { s.noRenew = false })
		after(3 * time.Minute)
		s.read(func() {
			done, tries := 0, 0
			for _, r := range s.tasks {
				if r.state == skeleton.Done {
					done++
				}
				tries += len(r.kinds)
			}
			if done != 8 || tries != 8 || calls.Load() != 16 || s.lapsed != 8 {
				t.Errorf("%d done, %d outcomes accepted, %d calls, %d lapsed", done, tries, calls.Load(), s.lapsed)
			}
		})
		stop(t, a)
		stop(t, b)
	})
}

// An answer that is complete before the dispatcher hears of the lapse is sent,
// refused and counted.
func TestLateAnswerIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(4, 1)
		s.fault(func() { s.noRenew = true })
		d := start(t, s, takes(40*time.Second))
		after(41 * time.Second)
		s.read(func() {
			if s.refused == 0 || s.lapsed == 0 {
				t.Errorf("%d refused of %d lapsed", s.refused, s.lapsed)
			}
			s.noRenew = false
		})
		after(time.Minute)
		if s.count(skeleton.Done) != 1 {
			t.Error("not done")
		}
		stop(t, d)
	})
}

// A store that is away in the middle loses nothing and repeats nothing, as long
// as no lease lapses; and its lost answers do no harm.
func TestOutageLosesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(s *store, on bool)
		most  int64 // calls
	}{
		"away":             {func(s *store, on bool) { s.down = on }, 400},
		"answers are lost": {func(s *store, on bool) { s.deaf = on }, 440}, // leases in a lost answer lapse
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStore(20, 400)
				var calls atomic.Int64
				d := start(t, s, func(ctx context.Context, _ skeleton.Task, _ []byte) skeleton.Call {
					calls.Add(1)
					return work(ctx, 100*time.Millisecond)
				})
				after(time.Second)
				s.fault(func() { c.fault(s, true) })
				after(8 * time.Second)
				s.fault(func() { c.fault(s, false) })
				after(time.Minute)
				if n := s.count(skeleton.Done); n != 400 || calls.Load() > c.most {
					t.Errorf("%d done, %d calls", n, calls.Load())
				}
				stop(t, d)
			})
		})
	}
}

// Outcomes the ledger cannot take, more of them than lanes, do not hold up the
// others. When it can, they are settled; if it never can, the tasks become dead
// letters without a body.
func TestSpoiltOutcomeIsSetApart(t *testing.T) {
	for name, mended := range map[string]bool{"and settled": true, "and given up": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStore(20, 200)
				s.spoilt = "poison"
				d := start(t, s, func(_ context.Context, task skeleton.Task, _ []byte) skeleton.Call {
					c := okay
					if task.Index%40 == 7 {
						c.Body = []byte("poison")
					}
					return c
				})
				after(time.Second)
				if n := s.count(skeleton.Done); n != 195 {
					t.Errorf("%d done", n)
				}
				if mended {
					after(20 * time.Second)
					s.fault(func() { s.spoilt = "" })
					after(30 * time.Second)
					if n := s.count(skeleton.Done); n != 200 {
						t.Errorf("in the end %d done", n)
					}
				} else {
					after(5 * time.Minute)
					s.read(func() {
						for i := 7; i < 200; i += 40 {
							if r := s.tasks[i]; r.state != skeleton.Dead || r.body != "" || !strings.Contains(r.reason, "cannot be stored") {
								t.Errorf("%+v", r)
							}
						}
					})
				}
				stop(t, d)
			})
		})
	}
}

// A watch that breaks is set up again.
func TestWatchIsPersistent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(1, 0)
		s.failWatch = 5
		d := start(t, s, takes(0))
		after(time.Minute)
		s.submit(1)
		after(time.Millisecond)
		if s.count(skeleton.Done) != 1 {
			t.Error("nobody was woken")
		}
		stop(t, d)
	})
}

// A large body is fetched, and a store that is away meanwhile is waited for; one
// that cannot be read is charged, so that it cannot come back for ever.
func TestBodies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(2, 2)
		s.tasks[0].locator, s.tasks[1].locator = "x", "y"
		away := 3
		s.body = func(l ledger.Lease) ([]byte, error) {
			if l.Index == 1 {
				return nil, context.DeadlineExceeded
			}
			if away--; away > 0 {
				return nil, errDown
			}
			return []byte("large"), nil
		}
		d := start(t, s, func(_ context.Context, _ skeleton.Task, body []byte) skeleton.Call {
			return skeleton.Call{Status: 200, Body: body}
		})
		after(10 * time.Minute)
		s.read(func() {
			if r := s.tasks[0]; r.state != skeleton.Done || r.body != "large" {
				t.Errorf("fetched: %+v", r)
			}
			if r := s.tasks[1]; r.state != skeleton.Dead || len(r.kinds) != skeleton.DefaultAttempts || !strings.Contains(r.reason, "body") {
				t.Errorf("unreadable: %+v", r)
			}
		})
		stop(t, d)
	})
}

// What runs can be named, with since when (P74).
func TestRunning(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(2, 3)
		d := start(t, s, func(ctx context.Context, task skeleton.Task, _ []byte) skeleton.Call {
			if task.Index == 1 {
				return full
			}
			return work(ctx, 50*time.Second)
		})
		after(3 * time.Second)
		got := d.Running(farmName)
		if len(got) != 2 || got[0].Index != 0 || got[0].For < 2900*time.Millisecond || got[0].Attempt != 1 || got[1].Index != 1 {
			t.Errorf("%+v", got)
		}
		if d.Running("nobody") != nil || !d.Ready() {
			t.Error("an unknown farm, or not ready")
		}
		s.cancel()
		stop(t, d)
	})
}

// counts is an Observer.
type counts struct {
	mu       sync.Mutex
	taken    int
	meanings map[skeleton.Meaning]int
	verdicts map[ledger.Verdict]int
	busy     int
}

func (c *counts) Taken(_ string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken += n
}

func (c *counts) Answered(_ string, m skeleton.Meaning, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meanings[m]++
}

func (c *counts) Settled(_ string, outcomes []ledger.Outcome, verdicts []ledger.Verdict, busy int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy += busy
	for i, o := range outcomes {
		c.verdicts[verdicts[i]]++
		if o.Service < 0 || o.Waited < 0 {
			panic("negative time")
		}
	}
}

func TestObserverSeesEverything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(5, 100)
		c := &counts{meanings: map[skeleton.Meaning]int{}, verdicts: map[ledger.Verdict]int{}}
		var calls atomic.Int64
		d := start(t, s, func(ctx context.Context, _ skeleton.Task, _ []byte) skeleton.Call {
			if calls.Add(1)%4 == 0 {
				return full
			}
			return work(ctx, time.Millisecond)
		}, func(cfg *dispatch.Config) { cfg.Observer = c })
		after(time.Minute)
		stop(t, d)
		if c.taken != 100 || c.meanings[skeleton.IsResult] != 100 || c.verdicts["done"] != 100 || c.busy != c.meanings[skeleton.IsBusy] || c.busy == 0 || c.busy != s.busy {
			t.Errorf("%+v, store heard of %d busy answers", c, s.busy)
		}
	})
}

type notifier func(d ledger.CallbackDue) (time.Duration, error)

func (n notifier) Notify(_ context.Context, d ledger.CallbackDue) (time.Duration, error) { return n(d) }

// Callbacks are claimed as they can be delivered, eight at once; a store that is
// away meanwhile is complained of once.
func TestCallbacksAreDelivered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(1, 0)
		for i := range 20 {
			s.due = append(s.due, ledger.CallbackDue{Try: i + 1})
		}
		var log logged
		var live, most atomic.Int64
		d := start(t, s, takes(0), log.use, func(c *dispatch.Config) {
			c.Notifier = notifier(func(d ledger.CallbackDue) (time.Duration, error) {
				if n := live.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer live.Add(-1)
				time.Sleep(2500 * time.Millisecond) // of the bubble's clock
				if d.Try == 20 {
					return time.Minute, context.DeadlineExceeded
				}
				return 0, nil
			})
		})
		after(1500 * time.Millisecond)
		s.fault(func() { s.down = true })
		after(10 * time.Second)
		s.fault(func() { s.down = false })
		s.read(func() {
			if n := log.count("cannot claim callbacks"); n != 1 || len(s.done) != 8 {
				t.Errorf("%d complaints, %d delivered during an outage", n, len(s.done))
			}
		})
		after(20 * time.Second)
		stop(t, d)
		if len(s.done) != 20 || slices.Max(s.done) != time.Minute || most.Load() != 8 {
			t.Errorf("%v, %d at once", s.done, most.Load())
		}
	})
}
