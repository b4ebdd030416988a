// Package ledgertest proves an implementation of ledger.Store: Run tries every
// behaviour by itself, Model plays random operations against a reference model
// that is too simple to be wrong.
//
// Both use the interface only. Time is the store's and moves by the harness's
// advance, apart from what really passes: the tests rely on no interval below
// half a second, never sleep and never look at the clock of the machine.
package ledgertest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Harness opens stores to be tested.
type Harness struct {
	// Open returns a store with these limits, and what moves its clock forward.
	// It may return the same store twice: every test has farms of its own.
	Open func(t *testing.T, l ledger.Limits) (store ledger.Store, advance func(time.Duration))
}

// test is one behaviour. The farm's window is open wide unless window is set.
type test struct {
	name   string
	limits ledger.Limits
	fn     func(b *bench)
}

// Run tests every behaviour of a ledger, one subtest each.
func Run(t *testing.T, h Harness) {
	for _, g := range []struct {
		name  string
		tests []test
	}{{"order", orderTests}, {"lease", leaseTests}, {"outcome", outcomeTests}, {"window", windowTests}, {"submit", submitTests},
		{"limit", limitTests}, {"job", jobTests}, {"result", resultTests}, {"dead", deadTests}, {"keep", keepTests},
		{"watch", watchTests}, {"scale", scaleTests}} {
		t.Run(g.name, func(t *testing.T) {
			for _, tt := range g.tests {
				t.Run(tt.name, func(t *testing.T) {
					t.Parallel()
					b := open(t, h, tt.limits)
					tt.fn(b)
					b.sound()
				})
			}
		})
	}
}

// wide is a window that holds nothing back.
const wide = 1_000_000

// bench is one farm under test.
type bench struct {
	*testing.T
	ctx     context.Context
	store   ledger.Store
	l       ledger.Ledger
	advance func(time.Duration)
	farm    string
}

var farms atomic.Int64

func open(t *testing.T, h Harness, l ledger.Limits) *bench {
	t.Helper()
	store, advance := h.Open(t, l)
	b := &bench{T: t, ctx: t.Context(), store: store, advance: advance}
	b.farm = fmt.Sprintf("farm-%d", farms.Add(1))
	b.l = store.Farm(b.farm)
	b.window(wide)
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// equal fails the test if two values differ.
func (b *bench) equal(what string, got, want any) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("%s: (-want +got)\n%s", what, diff)
	}
}

// window publishes the farm with n slots in one ready replica.
func (b *bench) window(n int) {
	b.Helper()
	b.publish(1, 1, n)
}

func (b *bench) publish(ready, target, slots int) {
	b.Helper()
	s := skeleton.DefaultSettings()
	s.Slots = slots
	b.must(ledger.Publish(b.ctx, b.store, skeleton.Roster{Farms: []skeleton.Farm{{Name: b.farm, Settings: s, Ready: ready, Target: target}}}))
}

// id returns a fresh job id.
func (b *bench) id() string { return b.farm + "~" + ulid.Make().String() }

// try submits tasks in one stage.
func (b *bench) try(sub ledger.Submission, tasks ...skeleton.NewTask) (ledger.Receipt, error) {
	b.Helper()
	if sub.Job.ID == "" {
		sub.Job.ID = b.id()
	}
	s, err := b.l.Stage(b.ctx, sub)
	if err != nil {
		return ledger.Receipt{}, err
	}
	if err := s.Add(b.ctx, tasks); err != nil {
		b.must(s.Abort(b.ctx))
		return ledger.Receipt{}, err
	}
	r, err := s.Commit(b.ctx)
	if err != nil {
		b.must(s.Abort(b.ctx))
	}
	return r, err
}

// submit makes a job of tasks and returns its id.
func (b *bench) submit(tasks ...skeleton.NewTask) string {
	b.Helper()
	r, err := b.try(ledger.Submission{}, tasks...)
	b.must(err)
	return r.Job.ID
}

