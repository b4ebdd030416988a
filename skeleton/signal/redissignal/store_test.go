package redissignal_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"farmhand/internal/redistest"
	"farmhand/policy"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/signal"
)

// What two dispatchers count in one second is one second's count, bin by bin.
func TestDispatchersMerge(t *testing.T) {
	both(t, func(f *fixture) {
		a, b := tally(40, 0.007), tally(7, 1.3)
		f.flush(a)
		f.flush(b)
		f.pass(time.Second)
		f.flush(tally(1, 1))
		r := f.read(0)
		if len(r.Seconds) != 2 || r.Seconds[1].Unix != r.Seconds[0].Unix+1 {
			f.t.Fatalf("%+v", r)
		}
		want := a
		want.Merge(&b)
		if d := cmp.Diff(want, r.Seconds[0].Tally, nearly); d != "" {
			f.t.Error(d)
		}
		if age := r.Now.Sub(r.Seconds[1].At); age < -500*time.Millisecond || age > 500*time.Millisecond || r.Seconds[1].At.Unix() != r.Seconds[1].Unix {
			f.t.Errorf("a snapshot of %s is in second %d, now is %s", r.Seconds[1].At, r.Seconds[1].Unix, r.Now)
		}
		if r := f.read(r.Seconds[0].Unix); len(r.Seconds) != 1 || r.Seconds[0].Starts != 1 {
			f.t.Errorf("since the first second: %+v", r)
		}
	})
}

// A second without a flush does not exist; one with an empty flush is quiet.
func TestHeartbeat(t *testing.T) {
	both(t, func(f *fixture) {
		f.flush(tally(3, 1))
		f.pass(time.Second)
		f.flush(signal.Tally{})
		f.pass(3 * time.Second)
		r := f.read(0)
		if len(r.Seconds) != 2 || r.Seconds[1].Events() != 0 {
			f.t.Fatalf("%+v", r)
		}
		if gap := r.Now.Unix() - r.Seconds[1].Unix; gap != 3 {
			f.t.Errorf("the silence is %d s long", gap)
		}
		none := f.read(r.Now.Unix())
		if len(none.Seconds) != 0 || none.Now.IsZero() {
			f.t.Errorf("%+v", none)
		}
	})
}

// The counters in a second are the ledger's.
func TestSnapshotsAreTheLedgers(t *testing.T) {
	both(t, func(f *fixture) {
		ctx, l := context.Background(), ledgerOf(f)
		submit(f, l, 10)
		taken, err := l.TakeAny(ctx, "me", 4)
		f.must(err)
		_, err = l.Settle(ctx, []ledger.Outcome{{Lease: taken.Leases[0], Kind: ledger.Success}, {Lease: taken.Leases[1], Kind: ledger.Rejected},
			{Lease: taken.Leases[2], Kind: ledger.Failed, Delay: time.Minute}}, 0)
		f.must(err)
		f.flush(signal.Tally{})
		g, err := l.Gauges(ctx)
		f.must(err)
		s := f.read(0).Seconds[0].Snapshot
		if s.Counts != g.Counts || s.Timed != g.Timed || s.Late != g.Late || s.Lapsed != g.Lapsed || s.Submitted != 10 || s.Done != 1 || s.Leased != 1 || !s.Conserved() {
			f.t.Errorf("%+v, the ledger says %+v", s, g)
		}
	})
}

// A job that expires takes its tasks out of the ledger's counters; what was ever
// submitted or done stays.
func TestExpiredJobsStayCounted(t *testing.T) {
	both(t, func(f *fixture) {
		ctx, l := context.Background(), ledgerOf(f)
		submit(f, l, 10)
		taken, err := l.TakeAny(ctx, "me", 10)
		f.must(err)
		var outcomes []ledger.Outcome
		for _, lease := range taken.Leases {
			outcomes = append(outcomes, ledger.Outcome{Lease: lease, Kind: ledger.Success})
		}
		_, err = l.Settle(ctx, outcomes, 0)
		f.must(err)
		f.flush(signal.Tally{})
		f.pass(48 * time.Hour)
		for more := true; more; {
			more, err = l.Sweep(ctx)
			f.must(err)
		}
		g, err := l.Gauges(ctx)
		f.must(err)
		f.flush(signal.Tally{})
		s := f.read(0).Seconds[0].Snapshot
		if g.Submitted != 0 || s.Submitted != 10 || s.Done != 10 || s.Dead != 0 {
			f.t.Errorf("%+v, the ledger says %+v", s, g)
		}
	})
}

// From Redis to what a policy sees: a busy second, a quiet one, and silence.
func TestObserving(t *testing.T) {
	both(t, func(f *fixture) {
		l, series := ledgerOf(f), signal.NewSeries(signal.State{})
		observe := func() *policy.Observation {
			r := f.read(series.Since())
			series.Add(&r)
			o := signal.NewObservation(skeleton.Farm{Name: farm, Settings: skeleton.DefaultSettings()}, r.Now)
			o.Waiting, o.Running = 0, 0
			series.Observe(&o)
			return &o
		}
		second := func(tasks int) {
			f.pass(time.Second)
			if tasks > 0 {
				submit(f, l, tasks)
			}
			f.flush(signal.Tally{Starts: tasks})
		}
		f.flush(signal.Tally{})
		second(10)
		second(20)
		o := observe()
		if o.Stale() || o.Last.Arrivals != o.Last.Starts || math.Abs(o.Last.Arrivals-30) > 5 || o.Last.Covered < 1.9 {
			f.t.Errorf("busy: %+v, age %g", o.Last, o.Age)
		}
		second(0)
		second(0)
		if o := observe(); o.Stale() || o.Last.Arrivals > 1 || o.Last.Covered < 1.9 || o.Short.Arrivals != 30 {
			f.t.Errorf("quiet: %+v, age %g", o.Last, o.Age)
		}
		f.pass(8 * time.Second)
		if o := observe(); !o.Stale() || o.Last.Covered != 0 || o.Last.Rate().Known() {
			f.t.Errorf("silent: %+v, age %g", o.Last, o.Age)
		}
	})
}

