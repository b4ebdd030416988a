package ledgertest

import (
	"time"

	"farmhand/skeleton/ledger"
)

var deadTests = []test{
	{name: "oldest first, by pages", fn: func(b *bench) {
		b.submit(tasks("x", 7)...)
		for range 7 {
			b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, b.one())
			b.advance(time.Second)
		}
		var got []int
		after := ""
		for {
			list, next, err := b.l.Dead(b.ctx, after, 3)
			b.must(err)
			for _, d := range list {
				got = append(got, d.Index)
			}
			if next == "" {
				break
			}
			after = next
		}
		b.equal("letters", got, []int{0, 1, 2, 3, 4, 5, 6})
	}},
	{name: "a dead result knows its key", fn: func(b *bench) {
		t := task("x")
		t.Key = "k"
		id := b.submit(t)
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, b.one())
		b.equal("key", b.results(id, false)[0].Key, "k")
	}},
	{name: "redrive by name", fn: func(b *bench) {
		id := b.submit(tasks("x", 3, attempts(1), deadline(30*time.Second))...)
		b.submit(task("other"))
		b.settles("dead", ledger.Outcome{Kind: ledger.Failed, Reason: "why"}, b.takes("x0 x1 x2")...)
		before := b.job(id)
		b.equal("job", []any{before.Dead, before.Late, before.Ended.IsZero(), before.KeptBytes}, []any{3, 3, false, 6})
		list, _, err := b.l.Dead(b.ctx, "", 10)
		b.must(err)
		b.advance(20 * time.Second)
		n, err := b.l.Redrive(b.ctx, []string{list[1].Ref, list[1].Ref}, 0)
		b.must(err)
		b.equal("redriven", n, 1)
		j := b.job(id)
		b.equal("job", []any{j.Dead, j.Late, j.Pending(), j.Ended.IsZero(), j.Expires.IsZero(), j.KeptBytes, j.BodyBytes, j.Position},
			[]any{2, 3, 1, true, true, 4, 2, 3})
		b.counts(ledger.Counts{Submitted: 4, Waiting: 2, Dead: 2})
		b.equal("results", indexes(b.page(id, ledger.Query{})), "0 2")
		l := b.takes("x1 other")[0]
		b.equal("fresh", []any{l.Attempt, l.Lost, l.Index, l.Due.Sub(l.Accepted)}, []any{1, 0, 1, 30 * time.Second})
		b.about("accepted", l.Accepted.Sub(before.Created), 20*time.Second)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l)
		j = b.job(id)
		b.equal("job", []any{j.Done, j.Dead, j.Late, j.Ended.IsZero(), j.Position}, []any{1, 2, 3, false, 4})
		b.equal("results", indexes(b.page(id, ledger.Query{Cursor: 1})), "2 1")
		b.equal("ordered", indexes(b.page(id, ledger.Query{Ordered: true})), "0 1 2")
		n, err = b.l.Redrive(b.ctx, []string{list[1].Ref}, 0) // it is done now
		b.must(err)
		b.equal("redriven", n, 0)
	}},
	{name: "redrive the oldest", fn: func(b *bench) {
		b.submit(tasks("x", 4)...)
		for _, l := range b.take(4) {
			b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, l)
			b.advance(time.Second)
		}
		n, err := b.l.Redrive(b.ctx, nil, 3)
		b.must(err)
		b.equal("redriven", n, 3)
		b.takes("x0 x1 x2")
		n, err = b.l.Redrive(b.ctx, nil, 100)
		b.must(err)
		b.equal("redriven", n, 1)
		b.counts(ledger.Counts{Submitted: 4, Waiting: 1, Leased: 3})
	}},
	{name: "what a reader in order is past and was redriven stands at the end", fn: func(b *bench) {
		id := b.submit(tasks("x", 3, attempts(1))...)
		leases := b.takes("x0 x1 x2")
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases[0], leases[2])
		b.settles("dead", ledger.Outcome{Kind: ledger.Failed}, leases[1])
		b.must(b.l.Acknowledge(b.ctx, id, true, 3))
		b.equal("left", len(b.page(id, ledger.Query{Ordered: true}).Results), 0)
		_, err := b.l.Redrive(b.ctx, nil, 1)
		b.must(err)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, b.takes("x1")...)
		b.equal("in order", indexes(b.page(id, ledger.Query{Ordered: true})), "")
		b.equal("as finished", indexes(b.page(id, ledger.Query{})), "1")
	}},
	{name: "a reference that is none is refused", fn: func(b *bench) {
		_, err := b.l.Redrive(b.ctx, []string{"bogus"}, 0)
		b.fails(ledger.ErrRef, err)
		b.submit(task("x"))
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, b.one())
		refs := make([]string, ledger.MaxBatch+1)
		for i := range refs {
			refs[i] = b.letter().Ref
		}
		_, err = b.l.Redrive(b.ctx, append(refs, "bogus"), 0)
		b.fails(ledger.ErrRef, err)
		b.counts(ledger.Counts{Submitted: 1, Dead: 1})
		_, _, err = b.l.Dead(b.ctx, "bogus", 1)
		b.fails(ledger.ErrRef, err)
	}},
	{name: "a redriven task may die again", fn: func(b *bench) {
		id := b.submit(tasks("x", 1, attempts(1), deadline(time.Hour))...)
		for i := range 3 {
			b.settles("dead", ledger.Outcome{Kind: ledger.Failed}, b.one())
			b.equal("attempts", b.letter().Attempts, 1)
			b.equal("results", len(b.results(id, false)), 1)
			b.equal("late", b.job(id).Late, i+1)
			_, err := b.l.Redrive(b.ctx, nil, 1)
			b.must(err)
		}
	}},
	{name: "redriving what came after its due does not pass others", fn: func(b *bench) {
		late := task("late")
		late.Class, late.Due = 9, time.UnixMicro(1)
		b.submit(late)
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, b.one())
		n, err := b.l.Redrive(b.ctx, nil, 1)
		b.must(err)
		b.equal("redriven", n, 1)
		b.submit(tasks("x", 2)...)
		b.advance(time.Second)
		b.takes("x0 x1 late")
	}},
	{name: "a redriven task is at the tail", fn: func(b *bench) {
		b.submit(tasks("x", 2)...)
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, b.takes("x0")...)
		b.submit(tasks("y", 1)...)
		_, err := b.l.Redrive(b.ctx, nil, 1)
		b.must(err)
		b.takes("x1 y0 x0")
	}},
	{name: "large bodies survive death", fn: func(b *bench) {
		t := task("")
		t.Body = pattern(3, 100_000)
		b.submit(t)
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, b.one())
		_, err := b.l.Redrive(b.ctx, nil, 1)
		b.must(err)
		l := b.one()
		body, err := b.l.Body(b.ctx, l)
		b.must(err)
		b.equal("body", string(body) == string(t.Body), true)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l)
	}},
	{name: "old fences of a former life are refused", fn: func(b *bench) {
		b.submit(task("x"))
		old := b.one()
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, old)
		_, err := b.l.Redrive(b.ctx, nil, 1)
		b.must(err)
		b.settles(ledger.Refused, ledger.Outcome{Kind: ledger.Success}, old)
		l := b.one()
		b.settles(ledger.Refused, ledger.Outcome{Kind: ledger.Success}, old)
		b.equal("standing", b.renew(old), ledger.WasLost)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l)
	}},
	{name: "a redriven job owes its callback again", fn: func(b *bench) {
		sub := ledger.Submission{}
		sub.Job.Callback = "http://x/"
		_, err := b.try(sub, task("x"))
		b.must(err)
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, b.one())
		_, err = b.l.Redrive(b.ctx, nil, 1)
		b.must(err)
		b.equal("while it runs", len(b.callbacks()), 0)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, b.one())
		b.equal("at its end", len(b.callbacks()), 1)
	}},
	{name: "the dead of a cancelled job stay dead", fn: func(b *bench) {
		id := b.submit(tasks("x", 2)...)
		b.submit(task("y"))
		l := b.take(3)
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, l[0], l[2])
		_, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		list, _, err := b.l.Dead(b.ctx, "", 10)
		b.must(err)
		n, err := b.l.Redrive(b.ctx, []string{list[0].Ref}, 0)
		b.must(err)
		b.equal("redriven by name", n, 0)
		n, err = b.l.Redrive(b.ctx, nil, 1)
		b.must(err)
		b.equal("redriven", n, 1)
		b.takes("y")
		j := b.job(id)
		b.equal("job", []any{j.Dead, j.Cancelled, j.Ended.IsZero()}, []any{1, 1, false})
	}},
	{name: "cancel takes redriven tasks along", fn: func(b *bench) {
		id := b.submit(tasks("x", 2)...)
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, b.take(2)...)
		_, err := b.l.Redrive(b.ctx, nil, 2)
		b.must(err)
		l := b.one()
		j, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		b.equal("job", []any{j.Cancelled, j.Dead, j.Ended.IsZero()}, []any{2, 0, false})
		b.settles("cancelled", ledger.Outcome{Kind: ledger.Success}, l)
	}},
}
