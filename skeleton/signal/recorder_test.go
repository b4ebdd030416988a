package signal_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/dispatch"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/signal"
)

var _ dispatch.Observer = (*signal.Recorder)(nil)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// outcome of a task that was accepted, waited 2 s for its lease and 1 s for its
// worker, and took 3 s. The server's clock is an hour off ours.
func outcome(kind ledger.Kind, now time.Time) ledger.Outcome {
	accepted := now.Add(time.Hour)
	o := ledger.Outcome{Kind: kind, Started: now.Add(-3500 * time.Millisecond), Waited: time.Second, Service: 3 * time.Second}
	o.Lease.Accepted, o.Lease.Taken = accepted, accepted.Add(2*time.Second)
	return o
}

func TestRecorderCounts(t *testing.T) {
	r := signal.NewRecorder(func() time.Time { return epoch })
	r.Taken("a", 10)
	r.Taken("a", 2)
	r.Answered("a", skeleton.IsBusy, 0)
	r.Answered("a", skeleton.IsResult, time.Second)
	dead := outcome(ledger.Rejected, epoch)
	dead.Status = 422
	r.Settled("a", []ledger.Outcome{
		outcome(ledger.Success, epoch), outcome(ledger.Success, epoch), outcome(ledger.Success, epoch), outcome(ledger.Success, epoch),
		outcome(ledger.Failed, epoch), outcome(ledger.TimedOut, epoch), outcome(ledger.Failed, epoch),
		outcome(ledger.Lost, epoch), outcome(ledger.Released, epoch), dead, outcome(ledger.Rejected, epoch),
	}, []ledger.Verdict{"done", "done", ledger.Refused, "cancelled",
		"delayed", "dead", ledger.Refused,
		"waiting", "waiting", "dead", "dead"}, 7)
	r.Settled("b", nil, nil, 3)
	d := r.Drain()
	if len(d) != 1 {
		t.Errorf("%d farms", len(d))
	}
	a := d["a"]
	if a.Starts != 12 || a.Busy != 1 || a.Failed != 3 || a.Lost != 1 {
		t.Errorf("%+v", a)
	}
	for name, x := range map[string]struct {
		h    signal.Hist
		want float64 // each of two tasks
	}{"wait": {a.Wait, 3}, "service": {a.Service, 3}, "sojourn": {a.Sojourn, 6.5}} {
		if x.h.N != 2 || math.Abs(x.h.Sum-2*x.want) > 1e-9 || x.h.Max != x.want {
			t.Errorf("%s: %+v, want %g twice", name, x.h, x.want)
		}
	}
	if again := r.Drain(); len(again) != 0 {
		t.Errorf("drained twice: %+v", again["a"])
	}
}

// Many goroutines count while somebody drains: nothing is lost, nothing counted
// twice, and however much it is, it stays small.
func TestRecorderIsSafeAndSmall(t *testing.T) {
	r := signal.NewRecorder(func() time.Time { return epoch })
	const workers, rounds = 8, 500
	total := signal.Deltas{}
	var counting, draining sync.WaitGroup
	stop := make(chan struct{})
	draining.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				total.Merge(r.Drain())
			}
		}
	})
	for w := range workers {
		counting.Go(func() {
			for i := range rounds {
				o := outcome(ledger.Success, epoch)
				o.Service = time.Duration(1+w*rounds+i) * 977 * time.Microsecond
				r.Taken("f", 1)
				r.Answered("f", skeleton.IsBusy, 0)
				r.Settled("f", []ledger.Outcome{o}, []ledger.Verdict{"done"}, 0)
			}
		})
	}
	counting.Wait()
	close(stop)
	draining.Wait()
	total.Merge(r.Drain())
	f := total["f"]
	if f.Starts != workers*rounds || f.Busy != workers*rounds || f.Service.N != workers*rounds || f.Events() != 3*workers*rounds {
		t.Errorf("%d starts, %d busy, %d served", f.Starts, f.Busy, f.Service.N)
	}
	if len(f.Service.Bins) > signal.Bins {
		t.Errorf("%d bins", len(f.Service.Bins))
	}
}

func BenchmarkRecorder(b *testing.B) {
	r := signal.NewRecorder(time.Now)
	outcomes, verdicts := make([]ledger.Outcome, 50), make([]ledger.Verdict, 50)
	for i := range outcomes {
		outcomes[i], verdicts[i] = outcome(ledger.Success, time.Now()), "done"
		outcomes[i].Service = time.Duration(i+1) * time.Millisecond
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Taken("f", 50)
		r.Settled("f", outcomes, verdicts, 0)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(50*b.N), "ns/task")
}