// task is a task named by its body; names in results and leases are bodies.
func task(name string) skeleton.NewTask {
	return skeleton.NewTask{Body: []byte(name), Class: skeleton.DefaultClass}
}

// tasks are n tasks with the names prefix0, prefix1 …
func tasks(prefix string, n int, change ...func(*skeleton.NewTask)) []skeleton.NewTask {
	list := make([]skeleton.NewTask, n)
	for i := range list {
		list[i] = task(fmt.Sprintf("%s%d", prefix, i))
		for _, c := range change {
			c(&list[i])
		}
	}
	return list
}

// take leases tasks and fails the test if an error comes back.
func (b *bench) take(max int) []ledger.Lease {
	b.Helper()
	return b.taken(max).Leases
}

func (b *bench) taken(max int) ledger.Taken {
	b.Helper()
	t, err := b.l.Take(b.ctx, "owner", max)
	b.must(err)
	return t
}

// one takes the next task.
func (b *bench) one() ledger.Lease {
	b.Helper()
	list := b.take(1)
	if len(list) != 1 {
		b.Fatalf("took %d tasks instead of one", len(list))
	}
	return list[0]
}

// names are the bodies of leased tasks, in their order.
func names(leases []ledger.Lease) string {
	list := make([]string, len(leases))
	for i := range leases {
		list[i] = string(leases[i].Body)
	}
	return strings.Join(list, " ")
}

// takes expects the next tasks to be those.
func (b *bench) takes(want string) []ledger.Lease {
	b.Helper()
	leases := b.take(len(strings.Fields(want)))
	b.equal("tasks taken", names(leases), want)
	return leases
}

// settle ends leases alike and returns the verdicts.
func (b *bench) settle(kind ledger.Kind, leases ...ledger.Lease) []ledger.Verdict {
	b.Helper()
	return b.settleAs(ledger.Outcome{Kind: kind}, leases...)
}

func (b *bench) settleAs(o ledger.Outcome, leases ...ledger.Lease) []ledger.Verdict {
	b.Helper()
	list := make([]ledger.Outcome, len(leases))
	for i, l := range leases {
		list[i] = o
		list[i].Lease = l
		if o.Kind == ledger.Success && o.Body == nil {
			list[i].Body = []byte("done " + string(l.Body))
		}
	}
	s, err := b.l.Settle(b.ctx, list, 0)
	b.must(err)
	return s.Verdicts
}

// settles expects every lease to end with that verdict.
func (b *bench) settles(want ledger.Verdict, o ledger.Outcome, leases ...ledger.Lease) {
	b.Helper()
	for i, v := range b.settleAs(o, leases...) {
		if v != want {
			b.Fatalf("%s of %s/%d: verdict %q instead of %q", o.Kind, leases[i].Job, leases[i].Index, v, want)
		}
	}
}

func (b *bench) job(id string) skeleton.Job {
	b.Helper()
	j, err := b.l.Job(b.ctx, id)
	b.must(err)
	return j
}

func (b *bench) gauges() ledger.Gauges {
	b.Helper()
	g, err := b.l.Gauges(b.ctx)
	b.must(err)
	return g
}

// counts expects the tasks of the farm to be in these states.
func (b *bench) counts(want ledger.Counts) {
	b.Helper()
	b.equal("counts", b.gauges().Counts, want)
}

// sweep sweeps until there is nothing more to do.
func (b *bench) sweep() {
	b.Helper()
	for more := true; more; {
		var err error
		more, err = b.l.Sweep(b.ctx)
		b.must(err)
	}
}

// sound audits the farm: counters and tasks agree, nothing is lost.
func (b *bench) sound() {
	b.Helper()
	a, err := b.l.Audit(b.ctx)
	b.must(err)
	if len(a.Problems) > 0 || !a.Counted.Conserved() || a.Counted != a.Counters {
		b.Fatalf("the audit finds problems: %q\ncounted  %+v\ncounters %+v", a.Problems, a.Counted, a.Counters)
	}
}
