package ledgertest

import (
	"fmt"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

var limitTests = []test{
	{name: "tasks", limits: ledger.Limits{QueueTasks: 10}, fn: func(b *bench) {
		b.submit(tasks("x", 6)...)
		b.fails(ledger.ErrFull, second(b.try(ledger.Submission{}, tasks("y", 5)...)))
		b.submit(tasks("z", 4)...)
		b.fails(ledger.ErrFull, second(b.try(ledger.Submission{}, task("y"))))
		leases := b.take(10)
		b.fails(ledger.ErrFull, second(b.try(ledger.Submission{}, task("y")))) // leased tasks count
		b.settles("delayed", ledger.Outcome{Kind: ledger.Failed, Delay: 1 << 40}, leases[0])
		b.fails(ledger.ErrFull, second(b.try(ledger.Submission{}, task("y")))) // and delayed ones
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases[1])
		b.submit(task("y"))
		b.fails(ledger.ErrTooLarge, second(b.try(ledger.Submission{}, tasks("y", 11)...)))
	}},
	{name: "bytes", limits: ledger.Limits{QueueBytes: 1000}, fn: func(b *bench) {
		body := func(n int) skeleton.NewTask { return skeleton.NewTask{Body: make([]byte, n)} }
		b.submit(body(600))
		b.equal("bytes", b.gauges().QueueBytes, 600)
		b.fails(ledger.ErrFull, second(b.try(ledger.Submission{}, body(401))))
		b.submit(body(400))
		b.fails(ledger.ErrFull, second(b.try(ledger.Submission{}, body(1))))
		b.submit(body(0))
		b.fails(ledger.ErrTooLarge, second(b.try(ledger.Submission{}, body(600), body(401))))
		leases := b.take(3)
		b.equal("bytes", b.gauges().QueueBytes, 1000)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases[0])
		b.equal("bytes", b.gauges().QueueBytes, 400)
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, leases[1])
		b.equal("bytes", b.gauges().QueueBytes, 0)
	}},
	{name: "the limit is told while adding", limits: ledger.Limits{QueueTasks: 3*ledger.MaxBatch - 1, QueueBytes: 1 << 20}, fn: func(b *bench) {
		b.submit(tasks("x", ledger.MaxBatch)...)
		s, err := b.l.Stage(b.ctx, ledger.Submission{Job: skeleton.Job{ID: b.id()}})
		b.must(err)
		b.must(s.Add(b.ctx, tasks("y", ledger.MaxBatch)))
		b.fails(ledger.ErrFull, s.Add(b.ctx, tasks("y", ledger.MaxBatch)))
		b.must(s.Abort(b.ctx))
		s, err = b.l.Stage(b.ctx, ledger.Submission{Job: skeleton.Job{ID: b.id()}})
		b.must(err)
		b.must(s.Add(b.ctx, []skeleton.NewTask{{Body: make([]byte, 600_000)}}))
		b.fails(ledger.ErrTooLarge, s.Add(b.ctx, []skeleton.NewTask{{Body: make([]byte, 600_000)}}))
		b.must(s.Abort(b.ctx))
	}},
	{name: "staged bytes count against other stages", limits: ledger.Limits{QueueBytes: 12 << 20}, fn: func(b *bench) {
		stage := func() ledger.Stage {
			s, err := b.l.Stage(b.ctx, ledger.Submission{Job: skeleton.Job{ID: b.id()}})
			b.must(err)
			return s
		}
		big := []skeleton.NewTask{{Body: make([]byte, 7<<20)}} // less may not be written before the commit
		first, other := stage(), stage()
		b.must(first.Add(b.ctx, big))
		b.fails(ledger.ErrFull, other.Add(b.ctx, big))
		b.must(other.Abort(b.ctx))
		b.must(first.Abort(b.ctx))
		other = stage()
		b.must(other.Add(b.ctx, big))
		_, err := other.Commit(b.ctx)
		b.must(err)
	}},
	{name: "commit checks what was free while adding", limits: ledger.Limits{QueueTasks: 10}, fn: func(b *bench) {
		var stages []ledger.Stage
		for range 2 {
			s, err := b.l.Stage(b.ctx, ledger.Submission{Job: skeleton.Job{ID: b.id()}})
			b.must(err)
			b.must(s.Add(b.ctx, tasks("x", 6)))
			stages = append(stages, s)
		}
		_, err := stages[0].Commit(b.ctx)
		b.must(err)
		b.fails(ledger.ErrFull, second(stages[1].Commit(b.ctx)))
		b.must(stages[1].Abort(b.ctx))
		b.counts(ledger.Counts{Submitted: 6, Waiting: 6})
	}},
	{name: "runs in one submission", limits: ledger.Limits{StageRuns: 4}, fn: func(b *bench) {
		list := tasks("x", 5)
		for i := range list {
			list[i].Class = i % 2
		}
		b.submit(list[:4]...)
		b.fails(ledger.ErrTooLarge, second(b.try(ledger.Submission{}, list...)))
		b.submit(tasks("y", 100)...) // one run
	}},
	{name: "keys in one submission", limits: ledger.Limits{KeyedTasks: 4}, fn: func(b *bench) {
		list := tasks("x", 5)
		for i := range list {
			list[i].Key = fmt.Sprint(i)
		}
		b.fails(ledger.ErrTooLarge, second(b.try(ledger.Submission{}, list...)))
		b.submit(list[:4]...)
		b.submit(tasks("y", 100)...)
	}},
	{name: "more than a batch in one submission", fn: func(b *bench) {
		const n = 3*ledger.MaxBatch + 7
		id := b.submit(tasks("x", n)...)
		b.equal("total", b.job(id).Total, n)
		next := 0
		for range 4 {
			for _, l := range b.take(ledger.MaxBatch + 50) {
				if l.Index != next {
					b.Fatalf("index %d instead of %d", l.Index, next)
				}
				next++
			}
		}
		b.equal("taken", next, n)
	}},
	{name: "take hands out a batch at most", fn: func(b *bench) {
		b.submit(tasks("x", ledger.MaxBatch+5)...)
		b.equal("taken", len(b.take(10*ledger.MaxBatch)), ledger.MaxBatch)
	}},
}
