package memledger

import (
	"context"
	"fmt"

	"farmhand/skeleton/ledger"
	"farmhand/skeleton/order"
)

// Audit implements ledger.Keeper.
func (f *farm) Audit(ctx context.Context) (out ledger.Audit, err error) {
	err = f.do(ctx, func(int64) error {
		a := auditor{f: f, out: ledger.Audit{Counters: f.n}}
		a.jobs()
		a.queue()
		a.leases()
		a.totals()
		out = a.out
		return nil
	})
	return out, err
}

// auditor counts a farm's tasks.
type auditor struct {
	f            *farm
	out          ledger.Audit
	inRuns       int
	alone        int
	entries      int
	live         int
	letters      int
	queued, kept int
}

func (a *auditor) problem(format string, args ...any) {
	if len(a.out.Problems) < 20 {
		a.out.Problems = append(a.out.Problems, fmt.Sprintf(format, args...))
	}
}

func (a *auditor) jobs() {
	for id, j := range a.f.jobs {
		before := a.out.Counted
		queued, kept, live := a.queued, a.kept, a.live
		a.tasks(j)
		for place := j.out.base; place < j.out.n; place++ {
			if r := j.out.at(place); r.state == done {
				a.kept += len(r.body)
			}
		}
		c := &a.out.Counted
		if got := c.Submitted - before.Submitted; got != j.Total {
			a.problem("job %s: %d tasks, counter %d", id, got, j.Total)
		}
		if c.Done-before.Done != j.Done || c.Dead-before.Dead != j.Dead || c.Cancelled-before.Cancelled != j.Cancelled {
			a.problem("job %s: final tasks and counters differ", id)
		}
		if a.queued-queued != j.BodyBytes || a.kept-kept != j.KeptBytes {
			a.problem("job %s: %d bytes of bodies and %d kept, counters %d and %d", id, a.queued-queued, a.kept-kept, j.BodyBytes, j.KeptBytes)
		}
		if a.live-live != j.live {
			a.problem("job %s: %d live leases, counter %d", id, a.live-live, j.live)
		}
		if ended := !j.Open && j.Pending() == 0; ended == j.Ended.IsZero() {
			a.problem("job %s: pending %d, open %t, ended %s", id, j.Pending(), j.Open, j.Ended)
		}
	}
}

func (a *auditor) tasks(j *job) {
	c := &a.out.Counted
	for _, place := range j.places {
		c.Submitted++
		if place >= 0 {
			c.Done++
		} else {
			c.Cancelled++
		}
	}
	for _, p := range j.pieces {
		for i := range p.tasks {
			c.Submitted++
			a.task(&p.tasks[i])
		}
	}
}

func (a *auditor) task(t *task) {
	c := &a.out.Counted
	off := int(t.index) - t.run.first
	if &t.run.tasks[off] != t || a.f.runs[t.run.seq] != t.run {
		a.problem("task %s is not where its run says", t.ref())
	}
	switch t.state {
	case inRun:
		c.Waiting++
		a.inRuns++
		a.queued += len(t.body)
		if off < t.run.next || t.run.entry == 0 {
			a.problem("task %s waits in a run that it has left", t.ref())
		} else if off == t.run.next {
			a.entries++
			if e := a.f.queue.Entry(t.run.entry); e.Value != t.run || e.Index != int(t.index) || e.N != len(t.run.tasks)-off {
				a.problem("the entry of run %d says %d tasks from %d on", t.run.seq, e.N, e.Index)
			}
		}
	case alone:
		c.Waiting++
		a.alone++
		a.entries++
		a.queued += len(t.body)
		if e := a.f.queue.Entry(order.Handle(t.slot)); e.Value != t.run || e.Index != int(t.index) || e.N != 1 {
			a.problem("task %s has another one's entry", t.ref())
		}
	case leased:
		c.Leased++
		a.live++
		a.queued += len(t.body)
	case ghost:
		c.Cancelled++
		a.live++
	case delayed:
		c.Delayed++
		a.queued += len(t.body)
	case done:
		c.Done++
	case dead:
		c.Dead++
		a.letters++
		a.kept += len(t.body)
	case dropped:
		c.Cancelled++
	}
}

func (a *auditor) queue() {
	q := a.f.queue
	if q.Len() != a.inRuns+a.alone || q.Entries() != a.entries {
		a.problem("the queue holds %d tasks in %d entries, there are %d in %d", q.Len(), q.Entries(), a.inRuns+a.alone, a.entries)
	}
	if err := q.Check(); err != nil {
		a.problem("the queue is broken: %v", err)
	}
}

func (a *auditor) leases() {
	held := map[*task]bool{}
	for i, m := range a.f.leases.list[a.f.leases.start:] {
		if m.v.holds(m.at) {
			held[m.v] = true
		}
		if i > 0 && m.at < a.f.leases.list[a.f.leases.start+i-1].at {
			a.problem("leases are not sorted by their end")
		}
	}
	if len(held) != a.live || a.f.live != len(held) {
		a.problem("%d leases, %d tasks that hold one, counter %d", len(held), a.live, a.f.live)
	}
	waits := map[*task]bool{}
	for _, m := range a.f.delays.list {
		if m.v.state == delayed && m.v.at == m.at {
			waits[m.v] = true
		}
	}
	if len(waits) != a.out.Counted.Delayed {
		a.problem("%d delays, %d delayed tasks", len(waits), a.out.Counted.Delayed)
	}
}

func (a *auditor) totals() {
	f := a.f
	if a.out.Counters != a.out.Counted {
		a.problem("counters and counted tasks differ: %+v, %+v", a.out.Counters, a.out.Counted)
	}
	if !a.out.Counted.Conserved() {
		a.problem("the states do not add up: %+v", a.out.Counted)
	}
	if a.queued != f.queueBytes || a.kept != f.keptBytes {
		a.problem("%d bytes queued and %d kept, counters %d and %d", a.queued, a.kept, f.queueBytes, f.keptBytes)
	}
	if n := len(f.dead.list) - f.dead.gone; n != a.letters {
		a.problem("%d dead letters, %d dead tasks", n, a.letters)
	}
	staged := 0
	for s := range f.stages {
		staged += s.bytes
	}
	if staged != f.stagedBytes {
		a.problem("%d bytes staged, counter %d", staged, f.stagedBytes)
	}
}
