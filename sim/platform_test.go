package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"farmhand/policy"
	"farmhand/sim/workload"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger/memledger"
)

// byHand is a farm of n replicas and tasks written down one by one: arrival and
// service.
func byHand(n int, horizon float64, tasks ...[2]float64) (*workload.Scenario, *workload.Tasks) {
	sc := plain(n)
	sc.Farm.Max = 10
	t := &workload.Tasks{Horizon: horizon}
	for _, x := range tasks {
		t.At, t.Service = append(t.At, x[0]), append(t.Service, x[1])
	}
	return sc, t
}

// script asks for counts at instants and runs to the end. It looks before each
// decision.
func script(t *testing.T, s *Sim, asks map[float64]int, look func(at float64, o *policy.Observation)) Result {
	t.Helper()
	var o policy.Observation
	for more := true; more; more = s.Advance() {
		s.Observe(&o)
		if look != nil {
			look(s.Now(), &o)
		}
		if n, ok := asks[s.Now()]; ok {
			s.Scale(n)
			delete(asks, s.Now())
		}
		if err := s.sound(); err != nil {
			t.Fatal(err)
		}
	}
	if len(asks) > 0 {
		t.Errorf("no decision came for %v", asks)
	}
	return s.Result()
}

func about(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s: %.12g, want %.12g", what, got, want)
	}
}

// Replicas are paid from the scale call to the end of their drain.
func TestReplicasArePaidFromCallToEnd(t *testing.T) {
	for _, c := range []struct {
		name                         string
		start                        int
		platform                     workload.Platform
		tasks                        [][2]float64
		asks                         map[float64]int
		seconds                      float64 // of 10
		peak, actions, starts, flaps int
	}{
		{"nothing happens", 2, workload.Platform{}, nil, nil, 20, 2, 0, 0, 0},
		{"up", 1, workload.Platform{Startup: constant(3), Call: constant(0.5)}, nil, map[float64]int{2: 3}, 10 + 2*8, 3, 1, 2, 0},
		{"up, beyond the end", 1, workload.Platform{Startup: constant(30)}, nil, map[float64]int{4: 2}, 10 + 6, 2, 1, 1, 0},
		{"the same count is no action", 2, workload.Platform{}, nil, map[float64]int{2: 2}, 20, 2, 0, 0, 0},
		{"idle ones go at once", 3, workload.Platform{}, nil, map[float64]int{4: 1}, 10 + 2*4, 3, 1, 0, 0},
		{"call and stop take time", 3, workload.Platform{Call: constant(0.5), Stop: constant(0.25)}, nil, map[float64]int{4: 1}, 10 + 2*4.75, 3, 1, 0, 0},
		// One of two is busy until 5.5: the other one goes.
		{"idle first", 2, workload.Platform{}, [][2]float64{{0.5, 5}, {0.6, 1}}, map[float64]int{2: 1}, 10 + 2, 2, 1, 0, 0},
		// Both are busy: the call waits an interval, then one drains.
		{"busy ones finish", 2, workload.Platform{}, [][2]float64{{0.5, 5}, {0.5, 5}}, map[float64]int{2: 1}, 10 + 5.5, 2, 1, 0, 0},
		// As before, but one is free again when the controller looks a second later.
		{"the call waits for what runs", 2, workload.Platform{}, [][2]float64{{0.5, 5}, {0.5, 2.25}}, map[float64]int{2: 1}, 10 + 3, 2, 1, 0, 0},
		{"starting ones are cancelled first", 1, workload.Platform{Startup: constant(5)}, nil, map[float64]int{0: 4, 2: 2}, 10 + 10 + 2*2, 4, 2, 3, 0},
		// Asked for again before the call went out: nothing is called.
		{"a scale-down is taken back", 2, workload.Platform{}, [][2]float64{{0.5, 5}, {0.5, 5}}, map[float64]int{2: 1, 4: 2}, 20, 2, 0, 0, 0},
		{"down and up within two start-ups", 2, workload.Platform{Startup: constant(1)}, nil, map[float64]int{2: 1, 4: 2}, 10 + 2 + 6, 2, 2, 1, 1},
		{"down and up later", 2, workload.Platform{Startup: constant(0.5)}, nil, map[float64]int{2: 1, 4: 2}, 10 + 2 + 6, 2, 2, 1, 0},
		{"the platform clamps", 1, workload.Platform{Cap: 3}, nil, map[float64]int{0: 9}, 30, 3, 1, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc, tasks := byHand(c.start, 10, c.tasks...)
			sc.Platform = c.platform
			r := script(t, begin(t, sc, tasks, 1), c.asks, nil)
			about(t, "worker-seconds", r.WorkerSeconds, c.seconds)
			about(t, "mean workers", r.MeanWorkers, c.seconds/10)
			if r.PeakWorkers != c.peak || r.Actions != c.actions || r.Starts != c.starts || r.Flaps != c.flaps {
				t.Errorf("peak %d, %d actions, %d starts, %d flaps; want %d, %d, %d, %d", r.PeakWorkers, r.Actions, r.Starts, r.Flaps, c.peak, c.actions, c.starts, c.flaps)
			}
		})
	}
}

