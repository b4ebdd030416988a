package ledgertest

import (
	"fmt"
	"os"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

var scaleTests = []test{
	{name: "ten thousand tenants", fn: func(b *bench) {
		const n = 10_000
		list := make([]skeleton.NewTask, 0, 3*n)
		for i := range cap(list) {
			list = append(list, skeleton.NewTask{Body: []byte("12345678"), Tenant: fmt.Sprint(i % n)})
		}
		for at := 0; at < len(list); at += n {
			b.submit(list[at : at+n]...)
		}
		b.counts(ledger.Counts{Submitted: 3 * n, Waiting: 3 * n})
		for at := 0; at < 2*n; {
			leases := b.take(ledger.MaxBatch)
			for _, l := range leases {
				if l.Tenant != fmt.Sprint(at%n) {
					b.Fatalf("turn %d went to tenant %s", at, l.Tenant)
				}
				at++
			}
			b.settles("done", ledger.Outcome{Kind: ledger.Success, Body: []byte("1")}, leases...)
		}
	}},
	{name: "a job of a hundred thousand tasks", fn: func(b *bench) { big(b, 100_000) }},
	{name: "a million waiting tasks", limits: ledger.Limits{QueueTasks: 2_000_000}, fn: func(b *bench) {
		if os.Getenv("FARMHAND_LONG") == "" {
			b.Skip("set FARMHAND_LONG=1 to run it")
		}
		big(b, 1_000_000)
	}},
}

// big submits a job of n tasks and takes from it in between.
func big(b *bench, n int) {
	s, err := b.l.Stage(b.ctx, ledger.Submission{Job: skeleton.Job{ID: b.id()}})
	b.must(err)
	for at := 0; at < n; at += 10_000 {
		b.must(s.Add(b.ctx, tasks("x", 10_000)))
	}
	r, err := s.Commit(b.ctx)
	b.must(err)
	b.equal("tasks", r.Tasks, n)
	b.submit(tasks("y", 10, tenant("Y"))...)
	taken := 0
	for range 20 {
		leases := b.take(ledger.MaxBatch)
		b.settles("done", ledger.Outcome{Kind: ledger.Success, Body: []byte("1")}, leases...)
		taken += len(leases)
	}
	b.equal("taken", taken, 20*ledger.MaxBatch)
	j, err := b.l.Cancel(b.ctx, r.Job.ID)
	b.must(err)
	b.equal("cancelled", j.Cancelled, n-taken+10)
	b.counts(ledger.Counts{Submitted: n + 10, Done: taken, Cancelled: n - taken + 10})
	b.equal("results", len(b.results(r.Job.ID, true)), taken-10)
}
