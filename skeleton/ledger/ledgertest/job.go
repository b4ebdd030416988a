package ledgertest

import (
	"fmt"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

var jobTests = []test{
	{name: "progress", fn: func(b *bench) {
		id := b.submit(tasks("x", 4)...)
		leases := b.take(3)
		b.settles("done", ledger.Outcome{Kind: ledger.Success, Body: []byte("12345")}, leases[0])
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, leases[1])
		j := b.job(id)
		b.equal("job", []any{j.Total, j.Done, j.Dead, j.Cancelled, j.Pending(), j.Position, j.BodyBytes, j.KeptBytes, j.Ended.IsZero()},
			[]any{4, 1, 1, 0, 2, 2, 4, 7, true})
		b.counts(ledger.Counts{Submitted: 4, Waiting: 1, Leased: 1, Done: 1, Dead: 1})
	}},
	{name: "a job ends with its last task", limits: ledger.Limits{Retention: time.Hour}, fn: func(b *bench) {
		id := b.submit(tasks("x", 2)...)
		leases := b.take(2)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases[0])
		b.equal("ended", b.job(id).Ended.IsZero(), true)
		b.advance(10 * time.Second)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases[1])
		j := b.job(id)
		b.about("ended", j.Ended.Sub(j.Created), 10*time.Second)
		b.equal("expires", j.Expires.Sub(j.Ended), time.Hour)
	}},
	{name: "retention", limits: ledger.Limits{Retention: time.Hour, DeadRetains: 3 * time.Hour}, fn: func(b *bench) {
		finished, died := b.submit(task("x")), b.submit(task("y"))
		leases := b.takes("x y")
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases[0])
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, leases[1])
		b.equal("expires", b.job(died).Expires.Sub(b.job(died).Ended), 3*time.Hour)
		b.advance(59 * time.Minute)
		b.sweep()
		b.job(finished)
		b.advance(time.Minute)
		b.sweep()
		b.fails(ledger.ErrNotFound, second(b.l.Job(b.ctx, finished)))
		b.fails(ledger.ErrNotFound, second(b.l.Results(b.ctx, finished, ledger.Query{})))
		b.counts(ledger.Counts{Submitted: 1, Dead: 1})
		b.sound()
		b.advance(2 * time.Hour)
		b.sweep()
		b.counts(ledger.Counts{})
		list, _, err := b.l.Dead(b.ctx, "", 10)
		b.must(err)
		b.equal("dead letters", len(list), 0)
		g := b.gauges()
		b.equal("bytes", []int{g.QueueBytes, g.KeptBytes}, []int{0, 0})
		jobs, err := b.l.Jobs(b.ctx, "", 10)
		b.must(err)
		b.equal("jobs", len(jobs), 0)
	}},
	{name: "unfinished jobs never expire", limits: ledger.Limits{Retention: time.Minute}, fn: func(b *bench) {
		id := b.submit(task("x"))
		b.advance(10 * time.Hour)
		b.sweep()
		b.equal("pending", b.job(id).Pending(), 1)
	}},
	{name: "sweeping many expired jobs", limits: ledger.Limits{Retention: time.Minute}, fn: func(b *bench) {
		for range 250 {
			_, err := b.try(ledger.Submission{})
			b.must(err)
		}
		b.advance(time.Minute)
		b.sweep()
		jobs, err := b.l.Jobs(b.ctx, "", 10)
		b.must(err)
		b.equal("jobs", len(jobs), 0)
	}},
	{name: "newest jobs first, by pages", fn: func(b *bench) {
		var want []string
		for i := range 7 {
			id := fmt.Sprintf("%s~J%d", b.farm, i)
			_, err := b.try(ledger.Submission{Job: skeleton.Job{ID: id}})
			b.must(err)
			want = append([]string{id}, want...)
		}
		var got []string
		after := ""
		for {
			jobs, err := b.l.Jobs(b.ctx, after, 3)
			b.must(err)
			if len(jobs) == 0 {
				break
			}
			for _, j := range jobs {
				got = append(got, j.ID)
			}
			after = got[len(got)-1]
		}
		b.equal("jobs", got, want)
	}},
	{name: "cancel in every state", fn: func(b *bench) {
		id := b.submit(tasks("x", 8)...)
		other := b.submit(task("other"))
		l := b.takes("x0 x1 x2 x3 x4")
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l[0])
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, l[1])
		b.settles("delayed", ledger.Outcome{Kind: ledger.Failed, Delay: time.Minute}, l[2])
		b.settles("waiting", ledger.Outcome{Kind: ledger.Released}, l[3])
		b.counts(ledger.Counts{Submitted: 9, Waiting: 5, Leased: 1, Delayed: 1, Done: 1, Dead: 1})
		j, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		b.equal("job", []any{j.Cancel, j.Open, j.Done, j.Dead, j.Cancelled, j.Ended.IsZero(), j.BodyBytes}, []any{true, false, 1, 1, 6, false, 0})
		b.counts(ledger.Counts{Submitted: 9, Waiting: 1, Done: 1, Dead: 1, Cancelled: 6})
		g := b.gauges()
		b.equal("live, bytes", []int{g.Live, g.QueueBytes}, []int{1, 5})
		b.sound()
		again, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		b.equal("again", again, j)
		b.settles("cancelled", ledger.Outcome{Kind: ledger.Success}, l[4])
		b.settles(ledger.Refused, ledger.Outcome{Kind: ledger.Success}, l[4])
		b.equal("live", b.gauges().Live, 0)
		b.advance(2 * time.Minute) // the delay is no more
		b.takes("other")
		b.equal("more", len(b.take(5)), 0)
		b.equal("results", len(b.results(id, true)), 2)
		b.equal("other", b.job(other).Cancelled, 0)
	}},
	{name: "any outcome ends the lease of a cancelled task", fn: func(b *bench) {
		id := b.submit(tasks("x", 6)...)
		leases := b.take(6)
		_, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		for i, kind := range []ledger.Kind{ledger.Success, ledger.Failed, ledger.TimedOut, ledger.Lost, ledger.Rejected, ledger.Released} {
			b.settles("cancelled", ledger.Outcome{Kind: kind, Delay: time.Second}, leases[i])
		}
		b.counts(ledger.Counts{Submitted: 6, Cancelled: 6})
		b.equal("live", b.gauges().Live, 0)
		b.equal("results", len(b.results(id, false)), 0)
	}},
	{name: "the lease of a cancelled task holds its slot until it lapses", fn: func(b *bench) {
		b.window(1)
		id := b.submit(task("x"))
		b.submit(task("y"))
		b.takes("x")
		_, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		b.equal("taken", len(b.take(1)), 0)
		b.advance(ledger.LeaseTime)
		b.takes("y")
		b.counts(ledger.Counts{Submitted: 2, Leased: 1, Cancelled: 1})
	}},
	{name: "a job outlives its leases", limits: ledger.Limits{Retention: ledger.LeaseTime}, fn: func(b *bench) {
		id := b.submit(task("x"))
		l := b.one()
		_, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		for range 3 {
			b.advance(ledger.LeaseTime * 2 / 3)
			b.equal("standing", b.renew(l), ledger.WasCancel)
			b.sweep()
		}
		b.settles("cancelled", ledger.Outcome{Kind: ledger.Success}, l)
		b.advance(ledger.LeaseTime)
		b.sweep()
		b.fails(ledger.ErrNotFound, second(b.l.Job(b.ctx, id)))
	}},
	{name: "cancel ends an open job", fn: func(b *bench) {
		r, err := b.try(ledger.Submission{Job: skeleton.Job{Open: true}}, tasks("x", 2)...)
		b.must(err)
		j, err := b.l.Cancel(b.ctx, r.Job.ID)
		b.must(err)
		b.equal("job", []any{j.Open, j.Ended.IsZero(), j.Cancelled}, []any{false, false, 2})
		b.fails(ledger.ErrClosed, second(b.try(ledger.Submission{Job: skeleton.Job{ID: j.ID}, Append: true}, task("y"))))
	}},
	{name: "cancel of an ended job changes nothing", fn: func(b *bench) {
		id := b.submit(task("x"))
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, b.one())
		before := b.job(id)
		j, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		b.equal("job", j, before)
	}},
	{name: "callbacks are owed once a job has ended", fn: func(b *bench) {
		r, err := b.try(ledger.Submission{Job: skeleton.Job{Callback: "http://x/"}}, task("x"))
		b.must(err)
		b.submit(task("y")) // wants none
		b.equal("too early", len(b.callbacks()), 0)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, b.take(2)...)
		due := b.callbacks()
		b.equal("due", []any{len(due), due[0].Job.ID, due[0].Try, due[0].Job.Callback}, []any{1, r.Job.ID, 1, "http://x/"})
		b.equal("claimed", len(b.callbacks()), 0)
		b.advance(ledger.CallbackLease)
		b.equal("claim ran out", b.callbacks()[0].Try, 2)
		b.must(b.l.CallbackDone(b.ctx, r.Job.ID, 10*time.Second))
		b.advance(9 * time.Second)
		b.equal("not yet again", len(b.callbacks()), 0)
		b.advance(time.Second)
		b.equal("again", b.callbacks()[0].Try, 3)
		b.must(b.l.CallbackDone(b.ctx, r.Job.ID, 0))
		b.advance(time.Hour)
		b.equal("never again", len(b.callbacks()), 0)
		b.must(b.l.CallbackDone(b.ctx, b.id(), time.Second))
		b.equal("of no job", len(b.callbacks()), 0)
	}},
}

func (b *bench) callbacks() []ledger.CallbackDue {
	b.Helper()
	due, err := b.l.Callbacks(b.ctx, 10)
	b.must(err)
	return due
}