// A clock that is set back: the seconds come again, with the counters of now.
func TestClockGoesBack(t *testing.T) {
	both(t, func(f *fixture) {
		series := signal.NewSeries(signal.State{})
		observe := func() policy.Observation {
			r := f.read(series.Since())
			series.Add(&r)
			o := policy.Observation{At: r.Now, Interval: 2, Slots: 1}
			series.Observe(&o)
			return o
		}
		l := ledgerOf(f)
		for range 5 {
			submit(f, l, 10)
			f.flush(signal.Tally{Starts: 10})
			f.pass(time.Second)
		}
		observe()
		f.pass(-4 * time.Second)
		if o := observe(); o.Last.Covered != 0 {
			f.t.Errorf("just after it was set back: %+v", o.Last)
		}
		for range 2 {
			submit(f, l, 10)
			f.flush(signal.Tally{Starts: 10})
			f.pass(time.Second)
		}
		if o := observe(); o.Last.Arrivals != 10 || o.Last.Covered > 1.2 {
			f.t.Errorf("later: %+v", o.Last)
		}
	})
}

// Nothing is kept for ever, and no more is read than 15 minutes.
func TestBucketsExpire(t *testing.T) {
	both(t, func(f *fixture) {
		f.flush(tally(5, 1))
		keys, err := f.rdb.Keys(context.Background(), "*").Result()
		f.must(err)
		if len(keys) != 1 || !strings.HasPrefix(keys[0], "farmhand:{"+farm+"}:sec:") {
			f.t.Fatalf("keys %v", keys)
		}
		ttl, err := f.rdb.TTL(context.Background(), keys[0]).Result()
		f.must(err)
		if ttl <= signal.Kept || ttl > signal.Kept+time.Minute {
			f.t.Errorf("kept for %s", ttl)
		}
		f.pass(signal.Kept + 2*time.Second)
		if r := f.read(0); len(r.Seconds) != 0 {
			f.t.Errorf("%d seconds older than %s", len(r.Seconds), signal.Kept)
		}
	})
}

// However many durations there are, a bucket has no more fields than bins.
func TestBucketsAreBounded(t *testing.T) {
	f := setup(t, redistest.Client(t, redistest.Start(t)))
	for k := range 5 {
		var ta signal.Tally
		for i := range 5000 {
			x := math.Exp(float64(i)/5000*40 - 20 + float64(k))
			ta.Wait.Add(x)
			ta.Service.Add(x)
			ta.Sojourn.Add(x)
		}
		f.flush(ta)
	}
	s := f.read(0).Seconds[0]
	if s.Service.N != 25_000 || len(s.Service.Bins) != signal.Bins {
		t.Errorf("%d durations in %d bins", s.Service.N, len(s.Service.Bins))
	}
}

// A farm whose bucket is broken does not hold up the others; a server that was
// restarted knows no scripts, and nobody notices.
func TestFarmsDoNotHoldUpOneAnother(t *testing.T) {
	both(t, func(f *fixture) {
		ctx := context.Background()
		f.must(f.rdb.Set(ctx, "farmhand:{bad}:n", "no hash", 0).Err())
		d := signal.Deltas{"bad": {Starts: 1}, "good": {Starts: 2}}
		if err := f.store.Flush(ctx, d); err == nil || !strings.Contains(err.Error(), "bad") {
			f.t.Errorf("error %v", err)
		}
		if len(d) != 1 || d["bad"] == nil {
			f.t.Errorf("left: %v", d)
		}
		f.must(f.rdb.ScriptFlush(ctx).Err())
		r, err := f.store.Read(ctx, map[string]int64{"good": 0, "bad": 0, "none": 0})
		f.must(err)
		if len(r) != 3 || len(r["good"].Seconds) != 1 || r["good"].Seconds[0].Starts != 2 || len(r["none"].Seconds) != 0 {
			f.t.Errorf("%+v", r)
		}
	})
}

func TestUnavailable(t *testing.T) {
	s := redistest.Start(t)
	f := setup(t, redistest.Client(t, s))
	s.Kill()
	d := signal.Deltas{}
	for i := range 20 {
		d.Of(fmt.Sprint(i)).Starts = 1
	}
	err := f.store.Flush(context.Background(), d)
	if err == nil || len(d) != 20 || strings.Count(err.Error(), "\n") > 3 {
		t.Errorf("%d left, error %v", len(d), err)
	}
	if r, err := f.store.Read(context.Background(), map[string]int64{farm: 0}); err == nil || len(r) != 0 {
		t.Errorf("%v %v", r, err)
	}
}
