package signal_test

import (
	"testing"
	"time"

	"farmhand/policy"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/signal"
)

func TestServiceEstimate(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	see := func(running, age float64) float64 {
		f.o.Service, f.o.Running, f.o.RunningAge = 7, policy.Maybe(running), policy.Maybe(age)
		return float64(f.observe().Service)
	}
	exactly(t, "the prior", see(0, 0), 7)
	exactly(t, "ages below the prior", see(4, 3), 7)
	exactly(t, "ages above the prior", see(4, 30), 30)
	f.seconds(1, 20, 2)
	exactly(t, "measured", see(0, 0), 2)
	exactly(t, "ages of busy workers that are nothing special", see(10, 1.2), 2)
	exactly(t, "ages that are", see(10, 8), (20*2+10*8)/30.0)
	f.seconds(10, 20, 3)
	exactly(t, "the short window", see(0, 0), 3)
	f.seconds(20, 1, 4)
	exactly(t, "too few in the short window: the long one", see(0, 0), (20*2+200*3+20*4)/240.0)
	last := see(0, 0)
	f.seconds(200, 0, 0)
	exactly(t, "nothing for a long time: the last value", see(0, 0), last)
	exactly(t, "and what runs", see(3, 50), 50)
	exactly(t, "which may have been cancelled", see(0, 0), last)
}

// The service time becomes ten times as long all of a sudden: the estimate rises
// with the ages, second by second, long before the first of the slow tasks ends.
func TestServiceEstimateFollowsAges(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.seconds(300, 10, 1)
	old := 0.0
	for age := range 10 {
		f.o.Running, f.o.RunningAge = 10, policy.Maybe(age)
		s := float64(f.observe().Service)
		if s < old || s < 1 || s > 10 {
			t.Errorf("age %d: %g after %g", age, s, old)
		}
		old = s
		f.second(0, 0)
	}
	if old < 5 {
		t.Errorf("%g after ten seconds without completions", old)
	}
}

func TestStartupLag(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	ready := func(after time.Duration, n int) policy.Maybe {
		f.now = f.now.Add(after)
		f.o.Ready = n
		return f.observe().StartupLag
	}
	unknown(t, "lag of replicas that nobody asked for", ready(0, 2))
	f.s.Scaled(f.now, 2, 5)
	unknown(t, "lag of what is not ready yet", ready(time.Second, 2))
	exactly(t, "first", float64(ready(time.Second, 3)), 2)
	f.s.Scaled(f.now, 5, 6)
	exactly(t, "oldest first", float64(ready(time.Second, 5)), (2+3+3)/3.0)
	exactly(t, "then the next", float64(ready(time.Second, 6)), (2+3+3+2)/4.0)
	f.s.Scaled(f.now, 6, 8)
	f.s.Scaled(f.now, 8, 6) // not awaited any more
	exactly(t, "came by itself", float64(ready(9*time.Second, 9)), 2.5)
	f.s.Scaled(f.now, 9, 10)
	exactly(t, "nobody looked", float64(ready(time.Minute, 10)), 2.5)
	f.s.Scaled(f.now, 10, 11)
	exactly(t, "the clock was set", float64(ready(-time.Hour, 11)), 2.5)
	for i := range 1000 {
		f.s.Scaled(f.now, 11+i, 12+i) // in vain
	}
	ready(time.Second, 11)
	if n := len(f.s.State().Startup.Asked); n > 64 {
		t.Errorf("%d calls remembered", n)
	}
}

func TestNewObservation(t *testing.T) {
	settings := skeleton.DefaultSettings()
	settings.DeadlineFactor, settings.Service, settings.Max = 2, time.Second, 9
	o := signal.NewObservation(skeleton.Farm{Name: "w", Settings: settings, Ready: 2, Target: 5}, epoch)
	if o.Deadline != 2 || o.Service != 1 || o.Starting != 3 || o.Desired != 5 || o.Interval != 2 || o.Timeout != 55 || o.Max != 9 {
		t.Errorf("%+v", o)
	}
	for name, m := range map[string]policy.Maybe{"waiting": o.Waiting, "draining": o.Draining, "cpu": o.CPU, "overdue": o.Overdue} {
		unknown(t, name, m)
	}
	signal.Gauge(&o, &ledger.Gauges{Counts: ledger.Counts{Waiting: 7, Leased: 3, Delayed: 1}, OldestWait: 1500 * time.Millisecond, Overdue: 2})
	if o.Waiting != 7 || o.Running != 3 || o.Delayed != 1 || o.OldestWait != 1.5 || o.Overdue != 2 {
		t.Errorf("%+v", o)
	}
}

// BenchmarkTick is what an interval of two seconds costs: two seconds added, one
// observation.
func BenchmarkTick(b *testing.B) {
	f := newFarm(b, 2*time.Second)
	var busy signal.Tally
	for i := range 200 {
		x := 0.01 + float64(i%70)/500
		busy.Wait.Add(x / 3)
		busy.Service.Add(x)
		busy.Sojourn.Add(1.3 * x)
	}
	r := signal.Reading{Seconds: make([]signal.Second, 1)}
	second := func() {
		f.now = f.now.Add(time.Second)
		f.count.At = f.now
		f.count.Submitted += 200
		f.count.Done += 200
		r.Now, r.Seconds[0] = f.now, signal.Second{Unix: f.now.Unix(), Snapshot: f.count, Tally: busy}
		f.s.Add(&r)
	}
	for range 2000 { // until nothing grows any more
		second()
	}
	b.ReportAllocs()
	for b.Loop() {
		second()
		second()
		f.o.At = f.now
		f.s.Observe(&f.o)
	}
}
