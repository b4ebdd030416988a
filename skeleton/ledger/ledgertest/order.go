package ledgertest

import (
	"fmt"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

var orderTests = []test{
	{name: "arrival inside a tenant", fn: func(b *bench) {
		b.submit(tasks("a", 3)...)
		b.submit(tasks("b", 2)...)
		b.takes("a0 a1")
		b.takes("a2 b0 b1")
	}},
	{name: "class is strict", fn: func(b *bench) {
		b.submit(tasks("low", 2, class(9))...)
		b.submit(tasks("mid", 2, class(5))...)
		b.submit(tasks("high", 2, class(0))...)
		b.takes("high0 high1 mid0 mid1 low0")
	}},
	{name: "class inside one submission", fn: func(b *bench) {
		list := tasks("x", 6)
		for i := range list {
			list[i].Class = 5 - i%3
		}
		b.submit(list...)
		b.takes("x2 x5 x1 x4 x0 x3")
	}},
	{name: "due inside a tenant, none last", fn: func(b *bench) {
		b.submit(tasks("none", 2)...)
		b.submit(tasks("late", 2, deadline(100*time.Second))...)
		b.submit(tasks("soon", 2, deadline(20*time.Second))...)
		b.takes("soon0 soon1 late0 late1 none0 none1")
	}},
	{name: "a due of the task's own", fn: func(b *bench) {
		now := b.now()
		b.submit(tasks("rel", 1, deadline(50*time.Second))...)
		b.submit(tasks("far", 1, due(now.Add(80*time.Second)))...)
		b.submit(tasks("near", 1, due(now.Add(20*time.Second)))...)
		leases := b.takes("near0 rel0 far0")
		b.equal("due", leases[0].Due.Equal(now.Add(20*time.Second).Truncate(time.Microsecond)), true)
		b.equal("due − accepted", leases[1].Due.Sub(leases[1].Accepted), 50*time.Second)
	}},
	{name: "tenants take turns", fn: func(b *bench) {
		b.submit(tasks("a", 4, tenant("A"))...)
		b.submit(tasks("b", 2, tenant("B"))...)
		b.submit(tasks("c", 3, tenant("C"))...)
		b.takes("a0 b0 c0 a1 b1 c1 a2")
		b.takes("c2 a3")
	}},
	{name: "turns continue over calls", fn: func(b *bench) {
		b.submit(tasks("a", 4, tenant("A"))...)
		b.submit(tasks("b", 4, tenant("B"))...)
		b.takes("a0")
		b.takes("b0 a1 b1")
		b.takes("a2")
		b.submit(tasks("c", 2, tenant("C"))...)
		b.takes("b2 a3 c0 b3 c1")
	}},
	{name: "a tenant that comes back joins the tail", fn: func(b *bench) {
		b.submit(tasks("a", 1, tenant("A"))...)
		b.submit(tasks("b", 3, tenant("B"))...)
		b.submit(tasks("c", 3, tenant("C"))...)
		b.takes("a0 b0")
		b.submit(tasks("d", 2, tenant("A"))...)
		b.takes("c0 b1 d0 c1 b2 d1 c2")
	}},
	{name: "one task is not behind a thousand of another tenant", fn: func(b *bench) {
		b.submit(tasks("a", 1000, tenant("A"))...)
		b.take(10)
		b.submit(tasks("b", 1, tenant("B"))...)
		for i, l := range b.take(4) {
			if l.Tenant == "B" && i < 2 {
				return
			}
		}
		b.Fatal("the task of B was not in the first two turns")
	}},
	{name: "turns inside each class", fn: func(b *bench) {
		b.submit(tasks("a", 2, tenant("A"), class(1))...)
		b.submit(tasks("b", 2, tenant("B"), class(2))...)
		b.submit(tasks("c", 2, tenant("A"), class(2))...)
		b.takes("a0 a1 b0 c0 b1 c1")
	}},
	{name: "what waited ten deadlines comes first", fn: func(b *bench) {
		b.submit(tasks("old", 2, class(9), deadline(time.Second))...)
		b.submit(tasks("high", 4, class(0), deadline(time.Hour))...)
		b.takes("high0")
		b.advance(11 * time.Second)
		b.takes("old0 old1 high1")
	}},
	{name: "the earliest ageing instant first", fn: func(b *bench) {
		b.submit(tasks("x", 1, class(3), deadline(4*time.Second))...)
		b.submit(tasks("y", 1, class(8), deadline(2*time.Second), tenant("Y"))...)
		b.submit(tasks("z", 1, class(0), deadline(3*time.Second))...)
		b.advance(41 * time.Second)
		b.takes("y0 z0 x0")
	}},
	{name: "without a due a minute is the deadline", fn: func(b *bench) {
		b.submit(tasks("old", 1, class(9))...)
		b.advance(595 * time.Second)
		b.submit(tasks("high", 2, class(0))...)
		b.takes("high0")
		b.advance(6 * time.Second)
		b.takes("old0 high1")
	}},
	{name: "ageing does not turn the ring", fn: func(b *bench) {
		b.submit(tasks("a", 3, tenant("A"))...)
		b.submit(tasks("b", 3, tenant("B"))...)
		b.submit(tasks("o", 1, tenant("B"), deadline(time.Second))...)
		b.advance(11 * time.Second)
		b.takes("o0 a0 b0 a1 b1")
	}},
	{name: "a task that comes back stands at its old place", fn: func(b *bench) {
		b.submit(tasks("a", 4)...)
		b.submit(tasks("b", 2)...)
		leases := b.takes("a0 a1 a2")
		b.settles("waiting", ledger.Outcome{Kind: ledger.Released}, leases[1])
		b.takes("a1 a3 b0")
		b.settles("waiting", ledger.Outcome{Kind: ledger.Released}, leases[2], leases[0])
		b.takes("a0 a2 b1")
	}},
	{name: "old places count across dues", fn: func(b *bench) {
		b.submit(tasks("a", 2, deadline(20*time.Second))...)
		leases := b.takes("a0")
		b.submit(tasks("b", 1, deadline(10*time.Second))...)
		b.submit(tasks("c", 1, deadline(40*time.Second))...)
		b.settles("waiting", ledger.Outcome{Kind: ledger.Released}, leases...)
		b.takes("b0 a0 a1 c0")
	}},
	{name: "a delay and a lapse lead to the old place", fn: func(b *bench) {
		b.submit(tasks("a", 4)...)
		leases := b.takes("a0 a1")
		b.settles("delayed", ledger.Outcome{Kind: ledger.Failed, Delay: 5 * time.Second}, leases[1])
		b.submit(tasks("b", 1)...)
		b.takes("a2")
		b.advance(20 * time.Second)
		b.takes("a0 a1 a2 a3 b0")
	}},
	{name: "ten interleaved tenants, three classes", fn: func(b *bench) {
		for i := range 30 {
			b.submit(tasks(fmt.Sprintf("%d-", i), 2, tenant(fmt.Sprint(i%10)), class(i/10))...)
		}
		got := b.take(60)
		for i, l := range got {
			c, turn, who := i/20, i%20/10, i%10
			if want := fmt.Sprintf("%d-%d", c*10+who, turn); string(l.Body) != want {
				b.Fatalf("place %d: %s instead of %s", i, l.Body, want)
			}
		}
	}},
}

func class(c int) func(*skeleton.NewTask) { return func(t *skeleton.NewTask) { t.Class = c } }
func tenant(name string) func(*skeleton.NewTask) {
	return func(t *skeleton.NewTask) { t.Tenant = name }
}
func due(at time.Time) func(*skeleton.NewTask) { return func(t *skeleton.NewTask) { t.Due = at } }
func attempts(n int) func(*skeleton.NewTask)   { return func(t *skeleton.NewTask) { t.Attempts = n } }
func noRetry(t *skeleton.NewTask)              { t.NoRetry = true }
func deadline(d time.Duration) func(*skeleton.NewTask) {
	return func(t *skeleton.NewTask) { t.Deadline = d }
}

// now asks the store for its time: an empty job ends when it is created.
func (b *bench) now() time.Time {
	b.Helper()
	r, err := b.try(ledger.Submission{})
	b.must(err)
	return r.Job.Created
}
