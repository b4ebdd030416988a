package memledger

import (
	"context"

	"farmhand/skeleton/ledger"
)

// Defaults of a query.
const (
	pageResults = 1000
	pageBytes   = 8 << 20
)

// Results implements ledger.Producer.
func (f *farm) Results(ctx context.Context, id string, q ledger.Query) (p ledger.Page, err error) {
	if q.Limit <= 0 {
		q.Limit = pageResults
	}
	if q.MaxBytes <= 0 {
		q.MaxBytes = pageBytes
	}
	err = f.do(ctx, func(int64) error {
		j, err := f.job(id)
		if err != nil {
			return err
		}
		p = j.page(q)
		return nil
	})
	return p, err
}

// page reads results from a cursor on. What was acknowledged before it is
// skipped; so are dead letters that were redriven and, once the job has ended,
// tasks that were cancelled.
func (j *job) page(q ledger.Query) ledger.Page {
	p := ledger.Page{Job: j.Job}
	from, last := max(q.Cursor, j.out.base), j.out.n
	if q.Ordered {
		from, last = max(q.Cursor, j.acked), j.Total
	}
	p.Next = from
	for bytes := 0; p.Next < last && len(p.Results) < q.Limit; p.Next++ {
		place := p.Next
		if q.Ordered {
			at, finished := j.place(p.Next)
			if !finished && j.Ended.IsZero() {
				break
			}
			if place = at; !finished {
				continue
			}
		}
		r := j.out.at(place)
		if r == nil || r.state == dropped {
			continue
		}
		out := r.public()
		if bytes += len(out.Body); len(p.Results) > 0 && bytes > q.MaxBytes {
			break
		}
		p.Results = append(p.Results, out)
	}
	p.End = !j.Ended.IsZero() && p.Next >= last
	return p
}

// Acknowledge implements ledger.Producer.
func (f *farm) Acknowledge(ctx context.Context, id string, ordered bool, cursor int) error {
	return f.do(ctx, func(int64) error {
		j, err := f.job(id)
		if err != nil {
			return err
		}
		if ordered {
			f.ackOrdered(j, min(cursor, j.Total))
		} else if to := min(cursor, j.out.n); to > j.out.base {
			for place := j.out.base; place < to; place++ {
				f.drop(j, place)
			}
			j.out.forget(to)
		}
		f.wakeUp() // taking may have stopped until results are collected
		return nil
	})
}

// ackOrdered never passes a task that is not finished.
func (f *farm) ackOrdered(j *job, to int) {
	for ; j.acked < to; j.acked++ {
		place, finished := j.place(j.acked)
		if finished {
			f.drop(j, place)
		} else if j.Ended.IsZero() {
			return
		}
	}
	for j.out.base < j.out.n && j.out.at(j.out.base).state == dropped {
		j.out.forget(j.out.base + 1)
	}
}

// drop frees a result that the client has. A dead letter stays until it is
// redriven or the job expires.
func (f *farm) drop(j *job, place int) {
	if r := j.out.at(place); r != nil && r.state == done {
		f.shift(j, 0, -len(r.body))
		*r = result{index: r.index, state: dropped}
	}
}
