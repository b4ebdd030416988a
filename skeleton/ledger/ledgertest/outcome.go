package ledgertest

import (
	"strings"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

var outcomeTests = []test{
	{name: "success brings a result", fn: func(b *bench) {
		id := b.submit(skeleton.NewTask{Body: []byte("x"), Key: "k", Deadline: time.Minute})
		b.advance(2 * time.Second)
		l := b.one()
		b.advance(3 * time.Second)
		b.settles("done", ledger.Outcome{Kind: ledger.Success, Status: 201, Type: "text/plain", Body: []byte("yes"),
			Service: 1500 * time.Millisecond, Waited: 250 * time.Millisecond}, l)
		r := b.results(id, false)[0]
		b.equal("result", []any{r.Index, r.State, r.Status, r.Type, string(r.Body), r.Key, r.Reason, r.Attempt, r.Lost, r.Late, r.Service},
			[]any{0, skeleton.Done, 201, "text/plain", "yes", "k", "", 1, 0, false, 1500 * time.Millisecond})
		b.equal("wait", r.Wait, l.Taken.Sub(l.Accepted)+250*time.Millisecond)
		b.equal("sojourn", r.Sojourn, r.Finished.Sub(l.Accepted))
		b.about("sojourn", r.Sojourn, 5*time.Second)
		b.counts(ledger.Counts{Submitted: 1, Done: 1})
	}},
	{name: "a repeated settle is refused and its result kept once", fn: func(b *bench) {
		id := b.submit(task("x"))
		l := b.one()
		b.settles("done", ledger.Outcome{Kind: ledger.Success, Body: []byte("first")}, l)
		b.settles(ledger.Refused, ledger.Outcome{Kind: ledger.Success, Body: []byte("second")}, l)
		b.settles(ledger.Refused, ledger.Outcome{Kind: ledger.Failed}, l)
		b.equal("verdicts of one call", b.settle(ledger.Success, l, l), []ledger.Verdict{ledger.Refused, ledger.Refused})
		list := b.results(id, false)
		b.equal("results", []any{len(list), string(list[0].Body)}, []any{1, "first"})
		b.equal("refused", b.gauges().Refused, 4)
	}},
	{name: "a repeated settle leaves a large result alone", fn: func(b *bench) {
		id := b.submit(task("x"))
		l := b.one()
		first := pattern(1, 3*ledger.MaxInline)
		b.settles("done", ledger.Outcome{Kind: ledger.Success, Body: first}, l)
		b.settles(ledger.Refused, ledger.Outcome{Kind: ledger.Success, Body: first}, l)
		b.settles(ledger.Refused, ledger.Outcome{Kind: ledger.Success, Body: pattern(2, 4*ledger.MaxInline)}, l)
		b.equal("result", string(b.results(id, false)[0].Body), string(first))
		b.advance(time.Hour) // what nothing links is swept by now
		b.sweep()
		b.equal("result after a sweep", string(b.results(id, false)[0].Body), string(first))
	}},
	{name: "the same lease twice in one call counts once", fn: func(b *bench) {
		id := b.submit(task("x"))
		l := b.one()
		b.equal("verdicts", b.settle(ledger.Success, l, l), []ledger.Verdict{"done", ledger.Refused})
		b.equal("results", len(b.results(id, false)), 1)
	}},
	{name: "what is no lease is refused", fn: func(b *bench) {
		b.submit(task("x"))
		l := b.one()
		other := l
		other.Fence++
		b.settles(ledger.Refused, ledger.Outcome{Kind: ledger.Success}, other)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l)
	}},
	{name: "failures are charged, delayed, then final", fn: func(b *bench) {
		id := b.submit(tasks("x", 1, attempts(3))...)
		fail := ledger.Outcome{Kind: ledger.Failed, Status: 500, Reason: "the worker failed (500)", Body: []byte("trace"), Delay: 4 * time.Second}
		for i := range 2 {
			l := b.one()
			b.equal("attempt", l.Attempt, i+1)
			b.settles("delayed", fail, l)
			b.counts(ledger.Counts{Submitted: 1, Delayed: 1})
			b.advance(3 * time.Second)
			b.equal("too early", len(b.take(1)), 0)
			b.advance(time.Second)
		}
		b.settles("dead", fail, b.one())
		d := b.letter()
		b.equal("letter", []any{d.Job, d.Index, d.Reason, d.Status, d.Attempts, d.Lost, d.Answer},
			[]any{id, 0, "the worker failed (500)", 500, 3, 0, "trace"})
		r := b.results(id, false)[0]
		b.equal("result", []any{r.State, r.Reason, r.Status, r.Attempt, string(r.Body), r.Late}, []any{skeleton.Dead, d.Reason, 500, 3, "trace", false})
		j := b.job(id)
		b.equal("job", []any{j.Dead, j.Late, j.Pending(), j.Ended.IsZero()}, []any{1, 0, 0, false})
	}},
	{name: "a failure without delay waits at once", fn: func(b *bench) {
		b.submit(task("x"))
		for _, kind := range []ledger.Kind{ledger.Failed, ledger.TimedOut, ledger.Lost} {
			b.settles("waiting", ledger.Outcome{Kind: kind}, b.one())
		}
		l := b.one()
		b.equal("attempt, lost", []int{l.Attempt, l.Lost}, []int{3, 1})
	}},
	{name: "the default is five attempts", fn: func(b *bench) {
		b.submit(task("x"))
		for range skeleton.DefaultAttempts - 1 {
			b.settles("waiting", ledger.Outcome{Kind: ledger.Failed}, b.one())
		}
		b.settles("dead", ledger.Outcome{Kind: ledger.TimedOut}, b.one())
	}},
	{name: "a timeout without retry is final", fn: func(b *bench) {
		b.submit(tasks("x", 1, noRetry)...)
		b.settles("waiting", ledger.Outcome{Kind: ledger.Failed}, b.one())
		b.settles("dead", ledger.Outcome{Kind: ledger.TimedOut, Reason: "no answer", Delay: time.Second}, b.one())
		d := b.letter()
		b.equal("letter", []any{d.Reason, d.Attempts}, []any{"unknown outcome", 2})
	}},
	{name: "lost attempts have a budget of their own", fn: func(b *bench) {
		b.submit(tasks("x", 1, attempts(1))...)
		lost := ledger.Outcome{Kind: ledger.Lost, Reason: "gone", Delay: time.Second}
		for i := range skeleton.LostBudget {
			l := b.one()
			b.equal("attempt, lost", []int{l.Attempt, l.Lost}, []int{1, i})
			b.settles("delayed", lost, l)
			b.advance(time.Second)
		}
		b.settles("dead", lost, b.one())
		d := b.letter()
		b.equal("letter", []any{d.Reason, d.Attempts, d.Lost}, []any{"worker lost", 0, skeleton.LostBudget + 1})
	}},
	{name: "a lost attempt without retry is final", fn: func(b *bench) {
		b.submit(tasks("x", 1, noRetry)...)
		b.settles("dead", ledger.Outcome{Kind: ledger.Lost, Delay: time.Second}, b.one())
		b.equal("reason", b.letter().Reason, "unknown outcome")
	}},
	{name: "a rejected task is dead at once", fn: func(b *bench) {
		b.submit(task("x"))
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected, Status: 422, Reason: "bad", Delay: time.Second}, b.one())
		d := b.letter()
		b.equal("letter", []any{d.Reason, d.Status, d.Lost}, []any{"bad", 422, 0})
	}},
	{name: "a released task is charged nothing", fn: func(b *bench) {
		b.submit(tasks("x", 1, noRetry, attempts(1))...)
		for range skeleton.LostBudget + 3 {
			l := b.one()
			b.equal("attempt, lost", []int{l.Attempt, l.Lost}, []int{1, 0})
			b.settles("waiting", ledger.Outcome{Kind: ledger.Released, Delay: time.Minute}, l)
		}
	}},
	{name: "a long last answer is shortened", fn: func(b *bench) {
		b.submit(task("x"))
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected, Body: []byte(strings.Repeat("ü", 20_000))}, b.one())
		d := b.letter()
		if n := len(d.Answer); n == 0 || n > 4096 || !strings.HasPrefix(d.Answer, "üü") {
			b.Fatalf("%d bytes were kept", n)
		}
	}},
	{name: "late means accepted after the due", fn: func(b *bench) {
		id := b.submit(tasks("x", 2, deadline(5*time.Second))...)
		b.submit(task("never late"))
		leases := b.take(3)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases[0])
		b.advance(6 * time.Second)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases[1:]...)
		list := b.results(id, true)
		b.equal("late", []any{list[0].Late, list[1].Late, b.job(id).Late, b.gauges().Late, b.gauges().Timed}, []any{false, true, 1, 1, 2})
	}},
	{name: "exchange settles, then takes", fn: func(b *bench) {
		b.window(2)
		b.submit(tasks("x", 4)...)
		leases := b.takes("x0 x1")
		outcomes := []ledger.Outcome{{Lease: leases[0], Kind: ledger.Success}, {Lease: leases[1], Kind: ledger.Released}}
		s, t, err := b.l.Exchange(b.ctx, "owner", outcomes, 0, 5)
		b.must(err)
		b.equal("verdicts", s.Verdicts, []ledger.Verdict{"done", "waiting"})
		b.equal("taken", names(t.Leases), "x1 x2")
		b.equal("numbers", []int{t.Live, t.Window, t.Waiting}, []int{2, 2, 1})
	}},
	{name: "settle tells how the farm stands", fn: func(b *bench) {
		b.window(3)
		b.submit(tasks("x", 5)...)
		leases := b.take(3)
		s, err := b.l.Settle(b.ctx, []ledger.Outcome{{Lease: leases[0], Kind: ledger.Success}, {Lease: leases[1], Kind: ledger.Released}}, 0)
		b.must(err)
		b.equal("numbers", []int{s.Live, s.Window, s.Waiting}, []int{1, 3, 3})
		s, err = b.l.Settle(b.ctx, nil, 0)
		b.must(err)
		b.equal("numbers", []int{s.Live, s.Window, s.Waiting, len(s.Verdicts)}, []int{1, 3, 3, 0})
	}},
}

// about compares durations that contain real time.
func (b *bench) about(what string, got, want time.Duration) {
	b.Helper()
	if got < want || got > want+20*time.Second {
		b.Fatalf("%s: %s, not about %s", what, got, want)
	}
}

// letter returns the only dead letter.
func (b *bench) letter() ledger.DeadLetter {
	b.Helper()
	list, _, err := b.l.Dead(b.ctx, "", 10)
	b.must(err)
	if len(list) != 1 {
		b.Fatalf("%d dead letters instead of one", len(list))
	}
	return list[0]
}
