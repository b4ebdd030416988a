package memledger_test

import (
	"context"
	"strconv"
	"testing"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/memledger"
)

const benchTasks = 1_000_000

// fill opens a farm with a window of 50 and n waiting tasks of 8 bytes.
func fill(b *testing.B, n int, shape func(i int, t *skeleton.NewTask)) ledger.Ledger {
	b.Helper()
	ctx := context.Background()
	store := memledger.New(memledger.Options{Limits: ledger.Limits{StageRuns: benchTasks}})
	settings := skeleton.DefaultSettings()
	settings.Slots = 50
	if err := ledger.Publish(ctx, store, skeleton.Roster{Farms: []skeleton.Farm{{Name: "w", Settings: settings, Ready: 1, Target: 1}}}); err != nil {
		b.Fatal(err)
	}
	l := store.Farm("w")
	s, err := l.Stage(ctx, ledger.Submission{Job: skeleton.Job{ID: "w~1"}})
	if err != nil {
		b.Fatal(err)
	}
	tasks := make([]skeleton.NewTask, 0, ledger.MaxBatch)
	for i := range n {
		t := skeleton.NewTask{Body: []byte("12345678"), Class: skeleton.DefaultClass}
		if shape != nil {
			shape(i, &t)
		}
		if tasks = append(tasks, t); len(tasks) == cap(tasks) || i == n-1 {
			if err := s.Add(ctx, tasks); err != nil {
				b.Fatal(err)
			}
			tasks = tasks[:0]
		}
	}
	if _, err := s.Commit(ctx); err != nil {
		b.Fatal(err)
	}
	return l
}

// drain takes and completes n tasks, a window at a time.
func drain(b *testing.B, l ledger.Ledger, n int) {
	ctx := context.Background()
	answer := []byte("87654321")
	outcomes := make([]ledger.Outcome, 0, ledger.MaxBatch)
	for done := 0; done < n; {
		t, err := l.Take(ctx, "bench", ledger.MaxBatch)
		if err != nil || len(t.Leases) == 0 {
			b.Fatalf("nothing taken: %v", err)
		}
		outcomes = outcomes[:0]
		for i := range t.Leases {
			outcomes = append(outcomes, ledger.Outcome{Lease: t.Leases[i], Kind: ledger.Success, Status: 200, Body: answer})
		}
		s, err := l.Settle(ctx, outcomes, 0)
		if err != nil || s.Verdicts[0] != "done" {
			b.Fatalf("not settled: %v", err)
		}
		done += len(outcomes)
	}
}

func benchmark(b *testing.B, shape func(i int, t *skeleton.NewTask)) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		l := fill(b, benchTasks, shape)
		b.StartTimer()
		drain(b, l, benchTasks)
	}
	b.ReportMetric(float64(b.N)*benchTasks/b.Elapsed().Seconds(), "tasks/s")
}

// One goroutine takes and completes a million tasks of one job.
func BenchmarkTakeComplete(b *testing.B) { benchmark(b, nil) }

// The same with a thousand tenants, each task an entry of its own.
func BenchmarkTakeCompleteTenants(b *testing.B) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = "tenant-" + strconv.Itoa(i)
	}
	shape := func(i int, t *skeleton.NewTask) { t.Tenant = names[i/10%len(names)] }
	benchmark(b, shape)
}