// A replica takes tasks once it is ready and that is known; until then it is
// starting, and paid.
func TestReadyReplicasAreSeenLate(t *testing.T) {
	sc, tasks := byHand(1, 20, [2]float64{0.5, 100}, [2]float64{0.5, 1})
	sc.Platform = workload.Platform{Startup: constant(3), Call: constant(0.5), Seen: constant(1)}
	s := begin(t, sc, tasks, 1)
	r := script(t, s, map[float64]int{2: 2}, func(at float64, o *policy.Observation) {
		desired, ready, running := 2, 2, policy.Maybe(2)
		switch {
		case at <= 2:
			desired, ready, running = 1, 1, 1
		case at <= 6: // asked for at 2, called 2.5, ready 5.5, seen 6.5
			ready, running = 1, 1
		case at >= 8: // begun at 6.5
			running = 1
		}
		if at == 0 {
			running = 0
		}
		if o.Desired != desired || o.Ready != ready || o.Starting != desired-ready || o.Running != running {
			t.Errorf("at %g s: %d desired, %d ready, %d starting, %g run", at, o.Desired, o.Ready, o.Starting, o.Running)
		}
		if at >= 8 {
			about(t, "start-up lag", float64(o.StartupLag), 6) // as it was seen, at decisions
		}
	})
	about(t, "longest sojourn", r.MaxSojourn, 7)
}

// A controller that looks sees all that is ready at once: when a call has ended,
// each second after that or after a decision, and at decisions.
func TestReadyReplicasAreLookedFor(t *testing.T) {
	for _, c := range []struct{ startup, seen float64 }{
		{0.1, 3.4}, // asked for at 2, called 2.4, looked at then, and at 3.4
		{1, 3.4},
		{1.01, 4},
		{1.7, 5}, // a look was due at 4.4, but the decision at 4 looked
		{2.7, 6},
	} {
		sc, tasks := byHand(1, 20, [2]float64{0.5, 100}, [2]float64{0.5, 1}, [2]float64{0.5, 1})
		sc.Platform = workload.Platform{Startup: constant(c.startup), Call: constant(0.4), Seen: workload.Looks{Every: 1}}
		r := script(t, begin(t, sc, tasks, 1), map[float64]int{2: 3}, func(at float64, o *policy.Observation) {
			want := 1
			if at >= c.seen {
				want = 3
			}
			if o.Ready != want {
				t.Errorf("start-up %g: at %g s %d are seen ready, want %d", c.startup, at, o.Ready, want)
			}
		})
		about(t, "longest sojourn", r.MaxSojourn, c.seen+0.5)
	}
}

