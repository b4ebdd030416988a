package ledgertest

import (
	"fmt"
	"strings"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

var resultTests = []test{
	{name: "as they were finished", fn: func(b *bench) {
		id := b.submit(tasks("x", 4)...)
		l := b.take(4)
		for _, i := range []int{2, 0, 3} {
			b.settles("done", ledger.Outcome{Kind: ledger.Success}, l[i])
		}
		p := b.page(id, ledger.Query{})
		b.equal("page", []any{indexes(p), p.Next, p.End, p.Job.Done}, []any{"2 0 3", 3, false, 3})
		b.equal("body", string(p.Results[0].Body), "done x2")
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, l[1])
		p = b.page(id, ledger.Query{Cursor: p.Next})
		b.equal("page", []any{indexes(p), p.Next, p.End}, []any{"1", 4, true})
		p = b.page(id, ledger.Query{Cursor: p.Next})
		b.equal("page", []any{indexes(p), p.Next, p.End}, []any{"", 4, true})
	}},
	{name: "in the order of the tasks", fn: func(b *bench) {
		id := b.submit(tasks("x", 5)...)
		l := b.take(5)
		ordered := ledger.Query{Ordered: true}
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l[1], l[3])
		p := b.page(id, ordered)
		b.equal("gap at the start", []any{indexes(p), p.Next, p.End}, []any{"", 0, false})
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l[0])
		p = b.page(id, ordered)
		b.equal("up to the gap", []any{indexes(p), p.Next, p.End}, []any{"0 1", 2, false})
		ordered.Cursor = p.Next
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, l[2])
		p = b.page(id, ordered)
		b.equal("after the gap", []any{indexes(p), p.Next, p.End, p.Results[0].State}, []any{"2 3", 4, false, skeleton.Dead})
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l[4])
		ordered.Cursor = p.Next
		p = b.page(id, ordered)
		b.equal("the last", []any{indexes(p), p.Next, p.End}, []any{"4", 5, true})
	}},
	{name: "cancelled tasks are gaps that are skipped at the end", fn: func(b *bench) {
		id := b.submit(tasks("x", 6)...)
		l := b.take(5)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l[1], l[4])
		_, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		b.equal("results", indexes(ledger.Page{Results: b.results(id, true)}), "1 4")
		b.equal("results", indexes(ledger.Page{Results: b.results(id, false)}), "1 4")
	}},
	{name: "limits in results and bytes", fn: func(b *bench) {
		id := b.submit(tasks("x", 6)...)
		b.settles("done", ledger.Outcome{Kind: ledger.Success, Body: make([]byte, 100)}, b.take(6)...)
		for _, ordered := range []bool{false, true} {
			p := b.page(id, ledger.Query{Limit: 4, Ordered: ordered})
			b.equal("page", []any{indexes(p), p.Next, p.End}, []any{"0 1 2 3", 4, false})
			p = b.page(id, ledger.Query{MaxBytes: 250, Ordered: ordered})
			b.equal("page", []any{indexes(p), p.Next, p.End}, []any{"0 1", 2, false})
			p = b.page(id, ledger.Query{MaxBytes: 10, Cursor: 5, Ordered: ordered})
			b.equal("page", []any{indexes(p), p.Next, p.End}, []any{"5", 6, true})
			p = b.page(id, ledger.Query{MaxBytes: 50, Cursor: 2, Ordered: ordered})
			b.equal("at least one", []any{indexes(p), p.Next, p.End}, []any{"2", 3, false})
		}
	}},
	{name: "acknowledged results are gone", fn: func(b *bench) {
		id := b.submit(tasks("x", 6)...)
		l := b.take(6)
		answer := ledger.Outcome{Kind: ledger.Success, Body: make([]byte, 5000)}
		b.settles("done", answer, l[0], l[1], l[2], l[3])
		b.equal("kept", b.job(id).KeptBytes, 20_000)
		b.must(b.l.Acknowledge(b.ctx, id, false, 3))
		b.equal("kept", []int{b.job(id).KeptBytes, b.gauges().KeptBytes}, []int{5000, 5000})
		p := b.page(id, ledger.Query{})
		b.equal("page", []any{indexes(p), p.Next}, []any{"3", 4})
		b.must(b.l.Acknowledge(b.ctx, id, false, 2)) // an old cursor
		b.must(b.l.Acknowledge(b.ctx, id, false, 0))
		b.settles("done", answer, l[4], l[5])
		p = b.page(id, ledger.Query{Cursor: 2})
		b.equal("page", []any{indexes(p), p.Next, p.End}, []any{"3 4 5", 6, true})
		b.must(b.l.Acknowledge(b.ctx, id, false, 100)) // beyond the end
		p = b.page(id, ledger.Query{})
		b.equal("page", []any{indexes(p), p.Next, p.End, p.Job.Position, p.Job.KeptBytes}, []any{"", 6, true, 6, 0})
	}},
	{name: "acknowledged in order", fn: func(b *bench) {
		id := b.submit(tasks("x", 4)...)
		l := b.take(4)
		answer := ledger.Outcome{Kind: ledger.Success, Body: make([]byte, 10)}
		b.settles("done", answer, l[3], l[0], l[1])
		b.must(b.l.Acknowledge(b.ctx, id, true, 2))
		b.equal("kept", b.job(id).KeptBytes, 10)
		b.settles("done", answer, l[2])
		p := b.page(id, ledger.Query{Ordered: true})
		b.equal("page", []any{indexes(p), p.Next, p.End}, []any{"2 3", 4, true})
		b.must(b.l.Acknowledge(b.ctx, id, true, 4))
		p = b.page(id, ledger.Query{Ordered: true})
		b.equal("page", []any{indexes(p), p.Next, p.End, p.Job.KeptBytes}, []any{"", 4, true, 0})
	}},
	{name: "acknowledging keeps dead letters", fn: func(b *bench) {
		id := b.submit(tasks("x", 2)...)
		l := b.take(2)
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, l[0])
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l[1])
		b.must(b.l.Acknowledge(b.ctx, id, false, 2))
		b.equal("results", len(b.results(id, false)), 0)
		n, err := b.l.Redrive(b.ctx, []string{b.letter().Ref}, 0)
		b.must(err)
		b.equal("redriven", n, 1)
		again := b.takes("x0")
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, again...)
		b.equal("results", indexes(b.page(id, ledger.Query{})), "0")
	}},
	{name: "many results by small pages", fn: func(b *bench) {
		const n = 2000
		id := b.submit(tasks("x", n)...)
		for range n / ledger.MaxBatch {
			b.settles("done", ledger.Outcome{Kind: ledger.Success}, b.take(ledger.MaxBatch)...)
		}
		for _, ordered := range []bool{false, true} {
			seen := 0
			for cursor, end := 0, false; !end; {
				p := b.page(id, ledger.Query{Cursor: cursor, Limit: 300, Ordered: ordered})
				for _, r := range p.Results {
					if string(r.Body) != fmt.Sprintf("done x%d", r.Index) || r.Index != seen {
						b.Fatalf("place %d: result %d is %q", seen, r.Index, r.Body)
					}
					seen++
				}
				cursor, end = p.Next, p.End
			}
			b.equal("results", seen, n)
		}
		b.must(b.l.Acknowledge(b.ctx, id, false, n-1))
		b.equal("results", len(b.results(id, false)), 1)
	}},
	{name: "long gaps do not stop a reader", fn: func(b *bench) {
		const n = 1500
		id := b.submit(append(tasks("x", n, class(9)), tasks("y", 1, class(0))...)...)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, b.takes("y0")...)
		_, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		p := b.page(id, ledger.Query{Ordered: true, Limit: 100})
		b.equal("page", []any{indexes(p), p.Next, p.End}, []any{fmt.Sprint(n), n + 1, true})
	}},
	{name: "the numbers of a result that waited twice", fn: func(b *bench) {
		id := b.submit(task("x"))
		b.settles("delayed", ledger.Outcome{Kind: ledger.Failed, Delay: 10 * time.Second}, b.one())
		b.advance(10 * time.Second)
		l := b.one()
		b.advance(5 * time.Second)
		b.settles("done", ledger.Outcome{Kind: ledger.Success, Service: 5 * time.Second}, l)
		r := b.results(id, false)[0]
		b.equal("attempt", r.Attempt, 2)
		b.about("wait", r.Wait, 10*time.Second)
		b.about("sojourn", r.Sojourn, 15*time.Second)
	}},
}

func (b *bench) page(id string, q ledger.Query) ledger.Page {
	b.Helper()
	p, err := b.l.Results(b.ctx, id, q)
	b.must(err)
	return p
}

// results reads all results of a job that are there.
func (b *bench) results(id string, ordered bool) (list []skeleton.Result) {
	b.Helper()
	for cursor := 0; ; {
		p := b.page(id, ledger.Query{Cursor: cursor, Ordered: ordered})
		list = append(list, p.Results...)
		if p.End || p.Next == cursor {
			return list
		}
		cursor = p.Next
	}
}

func indexes(p ledger.Page) string {
	list := make([]string, len(p.Results))
	for i, r := range p.Results {
		list[i] = fmt.Sprint(r.Index)
	}
	return strings.Join(list, " ")
}
