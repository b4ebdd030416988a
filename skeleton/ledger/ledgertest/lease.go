package ledgertest

import (
	"sync"
	"sync/atomic"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

var leaseTests = []test{
	{name: "a lease tells the task", fn: func(b *bench) {
		nt := skeleton.NewTask{Body: []byte("body"), Type: "text/plain", Key: "key", Class: 3, Tenant: "T", Deadline: time.Minute,
			Timeout: 7 * time.Second, Attempts: 4, NoRetry: true, Stage: "map", Parent: "p"}
		id := b.submit(task("first"), nt)
		l := b.one()
		b.equal("body", string(l.Body), "body")
		b.equal("fields", []any{l.Type, l.Key, l.Class, l.Tenant, l.Timeout, l.Attempts, l.NoRetry, l.Stage, l.Parent, l.Farm, l.Job, l.Index, l.Size, l.Attempt, l.Lost},
			[]any{"text/plain", "key", 3, "T", 7 * time.Second, 4, true, "map", "p", b.farm, id, 1, 4, 1, 0})
		b.equal("times", []any{l.Accepted.Equal(b.job(id).Created), l.Due.Sub(l.Accepted), l.Taken.Before(l.Accepted)}, []any{true, time.Minute, false})
		if l.Ref == "" || l.Fence <= 0 {
			b.Fatalf("no ref or fence: %q %d", l.Ref, l.Fence)
		}
		l = b.one()
		b.equal("defaults", []any{l.Attempts, l.Due.IsZero(), l.NoRetry}, []any{skeleton.DefaultAttempts, true, false})
	}},
	{name: "bodies of all sizes", fn: func(b *bench) {
		sizes := []int{0, 1, ledger.MaxInline, ledger.MaxInline + 1, 300_000}
		var list []skeleton.NewTask
		for i, n := range sizes {
			list = append(list, skeleton.NewTask{Body: pattern(i, n)})
		}
		id := b.submit(list...)
		for i := range list { // the caller's again
			clear(list[i].Body)
		}
		for i, l := range b.take(len(sizes)) {
			body, err := b.l.Body(b.ctx, l)
			b.must(err)
			if string(body) != string(pattern(i, sizes[i])) || l.Size != sizes[i] {
				b.Fatalf("task %d: %d bytes came back, size %d, of %d", i, len(body), l.Size, sizes[i])
			}
			answer := pattern(i+7, sizes[i])
			b.settles("done", ledger.Outcome{Kind: ledger.Success, Body: answer}, l)
			clear(answer)
		}
		for i, r := range b.results(id, true) {
			if string(r.Body) != string(pattern(i+7, sizes[i])) {
				b.Fatalf("result %d: %d bytes came back of %d", i, len(r.Body), sizes[i])
			}
		}
	}},
	{name: "fences grow with every hand-out of a task", fn: func(b *bench) {
		b.submit(task("x"))
		var last int64
		for range 5 {
			l := b.one()
			if l.Fence <= last {
				b.Fatalf("fence %d after %d", l.Fence, last)
			}
			last = l.Fence
			b.settles("waiting", ledger.Outcome{Kind: ledger.Released}, l)
		}
	}},
	{name: "a lease lapses after its time", fn: func(b *bench) {
		b.submit(task("x"))
		old := b.one()
		b.advance(ledger.LeaseTime - time.Second)
		b.equal("too early", len(b.take(1)), 0)
		b.advance(time.Second)
		l := b.one()
		b.equal("lost, attempt", []int{l.Lost, l.Attempt}, []int{1, 1})
		b.equal("lapsed", b.gauges().Lapsed, 1)
		b.settles(ledger.Refused, ledger.Outcome{Kind: ledger.Success}, old)
		b.equal("refused", b.gauges().Refused, 1)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l)
	}},
	{name: "lapses spend the lost budget", fn: func(b *bench) {
		id := b.submit(task("x"))
		for i := range skeleton.LostBudget + 1 {
			b.equal("lost", b.one().Lost, i)
			b.advance(ledger.LeaseTime)
		}
		b.sweep()
		b.equal("waiting", len(b.take(1)), 0)
		b.equal("reason", b.letter().Reason, "worker lost")
		b.equal("dead", b.job(id).Dead, 1)
	}},
	{name: "a lapse without retry is final", fn: func(b *bench) {
		b.submit(tasks("x", 1, noRetry)...)
		b.one()
		b.advance(ledger.LeaseTime)
		b.equal("waiting", len(b.take(1)), 0)
		b.equal("reason", b.letter().Reason, "unknown outcome")
	}},
	{name: "renewing keeps a lease", fn: func(b *bench) {
		b.submit(task("x"))
		l := b.one()
		for range 4 {
			b.advance(ledger.LeaseTime * 2 / 3)
			b.equal("standing", b.renew(l), ledger.Held)
			b.equal("others get it", len(b.take(1)), 0)
		}
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l)
		b.equal("standing of a settled one", b.renew(l), ledger.WasLost)
	}},
	{name: "renewing tells what was lost", fn: func(b *bench) {
		b.submit(tasks("x", 2)...)
		old := b.take(2)
		b.advance(ledger.LeaseTime)
		l := b.one()
		standings, err := b.l.Renew(b.ctx, []ledger.Lease{old[0], old[1], l})
		b.must(err)
		b.equal("standings", standings, []ledger.Standing{ledger.WasLost, ledger.WasLost, ledger.Held})
	}},
	{name: "renewing tells what was cancelled, and keeps the lease", fn: func(b *bench) {
		id := b.submit(task("x"))
		l := b.one()
		_, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		for range 3 {
			b.advance(ledger.LeaseTime * 2 / 3)
			b.equal("standing", b.renew(l), ledger.WasCancel)
		}
		b.equal("live", b.gauges().Live, 1)
		b.settles("cancelled", ledger.Outcome{Kind: ledger.Success}, l)
		b.equal("live", b.gauges().Live, 0)
	}},
	{name: "renewing tells what is over its time, and keeps the lease", fn: func(b *bench) {
		b.submit(task("x"))
		l := b.one()
		l.Timeout = 12 * time.Second
		b.advance(10 * time.Second)
		b.equal("standing", b.renew(l), ledger.Held)
		b.advance(10 * time.Second)
		b.equal("standing", b.renew(l), ledger.HasTimeout)
		b.advance(10 * time.Second)
		b.equal("others get it", len(b.take(1)), 0)
		b.settles("waiting", ledger.Outcome{Kind: ledger.TimedOut}, l)
	}},
	{name: "twenty recoverers put each lapsed task back once", fn: func(b *bench) {
		const n = 1000
		b.submit(tasks("x", n)...)
		b.equal("taken", len(b.take(ledger.MaxBatch))+len(b.take(ledger.MaxBatch)), n)
		b.advance(ledger.LeaseTime)
		var work sync.WaitGroup
		for i := range 20 {
			work.Go(func() {
				for more := true; more; {
					var err error
					if i%2 == 0 {
						more, err = b.l.Sweep(b.ctx)
					} else {
						var t ledger.Taken
						t, err = b.l.Take(b.ctx, "owner", 0)
						more = t.Live > 0
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		work.Wait()
		b.counts(ledger.Counts{Submitted: n, Waiting: n})
		b.equal("lapsed", b.gauges().Lapsed, n)
		seen := map[string]bool{}
		for _, l := range append(b.take(ledger.MaxBatch), b.take(ledger.MaxBatch)...) {
			if seen[string(l.Body)] || l.Lost != 1 {
				b.Fatalf("%s came twice or was charged %d times", l.Body, l.Lost)
			}
			seen[string(l.Body)] = true
		}
		b.equal("tasks", len(seen), n)
	}},
	{name: "several owners share a queue without doubles", fn: func(b *bench) {
		const n, window, owners = 2000, 24, 8
		b.window(window)
		id := b.submit(tasks("x", n)...)
		var held, most, done atomic.Int64
		var work sync.WaitGroup
		for range owners {
			work.Go(func() {
				for done.Load() < n {
					t, err := b.l.Take(b.ctx, "owner", 5)
					if err != nil || t.Live > t.Window {
						b.Errorf("%d leases in a window of %d: %v", t.Live, t.Window, err)
						return
					}
					now := held.Add(int64(len(t.Leases)))
					for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
					}
					held.Add(-int64(len(t.Leases)))
					outcomes := make([]ledger.Outcome, len(t.Leases))
					for i, l := range t.Leases {
						outcomes[i] = ledger.Outcome{Lease: l, Kind: ledger.Success}
					}
					s, err := b.l.Settle(b.ctx, outcomes, 0)
					if err != nil {
						b.Error(err)
						return
					}
					for _, v := range s.Verdicts {
						if v != "done" {
							b.Errorf("verdict %s", v)
							return
						}
					}
					done.Add(int64(len(t.Leases)))
				}
			})
		}
		work.Wait()
		if most.Load() > window {
			b.Fatalf("%d tasks ran at once in a window of %d", most.Load(), window)
		}
		b.equal("results", len(b.results(id, false)), n)
	}},
}

// pattern is n bytes that tell i.
func pattern(i, n int) []byte {
	p := make([]byte, n)
	for at := range p {
		p[at] = byte(i*31 + at*7)
	}
	return p
}

func (b *bench) renew(l ledger.Lease) ledger.Standing {
	b.Helper()
	s, err := b.l.Renew(b.ctx, []ledger.Lease{l})
	b.must(err)
	return s[0]
}