// The window is that of the ledger, whatever busy answers come when.
func TestWindowIsTheLedgers(t *testing.T) {
	sc, tasks := byHand(7, 1000)
	sc.Farm.Slots = 3
	s := begin(t, sc, tasks, 1)
	now := epoch
	farm := memledger.New(memledger.Options{Clock: func() time.Time { return now }})
	settings := skeleton.DefaultSettings()
	settings.Slots = 3
	ctx := context.Background()
	if err := farm.PublishWindows(ctx, []skeleton.Farm{{Name: "f", Settings: settings, Ready: 7, Target: 7}}); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	low := 21
	for range 2000 {
		pause := 5 * random.ExpFloat64() * random.Float64() * random.Float64()
		now = now.Add(time.Duration(pause * 1e9)).Truncate(time.Microsecond)
		s.now = now.Sub(epoch).Seconds()
		if n := random.IntN(20); n > 0 {
			for range n {
				s.window.refuse(s.now, 0)
			}
			if _, err := farm.Farm("f").Settle(ctx, nil, n); err != nil {
				t.Fatal(err)
			}
		}
		g, err := farm.Farm("f").Gauges(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.room(); got != g.Window {
			t.Fatalf("at %g s: a window of %d, the ledger's is %d", s.now, got, g.Window)
		}
		low = min(low, g.Window)
	}
	if low > 10 {
		t.Errorf("the window never fell below %d", low)
	}
}

// Random balancing meets busy replicas: the task stays leased and is offered again, no
// attempt is spent, and the window stays whole, since so many busy answers are what it
// takes to find the free replica.
func TestRandomReplicasAnswerBusy(t *testing.T) {
	sc := plain(8)
	sc.Platform.Balance = workload.RandomReplica
	tasks := poisson(1, 96, constant(0.05), 300) // 4.8 Erlang of 8
	s := begin(t, sc, tasks, 1)
	least := 8
	var o policy.Observation
	for more := true; more; more = s.Advance() {
		s.Observe(&o)
		least = min(least, s.room())
		if s.live > 8 {
			t.Fatalf("%d leases live, of 8 slots", s.live)
		}
	}
	r := s.Result()
	if r.Busy < r.Tasks/2 || least < 8 || r.Dead > 0 || r.Lost > 0 || r.Done < r.Tasks-20 {
		t.Errorf("the window fell to %d; %+v", least, r)
	}
	if o.Long.Busy < 10 || o.Long.Failed > 0 {
		t.Errorf("observed: %g busy answers, %g failures", o.Long.Busy, o.Long.Failed)
	}
	sc.Platform.Balance = workload.LeastBusy
	if even := begin(t, sc, tasks, 1).coast(); even.Busy > 0 || !(even.P99 < r.P99) || even.Wait > r.Wait {
		t.Errorf("least busy: %+v; random: %+v", even, r)
	}
}

// A blocking platform lets the next decision wait until the last one took effect in
// full.
func TestBlockingDecisionsWait(t *testing.T) {
	sc, tasks := byHand(2, 60, [2]float64{23.5, 20}, [2]float64{23.5, 10})
	sc.Farm.Interval = 8
	sc.Platform = workload.Platform{Startup: constant(7), Stop: constant(2.94), Blocking: true}
	var at []float64
	r := script(t, begin(t, sc, tasks, 1), map[float64]int{0: 3, 8: 4, 16: 1}, func(now float64, _ *policy.Observation) { at = append(at, now) })
	want := []float64{0, 8, 16, 24, 32, 40, 48, 56} // a start-up fits into a step; so does the end of three idle ones
	sc.Platform.Startup = constant(9.5)
	var late []float64
	script(t, begin(t, sc, tasks, 1), map[float64]int{0: 3, 9.5: 4, 27: 1}, func(now float64, _ *policy.Observation) { late = append(late, now) })
	// 9.5 and 19 are the ends of start-ups; at 27 both tasks run, and the younger replica has that of 20 s.
	lateWant := []float64{0, 9.5, 19, 27, 46.44, 54.44}
	for _, c := range [][2][]float64{{at, want}, {late, lateWant}} {
		if len(c[0]) != len(c[1]) {
			t.Errorf("decisions at %v, want %v", c[0], c[1])
			continue
		}
		for i := range c[0] {
			about(t, "decision", c[0][i], c[1][i])
		}
	}
	about(t, "worker-seconds", r.WorkerSeconds, 60+1*(18.94)+18.94+(18.94-8))
}

// A task for a farm at zero has a decision made at once; more of them, four a
// second.
func TestWorkWakesTheFarmAtZero(t *testing.T) {
	sc, tasks := byHand(0, 20, [2]float64{5.3, 1}, [2]float64{5.4, 1}, [2]float64{5.8, 1})
	sc.Platform.Startup = constant(0.75)
	var at []float64
	r := script(t, begin(t, sc, tasks, 1), map[float64]int{5.3: 1}, func(now float64, _ *policy.Observation) { at = append(at, now) })
	want := []float64{0, 2, 4, 5.3, 5.55, 5.8, 7.8, 9.8, 11.8, 13.8, 15.8, 17.8, 19.8}
	if len(at) != len(want) {
		t.Fatalf("decisions at %v, want %v", at, want)
	}
	for i := range at {
		about(t, "decision", at[i], want[i])
	}
	about(t, "worker-seconds", r.WorkerSeconds, 20-5.3)
	about(t, "longest sojourn", r.MaxSojourn, 6.05+3-5.8)
}

// A crash loses what runs, and nothing else: the tasks are done by another attempt,
// and the replica comes back.
func TestCrashesLoseNothing(t *testing.T) {
	sc := plain(10)
	sc.Platform = workload.Platform{Crashes: 0.05, Startup: constant(2), Seen: uniform{0, 1}}
	var crashes, lost sample
	const horizon = 1500
	for seed := range uint64(40) {
		s := begin(t, sc, poisson(seed, 20, exponential(0.2), horizon), seed)
		for s.Advance() {
			if err := s.sound(); err != nil {
				t.Fatal(err)
			}
		}
		r := s.Result()
		if r.Dead > 0 || r.Unfinished > 100 || r.Starts > 0 || r.MeanWorkers != 10 {
			t.Fatalf("%+v", r)
		}
		crashes, lost = append(crashes, float64(r.Crashes)), append(lost, float64(r.Lost))
	}
	// A replica is ready for 20 s, then starts for 2: of 10 there are 10/22 crashes a second.
	crashes.contains(t, "crashes", horizon*10/22.0, 0.01)
	// A crash loses what the replica has: 4 Erlangs over some 9.1 ready ones.
	lost.contains(t, "attempts lost", horizon*10/22.0*4/9.1, 0.06)
}

// The k-th start-up takes as long under each policy, crashes or not.
func TestStartupsAreDrawnInTheirOrder(t *testing.T) {
	drawn := func(crashes float64, counts ...int) map[int]float64 {
		sc, tasks := byHand(1, 200)
		l := &logged{Law: lognormal{3, 1}, drawn: map[int]float64{}}
		sc.Platform = workload.Platform{Startup: l, Crashes: crashes, Call: uniform{0, 0.5}}
		s := begin(t, sc, tasks, 7)
		l.of = s
		for k := 0; ; k++ {
			s.Scale(counts[k%len(counts)])
			if !s.Advance() {
				return l.drawn
			}
		}
	}
	a, b, c := drawn(0, 3, 1), drawn(0, 9, 5, 2, 1), drawn(0.3, 1, 4)
	n := min(len(a), len(b), len(c))
	if n < 20 {
		t.Fatalf("%d start-ups", n)
	}
	for k := 1; k <= n; k++ {
		if a[k] == 0 || a[k] != b[k] || a[k] != c[k] {
			t.Fatalf("start-up %d took %g s, %g s, %g s", k, a[k], b[k], c[k])
		}
	}
}

// logged notes what was drawn for the k-th start.
type logged struct {
	workload.Law
	of    *Sim
	drawn map[int]float64
}

func (l *logged) Draw(r *rand.Rand) float64 {
	x := l.Law.Draw(r)
	if r == l.of.draw.startup {
		l.drawn[l.of.count.starts] = x
	}
	return x
}
