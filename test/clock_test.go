package test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"farmhand/controller"
)

// shifted runs a Redis whose clock step moves. It is one in memory: libfaketime
// works neither for a redis-server with jemalloc nor for Go.
func shifted(t *testing.T) (addr string, step func(d time.Duration)) {
	t.Helper()
	m := miniredis.RunT(t)
	var offset atomic.Int64
	tell := func() { m.SetTime(time.Now().Add(time.Duration(offset.Load()))) }
	tell()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(2 * time.Millisecond) // it does not run by itself
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				tell()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return m.Addr(), func(d time.Duration) { offset.Store(int64(d)) }
}

// The clock that leases and signals go by, that of Redis, is set ahead by 30 s and
// back by a minute, under load, with two controllers at hand. A lease that is over
// by that clock changes hands; never do two controllers decide under one fence, the
// farm keeps what it has, and decisions go on (P78: its offsets, at the one clock
// that counts; clocks of the controllers themselves cannot be set for a process,
// and no lease depends on them).
func TestClockSteps(t *testing.T) {
	t.Parallel()
	addr, step := shifted(t)
	f := steerOn(t, addr, config{steered: true})
	defer f.explained("worker")
	a, b := f.control(""), f.control("")
	f.begun()
	end := f.stream("worker", 100*time.Millisecond, "400ms")
	until(t, patience, "the farm is scaled", func() bool { return f.desired("worker") >= 5 })
	count := f.desired("worker")
	for _, offset := range []time.Duration{30 * time.Second, -30 * time.Second, 0} {
		step(offset)
		begun := time.Now()
		f.more(4, "signals are known", func(r *controller.Receipt) bool { return !r.Observation.Stale() })
		d := time.Since(begun)
		if t.Logf("at %s, four good decisions within %s", offset, d.Round(time.Millisecond)); d > 45*time.Second {
			t.Errorf("at %s, four good decisions took %s", offset, d)
		}
		if n := f.desired("worker"); n < count {
			t.Errorf("at %s the farm has gone down from %d to %d", offset, count, n)
		}
		count = f.desired("worker")
	}
	end()
	owners := map[int64]string{}
	list := f.receipts("worker", all)
	for i := range list {
		r := &list[i]
		if err := r.Replay(); err != nil {
			t.Error(err)
		}
		if owner := owners[r.Fence]; owner != "" && owner != r.Controller {
			t.Errorf("receipt %d: fence %d is that of %s and of %s", r.Seq, r.Fence, owner, r.Controller)
		}
		owners[r.Fence] = r.Controller
		if r.Controller != a.owner && r.Controller != b.owner {
			t.Errorf("receipt %d is of %s", r.Seq, r.Controller)
		}
		if i > 0 && (r.Seq <= list[i-1].Seq || r.Fence < list[i-1].Fence) {
			t.Errorf("receipt %d (fence %d) follows %d (fence %d)", r.Seq, r.Fence, list[i-1].Seq, list[i-1].Fence)
		}
	}
	t.Logf("%d fences", len(owners))
	f.sound()
}
