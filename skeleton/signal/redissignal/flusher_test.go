package redissignal_test

import (
	"context"
	"testing"
	"time"

	"farmhand/internal/redistest"
	"farmhand/skeleton/signal"
	"farmhand/skeleton/signal/redissignal"
)

func starts(f *fixture) (n int) {
	f.t.Helper()
	for _, s := range f.read(0).Seconds {
		n += s.Starts
	}
	return n
}

func TestFlusher(t *testing.T) {
	both(t, func(f *fixture) {
		rec, tick := signal.NewRecorder(time.Now), make(chan time.Time)
		x, err := redissignal.Start(redissignal.Config{Store: f.store, Recorder: rec, Tick: tick,
			Farms: func() []string { return []string{farm, "quiet"} }})
		f.must(err)
		rec.Taken(farm, 3)
		tick <- time.Now()
		tick <- time.Now() // taken when the first flush is over
		if n := starts(f); n != 3 {
			f.t.Errorf("%d starts", n)
		}
		r, err := f.store.Read(context.Background(), map[string]int64{"quiet": 0})
		f.must(err)
		if len(r["quiet"].Seconds) != 1 {
			f.t.Error("a quiet farm has no heartbeat")
		}
		rec.Taken(farm, 4)
		f.must(x.Stop(context.Background()))
		f.must(x.Stop(context.Background()))
		if n := starts(f); n != 7 {
			f.t.Errorf("%d starts: what was counted last is gone", n)
		}
	})
}

// Redis away: what was counted comes a little later, or not at all.
func TestFlusherOutlivesOutages(t *testing.T) {
	s := redistest.Start(t)
	f := setup(t, redistest.Client(t, s))
	rec, now := signal.NewRecorder(time.Now), time.Unix(1e9, 0)
	x, err := redissignal.NewFlusher(redissignal.Config{Store: f.store, Recorder: rec, Farms: func() []string { return []string{farm} }})
	f.must(err)
	second := func(n int) {
		rec.Taken(farm, n)
		now = now.Add(time.Second)
		x.FlushAt(now)
	}
	outage := func(seconds, each int) {
		s.Kill()
		for range seconds {
			second(each)
		}
		f.must(s.Run())
		second(1)
	}
	second(0)
	outage(3, 10)
	if n := starts(f); n != 31 || x.Dropped() != 0 {
		t.Errorf("%d starts, %d dropped after 3 s", n, x.Dropped())
	}
	outage(8, 100)
	// The first five seconds were given up when the sixth came, the others not.
	if n := starts(f); n != 31+3*100+1 || x.Dropped() != 500 {
		t.Errorf("%d starts, %d dropped after 8 s", n, x.Dropped())
	}
}

// A server that hangs does not keep Stop longer than its caller wants.
func TestStopDoesNotWaitForEver(t *testing.T) {
	f := setup(t, redistest.Client(t, redistest.Start(t)))
	tick, hangs, goOn := make(chan time.Time), make(chan struct{}), make(chan struct{})
	x, err := redissignal.Start(redissignal.Config{Store: f.store, Recorder: signal.NewRecorder(time.Now), Tick: tick, Farms: func() []string {
		hangs <- struct{}{}
		<-goOn
		return nil
	}})
	f.must(err)
	tick <- time.Now()
	<-hangs
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := x.Stop(ctx); err == nil {
		t.Error("stopped while a flush is under way")
	}
	close(goOn)
	<-hangs
	f.must(x.Stop(context.Background()))
}

func TestStartNeedsItsParts(t *testing.T) {
	if _, err := redissignal.Start(redissignal.Config{}); err == nil {
		t.Error("started without a store")
	}
}
