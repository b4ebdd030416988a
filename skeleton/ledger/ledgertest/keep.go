package ledgertest

import (
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

var keepTests = []test{
	{name: "the roster", fn: func(b *bench) {
		s := skeleton.DefaultSettings()
		s.Deadline = 150 * time.Millisecond
		want := skeleton.Farm{Name: b.farm, Settings: s, Ready: 3, Target: 4, Problems: []string{"one"}, Missing: time.Minute}
		before := b.now()
		b.must(b.store.PublishRoster(b.ctx, skeleton.Roster{Farms: []skeleton.Farm{want}}))
		r, err := b.store.Roster(b.ctx)
		b.must(err)
		if got, ok := r.Find(b.farm); ok { // tests that share a store replace one another's roster
			b.equal("farm", got, want)
			b.equal("stamped by the store", r.Published.Before(before.Truncate(time.Millisecond)), false)
		}
	}},
	{name: "durability", fn: func(b *bench) {
		switch d, err := b.store.Durability(b.ctx); d {
		case "memory", "process", "disk", "replica":
			b.must(err)
		default:
			b.Fatalf("durability %q: %v", d, err)
		}
	}},
	{name: "farms are apart", fn: func(b *bench) {
		id := b.submit(task("x"))
		other := b.store.Farm(b.farm + "-other")
		b.fails(ledger.ErrNotFound, second(other.Job(b.ctx, id)))
		t, err := other.Take(b.ctx, "owner", 5)
		b.must(err)
		b.equal("taken", len(t.Leases), 0)
		_, err = other.Stage(b.ctx, ledger.Submission{Job: skeleton.Job{ID: id}})
		b.fails(ledger.ErrNotFound, err)
	}},
	{name: "gauges of an empty farm", fn: func(b *bench) {
		b.equal("gauges", b.gauges(), ledger.Gauges{Window: wide, Factor: 1, Beats: map[string]time.Duration{}})
	}},
	{name: "oldest wait and overdue", fn: func(b *bench) {
		b.submit(tasks("x", 3, deadline(10*time.Second))...)
		b.advance(5 * time.Second)
		b.submit(tasks("y", 2, deadline(100*time.Second))...)
		b.submit(tasks("z", 2)...)
		b.equal("overdue", b.gauges().Overdue, 0)
		b.advance(6 * time.Second)
		g := b.gauges()
		b.equal("overdue", []any{g.Overdue, g.Dated, g.RunningAge}, []any{3, true, time.Duration(0)})
		b.about("oldest wait", g.OldestWait, 11*time.Second)
		b.about("next due", -g.NextDue, time.Second)
		l := b.takes("x0")
		b.equal("overdue", b.gauges().Overdue, 2)
		b.takes("x1 x2")
		b.advance(time.Second)
		g = b.gauges()
		b.equal("overdue", []any{g.Overdue, g.RunningOverdue}, []any{0, 3})
		b.about("age", g.RunningAge, time.Second)
		b.advance(8 * time.Second)
		b.equal("age of what nobody renews", b.gauges().RunningAge, time.Duration(0))
		b.advance(-8 * time.Second)
		b.about("oldest wait", g.OldestWait, 7*time.Second)
		if g.OldestWait >= 11*time.Second {
			b.Fatalf("oldest wait %s of tasks that do not wait", g.OldestWait)
		}
		b.settles("waiting", ledger.Outcome{Kind: ledger.Released}, l...)
		g = b.gauges()
		b.equal("overdue", g.Overdue, 1)
		b.about("oldest wait", g.OldestWait, 12*time.Second)
	}},
	{name: "heartbeats", fn: func(b *bench) {
		b.must(b.l.Beat(b.ctx, "one"))
		b.advance(10 * time.Second)
		b.must(b.l.Beat(b.ctx, "two"))
		beats := b.gauges().Beats
		b.equal("dispatchers", len(beats), 2)
		b.about("one", beats["one"], 10*time.Second)
		b.about("two", beats["two"], 0)
		b.advance(55 * time.Second)
		b.must(b.l.Beat(b.ctx, "two"))
		b.sweep()
		beats = b.gauges().Beats
		b.equal("dispatchers", len(beats), 1)
		b.about("two", beats["two"], 0)
	}},
	{name: "sweep ends leases and delays without a take", fn: func(b *bench) {
		b.submit(tasks("x", 2)...)
		l := b.take(2)
		b.settles("delayed", ledger.Outcome{Kind: ledger.Failed, Delay: 5 * time.Second}, l[0])
		b.advance(ledger.LeaseTime)
		b.counts(ledger.Counts{Submitted: 2, Leased: 1, Delayed: 1})
		b.sweep()
		b.counts(ledger.Counts{Submitted: 2, Waiting: 2})
	}},
	{name: "conservation after everything", limits: ledger.Limits{Retention: time.Hour, DeadRetains: time.Hour}, fn: everything},
}

// everything plays a farm's whole life and audits it after every step.
func everything(b *bench) {
	kinds := []ledger.Kind{ledger.Success, ledger.Failed, ledger.TimedOut, ledger.Lost, ledger.Rejected, ledger.Released}
	var jobs []string
	for i := range 6 {
		jobs = append(jobs, b.submit(tasks("x", 40, class(i%3), tenant(string(rune('A'+i%2))), attempts(2))...))
	}
	for round := range 12 {
		leases := b.take(30)
		for i, l := range leases {
			if i%7 == round%7 {
				continue // left to lapse
			}
			b.settleAs(ledger.Outcome{Kind: kinds[(i+round)%len(kinds)], Delay: time.Duration(i%3) * 5 * time.Second}, l)
		}
		b.sound()
		switch round {
		case 4, 8:
			_, err := b.l.Cancel(b.ctx, jobs[round/4])
			b.must(err)
		case 6, 10:
			_, err := b.l.Redrive(b.ctx, nil, 5)
			b.must(err)
			b.must(b.l.Acknowledge(b.ctx, jobs[0], false, round))
		}
		b.sound()
		b.advance(time.Duration(round%4) * 6 * time.Second)
		b.sweep()
		b.sound()
	}
	for range 1000 {
		b.advance(ledger.LeaseTime)
		b.settle(ledger.Success, b.take(ledger.MaxBatch)...)
		if g := b.gauges(); g.Waiting+g.Leased+g.Delayed+g.Live == 0 {
			break
		}
	}
	total := ledger.Counts{Submitted: 240}
	for _, id := range jobs {
		j := b.job(id)
		b.equal("ended", []any{j.Pending(), j.Ended.IsZero()}, []any{0, false})
		total.Done += j.Done
		total.Dead += j.Dead
		total.Cancelled += j.Cancelled
	}
	b.counts(total)
	b.sound()
	b.advance(2 * time.Hour)
	b.sweep()
	b.counts(ledger.Counts{})
	g := b.gauges()
	b.equal("bytes", []int{g.QueueBytes, g.KeptBytes}, []int{0, 0})
}
