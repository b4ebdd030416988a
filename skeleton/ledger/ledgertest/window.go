package ledgertest

import (
	"math"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

var windowTests = []test{
	{name: "a farm that was never published has a window of one", fn: func(b *bench) {
		b.farm = b.farm + "-new"
		b.l = b.store.Farm(b.farm)
		b.submit(tasks("x", 3)...)
		t := b.taken(5)
		b.equal("taken, window, live, waiting", []int{len(t.Leases), t.Window, t.Live, t.Waiting}, []int{1, 1, 1, 2})
		b.equal("more", len(b.take(5)), 0)
	}},
	{name: "ready, target and slots", fn: func(b *bench) {
		b.submit(tasks("x", 100)...)
		for _, c := range []struct{ ready, target, slots, window int }{{2, 5, 3, 6}, {5, 2, 3, 6}, {0, 5, 3, 0}, {5, 0, 3, 0}, {4, 4, 1, 4}} {
			b.publish(c.ready, c.target, c.slots)
			t := b.taken(50)
			b.equal("window", t.Window, c.window)
			b.equal("live", t.Live, c.window)
			b.settles("waiting", ledger.Outcome{Kind: ledger.Released}, t.Leases...)
		}
	}},
	{name: "no farm of the roster loses its window", fn: func(b *bench) {
		b.window(7)
		b.must(ledger.Publish(b.ctx, b.store, skeleton.Roster{Farms: []skeleton.Farm{{Name: b.farm + "-other", Ready: 1, Target: 1}}}))
		b.equal("window", b.gauges().Window, 7)
	}},
	{name: "leases fill the window until they end", fn: func(b *bench) {
		b.window(4)
		b.submit(tasks("x", 10)...)
		first := b.takes("x0 x1 x2")
		b.takes("x3")
		b.equal("full", len(b.take(5)), 0)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, first[0])
		b.settles("delayed", ledger.Outcome{Kind: ledger.Failed, Delay: time.Hour}, first[1])
		t := b.taken(5)
		b.equal("taken", names(t.Leases), "x4 x5")
		b.equal("live, waiting", []int{t.Live, t.Waiting}, []int{4, 4})
	}},
	{name: "a smaller window waits for leases to end", fn: func(b *bench) {
		b.window(4)
		b.submit(tasks("x", 10)...)
		leases := b.take(4)
		b.window(2)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases[:2]...)
		b.equal("taken", len(b.take(5)), 0)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, leases[2:]...)
		b.equal("taken", len(b.take(5)), 2)
	}},
	{name: "slots of a dispatcher that died come back", fn: func(b *bench) {
		b.window(2)
		b.submit(tasks("x", 4)...)
		b.takes("x0 x1")
		b.advance(ledger.LeaseTime)
		b.takes("x0 x1")
	}},
	{name: "take any passes the window", fn: func(b *bench) {
		b.publish(0, 0, 1)
		b.submit(tasks("x", 3)...)
		b.equal("taken", len(b.take(3)), 0)
		t, err := b.l.TakeAny(b.ctx, "owner", 2)
		b.must(err)
		b.equal("taken", names(t.Leases), "x0 x1")
	}},
	{name: "busy answers shrink the window, at most every 100 ms", fn: func(b *bench) {
		b.window(1000)
		b.equal("factor", b.factor(), 1.0)
		b.busy(3)
		b.near("factor", b.factor(), 0.9)
		b.busy(1) // a real 100 ms may pass here, but only one
		f := b.factor()
		if f < 0.80 || f > 0.92 {
			b.Fatalf("factor %g after a second answer", f)
		}
		b.advance(200 * time.Millisecond)
		b.busy(1)
		if g := b.factor(); g > f*0.9+0.02 {
			b.Fatalf("factor %g after %g and another busy answer", g, f)
		}
		w := b.gauges().Window
		if w < 700 || w > 850 {
			b.Fatalf("window %d", w)
		}
		b.equal("more than the window is never taken", b.taken(1).Window <= 850, true)
	}},
	{name: "busy answers on the way to a free replica leave the window", fn: func(b *bench) {
		b.publish(5, 5, 1)
		b.submit(tasks("x", 60)...)
		for range 60 { // a random replica of five is free after four busy ones
			_, err := b.l.Settle(b.ctx, []ledger.Outcome{{Lease: b.one(), Kind: ledger.Success}}, 4)
			b.must(err)
			b.advance(100 * time.Millisecond)
		}
		b.equal("factor", b.factor(), 1.0)
		for range 10 { // nobody is free, and nothing ends
			b.busy(5)
			b.advance(100 * time.Millisecond)
		}
		if f := b.factor(); f > 0.6 {
			b.Fatalf("factor %g after a second of busy answers alone", f)
		}
	}},
	{name: "the factor has a floor and recovers", fn: func(b *bench) {
		b.window(100)
		for range 30 {
			b.busy(1)
			b.advance(150 * time.Millisecond)
		}
		b.near("factor", b.factor(), ledger.MinFactor)
		b.advance(10 * time.Second)
		b.near("factor", b.factor(), ledger.MinFactor+10*ledger.BusyRecover)
		b.advance(time.Hour)
		b.equal("factor", b.factor(), 1.0)
		b.equal("window", b.gauges().Window, 100)
	}},
	{name: "a window is never zero while a worker is ready", fn: func(b *bench) {
		b.window(1)
		for range 20 {
			b.busy(1)
			b.advance(150 * time.Millisecond)
		}
		b.submit(task("x"))
		b.one()
	}},
	{name: "next tells when to come back", fn: func(b *bench) {
		b.window(2)
		b.equal("nothing", b.taken(1).Next, time.Duration(0))
		b.submit(tasks("x", 3)...)
		leases := b.take(2)
		b.remains("the lease", b.taken(1).Next, ledger.LeaseTime)
		b.settles("delayed", ledger.Outcome{Kind: ledger.Failed, Delay: 5 * time.Second}, leases[0])
		b.advance(2 * time.Second)
		b.remains("the delay", b.taken(0).Next, 3*time.Second)
		b.advance(4 * time.Second)
		t := b.taken(2)
		b.remains("the lease", t.Next, ledger.LeaseTime-6*time.Second)
	}},
	{name: "results not collected stop the taking", limits: ledger.Limits{KeptBytes: 100}, fn: func(b *bench) {
		id := b.submit(tasks("x", 4)...)
		answer := ledger.Outcome{Kind: ledger.Success, Body: make([]byte, 50)}
		leases := b.take(2)
		b.settles("done", answer, leases[0])
		b.equal("blocked", b.taken(0).Blocked, "")
		b.settles("done", answer, leases[1])
		t := b.taken(2)
		b.equal("blocked", []any{len(t.Leases), t.Blocked, b.gauges().Blocked, t.Waiting}, []any{0, "results not collected", "results not collected", 2})
		b.must(b.l.Acknowledge(b.ctx, id, false, 1))
		t = b.taken(2)
		b.equal("free again", []any{len(t.Leases), t.Blocked, b.gauges().Blocked}, []any{2, "", ""})
		b.equal("kept", []int{b.gauges().KeptBytes, b.job(id).KeptBytes}, []int{50, 50})
	}},
	{name: "dead letters count as kept", limits: ledger.Limits{KeptBytes: 100}, fn: func(b *bench) {
		b.submit(skeleton.NewTask{Body: make([]byte, 120)})
		b.submit(task("x"))
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, b.one())
		b.equal("blocked", b.taken(1).Blocked, "results not collected")
		n, err := b.l.Redrive(b.ctx, nil, 10)
		b.must(err)
		b.equal("redriven", n, 1)
		b.equal("free", len(b.take(2)), 2)
	}},
}

func (b *bench) busy(n int) {
	b.Helper()
	_, err := b.l.Settle(b.ctx, nil, n)
	b.must(err)
}

func (b *bench) factor() float64 {
	b.Helper()
	return b.gauges().Factor
}

// near allows for the recovery of a second of real time.
func (b *bench) near(what string, got, want float64) {
	b.Helper()
	if math.Abs(got-want) > ledger.BusyRecover {
		b.Fatalf("%s: %g, not about %g", what, got, want)
	}
}

// remains compares the rest of an interval, of which a real second may be gone.
func (b *bench) remains(what string, got, want time.Duration) {
	b.Helper()
	if got > want+time.Millisecond || got < want-time.Second {
		b.Fatalf("until %s is over: %s, not %s", what, got, want)
	}
}
