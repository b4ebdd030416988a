package dispatch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/dispatch"
	"farmhand/skeleton/ledger"
)

// endless is a ledger that always has work and takes every outcome: what is
// left is the engine itself.
type endless struct {
	*store
	window, left, live atomic.Int64
}

func (e *endless) Farm(string) ledger.Ledger { return e }

func (e *endless) Take(_ context.Context, _ string, n int) (ledger.Taken, error) {
	for {
		live, left := e.live.Load(), e.left.Load()
		k := min(int64(n), e.window.Load()-live, left)
		if k <= 0 {
			return ledger.Taken{Window: int(e.window.Load()), Live: int(live), Waiting: int(left)}, nil
		}
		if !e.live.CompareAndSwap(live, live+k) {
			continue
		}
		t := ledger.Taken{Window: int(e.window.Load()), Live: int(live + k), Waiting: int(e.left.Add(-k)), Leases: make([]ledger.Lease, k)}
		for i := range t.Leases {
			t.Leases[i] = ledger.Lease{Task: skeleton.Task{Farm: farmName, Job: "echo~1", Attempt: 1}, Ref: "r"}
			t.Leases[i].Body = []byte("x")
		}
		return t, nil
	}
}

func (e *endless) Settle(_ context.Context, outcomes []ledger.Outcome, _ int) (ledger.Settled, error) {
	live := e.live.Add(-int64(len(outcomes)))
	return ledger.Settled{Window: int(e.window.Load()), Live: int(live), Waiting: int(e.left.Load()), Verdicts: make([]ledger.Verdict, len(outcomes))}, nil
}

func (e *endless) Exchange(ctx context.Context, owner string, outcomes []ledger.Outcome, busy, n int) (ledger.Settled, ledger.Taken, error) {
	s, _ := e.Settle(ctx, outcomes, busy)
	t, err := e.Take(ctx, owner, n)
	return s, t, err
}

// BenchmarkEngine is the engine's own cost per task, window 50: no-op ledger,
// no-op worker.
func BenchmarkEngine(b *testing.B) {
	e := &endless{store: newStore(50, 0)}
	e.window.Store(50)
	e.left.Store(int64(b.N))
	var calls atomic.Int64
	done := make(chan struct{})
	w := worker(func(context.Context, skeleton.Task, []byte) skeleton.Call {
		if calls.Add(1) == int64(b.N) {
			close(done)
		}
		return okay
	})
	b.ReportAllocs()
	b.ResetTimer()
	d, err := dispatch.Start(dispatch.Config{Store: e, Caller: w, Owner: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	<-done
	b.StopTimer()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	if err := d.Stop(ctx); err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}
