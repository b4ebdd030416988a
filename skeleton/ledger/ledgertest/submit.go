package ledgertest

import (
	"errors"
	"fmt"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

var submitTests = []test{
	{name: "nothing is visible before commit", fn: func(b *bench) {
		id := b.id()
		s, err := b.l.Stage(b.ctx, ledger.Submission{Job: skeleton.Job{ID: id}})
		b.must(err)
		b.must(s.Add(b.ctx, tasks("x", 3)))
		b.must(s.Add(b.ctx, tasks("y", 2)))
		b.equal("taken", len(b.take(5)), 0)
		b.fails(ledger.ErrNotFound, second(b.l.Job(b.ctx, id)))
		b.counts(ledger.Counts{})
		r, err := s.Commit(b.ctx)
		b.must(err)
		b.equal("receipt", []any{r.Job.ID, r.First, r.Tasks, r.Duplicates, r.Repeated, r.Job.Total}, []any{id, 0, 5, 0, false, 5})
		b.must(s.Abort(b.ctx)) // does nothing any more
		b.takes("x0 x1 x2 y0 y1")
	}},
	{name: "an aborted stage leaves nothing", fn: func(b *bench) {
		id := b.id()
		s, err := b.l.Stage(b.ctx, ledger.Submission{Job: skeleton.Job{ID: id}, Key: "s"})
		b.must(err)
		b.must(s.Add(b.ctx, []skeleton.NewTask{{Key: "k"}}))
		b.must(s.Abort(b.ctx))
		b.fails(ledger.ErrNotFound, second(b.l.Job(b.ctx, id)))
		r, err := b.try(ledger.Submission{Key: "s"}, skeleton.NewTask{Key: "k"})
		b.must(err)
		b.equal("receipt", []any{r.Tasks, r.Repeated}, []any{1, false})
	}},
	{name: "a job's fields", fn: func(b *bench) {
		id := b.id()
		r, err := b.try(ledger.Submission{Job: skeleton.Job{ID: id, Ordered: true, Callback: "http://x/y", Open: true}}, tasks("x", 2)...)
		b.must(err)
		j := b.job(id)
		b.equal("receipt", r.Job, j)
		b.equal("job", []any{j.ID, j.Farm, j.Ordered, j.Callback, j.Open, j.Total, j.BodyBytes, j.Ended.IsZero(), j.Cancel},
			[]any{id, b.farm, true, "http://x/y", true, 2, 4, true, false})
	}},
	{name: "appending", fn: func(b *bench) {
		id := b.id()
		_, err := b.try(ledger.Submission{Job: skeleton.Job{ID: id, Open: true}}, tasks("x", 2)...)
		b.must(err)
		r, err := b.try(ledger.Submission{Job: skeleton.Job{ID: id}, Append: true}, tasks("y", 3)...)
		b.must(err)
		b.equal("receipt", []any{r.First, r.Tasks, r.Job.Total, r.Job.Open}, []any{2, 3, 5, true})
		leases := b.takes("x0 x1 y0 y1 y2")
		b.equal("index", leases[4].Index, 4)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases...)
		b.equal("ended", b.job(id).Ended.IsZero(), true)
		j, err := b.l.Close(b.ctx, id)
		b.must(err)
		b.equal("closed", []any{j.Open, j.Ended.IsZero(), j.Done}, []any{false, false, 5})
		j2, err := b.l.Close(b.ctx, id)
		b.must(err)
		b.equal("closed again", j2, j)
		b.fails(ledger.ErrClosed, second(b.try(ledger.Submission{Job: skeleton.Job{ID: id}, Append: true}, task("z"))))
	}},
	{name: "jobs that are not there, or there already", fn: func(b *bench) {
		id := b.submit(task("x"))
		b.fails(ledger.ErrExists, second(b.try(ledger.Submission{Job: skeleton.Job{ID: id}}, task("y"))))
		b.fails(ledger.ErrNotFound, second(b.try(ledger.Submission{Job: skeleton.Job{ID: b.id()}, Append: true}, task("y"))))
		b.fails(ledger.ErrNotFound, second(b.l.Job(b.ctx, b.id())))
		b.fails(ledger.ErrNotFound, second(b.l.Job(b.ctx, "other~1")))
		b.fails(ledger.ErrNotFound, second(b.l.Close(b.ctx, b.id())))
		b.fails(ledger.ErrNotFound, second(b.l.Cancel(b.ctx, b.id())))
		b.fails(ledger.ErrNotFound, second(b.l.Results(b.ctx, b.id(), ledger.Query{})))
		b.fails(ledger.ErrNotFound, b.l.Acknowledge(b.ctx, b.id(), false, 1))
		b.counts(ledger.Counts{Submitted: 1, Waiting: 1})
	}},
	{name: "empty submissions", fn: func(b *bench) {
		open, err := b.try(ledger.Submission{Job: skeleton.Job{Open: true}})
		b.must(err)
		b.equal("open", []any{open.Tasks, open.Job.Open, open.Job.Ended.IsZero()}, []any{0, true, true})
		shut, err := b.try(ledger.Submission{})
		b.must(err)
		b.equal("shut", []any{shut.Tasks, shut.Job.Ended.IsZero()}, []any{0, false})
		r, err := b.try(ledger.Submission{Job: skeleton.Job{ID: open.Job.ID}, Append: true})
		b.must(err)
		b.equal("appended", r.Tasks, 0)
		j, err := b.l.Close(b.ctx, open.Job.ID)
		b.must(err)
		b.equal("ended", j.Ended.IsZero(), false)
	}},
	{name: "a known submission key repeats its receipt", fn: func(b *bench) {
		first, err := b.try(ledger.Submission{Key: "s"}, tasks("x", 3)...)
		b.must(err)
		again, err := b.try(ledger.Submission{Key: "s"}, tasks("y", 5)...)
		b.must(err)
		b.equal("receipt", []any{again.Job.ID, again.First, again.Tasks, again.Repeated}, []any{first.Job.ID, 0, 3, true})
		b.counts(ledger.Counts{Submitted: 3, Waiting: 3})
		other, err := b.try(ledger.Submission{Key: "t"}, task("z"))
		b.must(err)
		b.equal("another key", other.Repeated, false)
	}},
	{name: "a repeated submission needs no room", limits: ledger.Limits{QueueTasks: 3}, fn: func(b *bench) {
		for i := range 2 {
			r, err := b.try(ledger.Submission{Key: "s"}, tasks("x", 2)...)
			b.must(err)
			b.equal("receipt", []any{r.Repeated, r.Tasks}, []any{i > 0, 2})
		}
	}},
	{name: "a repeated append repeats its receipt, even when the job is closed", fn: func(b *bench) {
		id := b.id()
		_, err := b.try(ledger.Submission{Job: skeleton.Job{ID: id, Open: true}}, task("x"))
		b.must(err)
		sub := ledger.Submission{Job: skeleton.Job{ID: id}, Append: true, Key: "piece 2"}
		_, err = b.try(sub, tasks("y", 2)...)
		b.must(err)
		_, err = b.l.Close(b.ctx, id)
		b.must(err)
		r, err := b.try(sub, tasks("y", 2)...)
		b.must(err)
		b.equal("receipt", []any{r.Repeated, r.First, r.Tasks, r.Job.Total}, []any{true, 1, 2, 3})
	}},
	{name: "known task keys are left out", fn: func(b *bench) {
		keyed := func(name, key string) skeleton.NewTask { t := task(name); t.Key = key; return t }
		id := b.submit(keyed("a", "k1"), task("b"), keyed("c", "k2"), keyed("d", "k1"))
		r, err := b.try(ledger.Submission{}, task("e"), keyed("f", "k2"), keyed("g", "k3"), task("h"))
		b.must(err)
		b.equal("receipt", []any{r.Tasks, r.Duplicates, r.Job.Total}, []any{3, 1, 3})
		b.equal("first job", b.job(id).Total, 3)
		leases := b.takes("a b c e g h")
		b.equal("indexes", []int{leases[2].Index, leases[4].Index, leases[5].Index}, []int{2, 1, 2})
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases...)
		r, err = b.try(ledger.Submission{}, keyed("i", "k3"))
		b.must(err)
		b.equal("known although done", []any{r.Tasks, r.Duplicates, r.Job.Ended.IsZero()}, []any{0, 1, false})
		b.equal("bytes", b.gauges().QueueBytes, 0)
	}},
	{name: "bodies of duplicates are not charged", fn: func(b *bench) {
		big := skeleton.NewTask{Body: make([]byte, 50_000), Key: "k"}
		b.submit(big)
		b.submit(big, task("x"))
		b.equal("bytes", b.gauges().QueueBytes, 50_001)
	}},
	{name: "keys go with their job", limits: ledger.Limits{Retention: time.Minute}, fn: func(b *bench) {
		sub := ledger.Submission{Job: skeleton.Job{ID: b.id()}, Key: "s"}
		_, err := b.try(sub, skeleton.NewTask{Key: "k"})
		b.must(err)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, b.one())
		b.advance(time.Minute)
		b.sweep()
		sub.Job.ID = b.id()
		r, err := b.try(sub, skeleton.NewTask{Key: "k"})
		b.must(err)
		b.equal("receipt", []any{r.Repeated, r.Tasks, r.Duplicates}, []any{false, 1, 0})
	}},
	{name: "a silent stage is swept", limits: ledger.Limits{StageIdle: time.Minute}, fn: func(b *bench) {
		stage := func() ledger.Stage {
			s, err := b.l.Stage(b.ctx, ledger.Submission{Job: skeleton.Job{ID: b.id()}})
			b.must(err)
			b.must(s.Add(b.ctx, tasks("x", ledger.MaxBatch))) // less may not be written before the commit
			return s
		}
		adding, committing, alive := stage(), stage(), stage()
		b.advance(40 * time.Second)
		b.must(alive.Add(b.ctx, tasks("y", ledger.MaxBatch)))
		b.advance(40 * time.Second)
		b.sweep()
		b.fails(ledger.ErrGone, adding.Add(b.ctx, tasks("x", ledger.MaxBatch)))
		b.fails(ledger.ErrGone, second(committing.Commit(b.ctx)))
		r, err := alive.Commit(b.ctx)
		b.must(err)
		b.equal("tasks", r.Tasks, 2*ledger.MaxBatch)
		b.counts(ledger.Counts{Submitted: 2 * ledger.MaxBatch, Waiting: 2 * ledger.MaxBatch})
	}},
	{name: "a key belongs to one submission", fn: func(b *bench) {
		a, other := skeleton.Job{ID: b.id(), Open: true}, skeleton.Job{ID: b.id(), Open: true}
		b.must(second(b.try(ledger.Submission{Job: a})))
		b.must(second(b.try(ledger.Submission{Job: other})))
		b.must(second(b.try(ledger.Submission{Job: a, Append: true, Key: "k"}, task("x"))))
		b.fails(ledger.ErrKeyUsed, second(b.try(ledger.Submission{Job: other, Append: true, Key: "k"}, task("x"))))
		b.fails(ledger.ErrKeyUsed, second(b.try(ledger.Submission{Job: skeleton.Job{ID: b.id()}, Key: "k"}, task("x"))))
		r, err := b.try(ledger.Submission{Job: a, Append: true, Key: "k"}, task("x"))
		b.must(err)
		b.equal("receipt", []any{r.Repeated, r.Tasks}, []any{true, 1})
		b.counts(ledger.Counts{Submitted: 1, Waiting: 1})
	}},
	{name: "what is repeated leaves nothing staged", limits: ledger.Limits{QueueBytes: 3000}, fn: func(b *bench) {
		list := tasks("x", ledger.MaxBatch)
		for i := range list {
			list[i].Body = []byte("xx")
		}
		for i := range 8 {
			r, err := b.try(ledger.Submission{Job: skeleton.Job{ID: b.id()}, Key: "k"}, append(list, task("last"))...)
			b.must(err)
			b.equal("repeated", r.Repeated, i > 0)
		}
		b.counts(ledger.Counts{Submitted: ledger.MaxBatch + 1, Waiting: ledger.MaxBatch + 1})
	}},
	{name: "a due before all time is late, and nothing else", fn: func(b *bench) {
		old := task("old")
		old.Due = time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)
		id := b.submit(task("new"), old)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, b.takes("old new")...)
		b.equal("late", b.job(id).Late, 1)
	}},
	{name: "a commit whose answer was lost is called again", fn: func(b *bench) {
		open := skeleton.Job{ID: b.id(), Open: true}
		for i, sub := range []ledger.Submission{{Job: open}, {Job: open, Append: true}, {Job: skeleton.Job{ID: b.id()}, Key: "k"}} {
			s, err := b.l.Stage(b.ctx, sub)
			b.must(err)
			b.must(s.Add(b.ctx, tasks("x", 3)))
			first, err := s.Commit(b.ctx)
			b.must(err)
			again, err := s.Commit(b.ctx)
			b.must(err)
			b.equal("receipt", again, first)
			b.counts(ledger.Counts{Submitted: 3 * (i + 1), Waiting: 3 * (i + 1)})
		}
	}},
	{name: "submissions at the same time are each whole", fn: func(b *bench) {
		errs := make(chan error)
		const n, each = 16, 25
		for i := range n {
			go func() {
				s, err := b.l.Stage(b.ctx, ledger.Submission{Job: skeleton.Job{ID: fmt.Sprintf("%s~J%02d", b.farm, i)}, Key: fmt.Sprint(i / 2)})
				if err == nil {
					err = s.Add(b.ctx, tasks("x", each))
				}
				if err == nil {
					_, err = s.Commit(b.ctx)
				}
				errs <- err
			}()
		}
		for range n {
			if err := <-errs; err != nil {
				b.Error(err)
			}
		}
		b.counts(ledger.Counts{Submitted: n / 2 * each, Waiting: n / 2 * each})
	}},
}

// second drops the first of two values.
func second[T any](_ T, err error) error { return err }

// fails expects an error of that kind.
func (b *bench) fails(want, got error) {
	b.Helper()
	if !errors.Is(got, want) {
		b.Fatalf("error %v instead of %v", got, want)
	}
}
