package ledgertest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Model plays random operations on a ledger and on a reference model, and
// compares every answer that is determined. -rapid.checks and -rapid.steps make
// it more thorough.
//
// All intervals are chosen so that nothing depends on a tenth of a second:
// a store whose clock runs by itself, such as one in Redis, agrees too.
func Model(t *testing.T, h Harness) {
	limits := ledger.Limits{QueueTasks: 60, QueueBytes: 400, KeptBytes: 60, Retention: 500 * time.Second, DeadRetains: 1000 * time.Second}
	store, advance := h.Open(t, limits)
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{T: rt, ctx: t.Context(), store: store, move: advance, farm: fmt.Sprintf("model-%d", farms.Add(1))}
		m.ref = reference{now: grain, limits: limits.WithDefaults(), window: 1, keys: map[string]bool{}, receipts: map[string]refReceipt{}}
		m.l = store.Farm(m.farm)
		m.start()
		rt.Repeat(map[string]func(*rapid.T){
			"submit": m.action(m.submit), "append": m.action(m.append), "close": m.action(m.close), "cancel": m.action(m.cancel),
			"take": m.action(m.take), "take more": m.action(m.take), "take any": m.action(m.takeAny),
			"settle": m.action(m.settle), "settle more": m.action(m.settle), "exchange": m.action(m.exchange), "renew": m.action(m.renew),
			"advance": m.action(m.advance), "publish": m.action(m.publish), "sweep": m.action(m.sweep),
			"acknowledge": m.action(m.acknowledge), "redrive": m.action(m.redrive), "callbacks": m.action(m.callbacks),
			"": m.action(m.check),
		})
		for range m.ref.jobs {
			m.action(m.checkJob)(rt)
		}
	})
}

// grain is what intervals are multiples of. A lease lasts one and a half.
const grain = 10 * time.Second

type model struct {
	*rapid.T
	ctx    context.Context
	store  ledger.Store
	l      ledger.Ledger
	move   func(time.Duration)
	farm   string
	ref    reference
	base   time.Time // the store's time when the reference began
	leases []*refLease
	made   int
	dues   int
	turn   int
	adrift bool // too much time passed by itself
}

// action gives fn the T to fail with and a moment of its own: no two operations
// are at the same time.
func (m *model) action(fn func()) func(*rapid.T) {
	return func(t *rapid.T) {
		if m.T = t; m.adrift {
			return
		}
		m.pass(2 * time.Microsecond) // what is due a microsecond later is over by the next one
		fn()
	}
}

func (m *model) pass(d time.Duration) {
	m.move(d)
	m.ref.now += d
}

// start finds out the store's time.
func (m *model) start() {
	m.base = m.storeNow().Add(-m.ref.now)
}

func (m *model) must(err error) {
	m.Helper()
	if err != nil {
		m.fail("%v", err)
	}
}

// slack is how much time may pass by itself before the store's and the
// reference's become too different to judge.
const slack = 100 * time.Millisecond

// fail ends the check, unless it was too slow to judge.
func (m *model) fail(format string, args ...any) {
	m.Helper()
	if drift := m.storeNow().Sub(m.base) - m.ref.now; drift > slack {
		m.adrift = true
		m.Skipf("%s passed by themselves", drift)
	}
	m.Fatalf(format, args...)
}

func (m *model) equal(what string, got, want any) {
	m.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		m.fail("%s: (-want +got)\n%s", what, diff)
	}
}

// near compares times that contain what passed by itself.
func (m *model) near(what string, got, want time.Duration) {
	m.Helper()
	if d := got - want; d > slack || d < -slack {
		m.fail("%s: %s instead of %s", what, got, want)
	}
}

// pick draws one of a list, or the zero value of an empty one.
func pick[E any](t *rapid.T, label string, list []E) (e E) {
	if len(list) == 0 {
		return e
	}
	return rapid.SampledFrom(list).Draw(t, label)
}

func chance(t *rapid.T, label string, oneIn int) bool {
	return rapid.IntRange(1, oneIn).Draw(t, label) == oneIn
}

// anyJob draws a job, sometimes one that does not exist.
func (m *model) anyJob() *refJob {
	if len(m.ref.jobs) == 0 || chance(m.T, "no job", 12) {
		return &refJob{id: m.farm + "~none"}
	}
	return pick(m.T, "job", m.ref.jobs)
}

func (m *model) there(j *refJob) bool { return slices.Contains(m.ref.jobs, j) }

// check compares what can be seen of the whole farm, and of one job in turn.
func (m *model) check() {
	a, err := m.l.Audit(m.ctx)
	m.must(err)
	if len(a.Problems) > 0 || a.Counted != a.Counters {
		m.fail("audit: %q %+v %+v", a.Problems, a.Counted, a.Counters)
	}
	g, err := m.l.Gauges(m.ctx)
	m.must(err)
	want := ledger.Gauges{Counts: m.ref.counts(), Live: len(m.ref.held()), Window: m.ref.window, Factor: 1, Late: m.ref.late, Timed: m.ref.timed,
		Refused: m.ref.refused, Lapsed: m.ref.lapsed, Beats: map[string]time.Duration{}}
	want.QueueBytes, want.KeptBytes = m.ref.bytes()
	if want.Waiting > 0 && want.KeptBytes >= m.ref.limits.KeptBytes {
		want.Blocked = "results not collected"
	}
	oldest, soon := m.ref.now, 0
	for _, t := range m.ref.waiting {
		oldest = min(oldest, t.accepted)
		if t.due < m.ref.now {
			want.Overdue++
		} else if t.due < m.ref.now+slack {
			soon++ // what was redriven after its due has a new one at once
		}
	}
	if g.Overdue > want.Overdue {
		want.Overdue = min(g.Overdue, want.Overdue+soon)
	}
	m.near("oldest wait", g.OldestWait, m.ref.now-oldest)
	want.OldestWait = g.OldestWait
	m.checkRunning(g, &want)
	m.equal("gauges", g, want)
	m.checkLists()
	m.checkJob()
}

// checkRunning compares what is said of the running tasks, and of the next due.
func (m *model) checkRunning(g ledger.Gauges, want *ledger.Gauges) {
	var age time.Duration
	running, soon, unclear := 0, 0, false
	for _, t := range m.ref.held() {
		if t.state != skeleton.Leased {
			continue
		}
		left := t.lease.end - m.ref.now
		unclear = unclear || left > ledger.Renewed-slack && left < ledger.Renewed+slack
		if left > ledger.Renewed {
			running++
			age += m.ref.now - t.lease.taken
		}
		if t.due < m.ref.now {
			want.RunningOverdue++
		} else if t.due < m.ref.now+slack {
			soon++
		}
	}
	if g.RunningOverdue > want.RunningOverdue {
		want.RunningOverdue = min(g.RunningOverdue, want.RunningOverdue+soon)
	}
	if running > 0 && !unclear {
		m.near("age of running tasks", g.RunningAge, age/time.Duration(running))
	}
	if running > 0 || unclear {
		want.RunningAge = g.RunningAge
	}
	first := never
	for _, t := range m.ref.waiting {
		first = min(first, t.due)
	}
	if want.Dated = first < never; want.Dated {
		m.near("next due", g.NextDue, first-m.ref.now)
		want.NextDue = g.NextDue
	}
}

// checkLists compares the lists of jobs and of dead letters.
func (m *model) checkLists() {
	jobs, err := m.l.Jobs(m.ctx, "", 1000)
	m.must(err)
	var got, want []string
	for _, j := range jobs {
		got = append(got, j.ID)
	}
	for _, j := range slices.Backward(m.ref.jobs) {
		want = append(want, j.id)
	}
	m.equal("jobs", got, want)

	letters, _, err := m.l.Dead(m.ctx, "", 1000)
	m.must(err)
	m.checkDead(letters)
}

// checkDead compares dead letters. What died in one operation is in the order
// that the ledger gives it, which the reference adopts: an exchange may be one
// instant or two.
func (m *model) checkDead(letters []ledger.DeadLetter) {
	var got, want []string
	dead := m.ref.dead()
	for _, d := range letters {
		got = append(got, fmt.Sprintf("%s/%d %d %d", d.Job, d.Index, d.Attempts, d.Lost))
	}
	rank := func(t *refTask) int { return slices.Index(got, fmt.Sprintf("%s %d %d", t, t.failures, t.lost)) }
	slices.SortStableFunc(dead, func(a, b *refTask) int {
		return cmp.Or(cmp.Compare(a.died.Truncate(time.Microsecond), b.died.Truncate(time.Microsecond)), cmp.Compare(rank(a), rank(b)))
	})
	for i, t := range dead {
		want = append(want, fmt.Sprintf("%s %d %d", t, t.failures, t.lost))
		t.died = t.died.Truncate(time.Microsecond) + time.Duration(i)
		if i < len(letters) {
			t.ref = letters[i].Ref
		}
	}
	m.equal("dead letters", got, want)
}

// checkJob compares one job and its results.
func (m *model) checkJob() {
	if len(m.ref.jobs) == 0 {
		return
	}
	m.turn++
	j := m.ref.jobs[m.turn%len(m.ref.jobs)]
	got, err := m.l.Job(m.ctx, j.id)
	m.must(err)
	want := skeleton.Job{ID: j.id, Farm: m.farm, Ordered: j.ordered, Callback: j.callback, Open: j.open, Total: len(j.tasks),
		Done: j.count(skeleton.Done), Dead: j.count(skeleton.Dead), Cancelled: j.count(skeleton.Cancelled), Late: j.late,
		Position: len(j.stream), Cancel: j.cancel, Created: got.Created, Ended: got.Ended, Expires: got.Expires}
	want.BodyBytes, want.KeptBytes = j.bytes()
	m.equal("job", got, want)
	m.equal("ended", got.Ended.IsZero(), j.ended == 0)
	if j.ended > 0 {
		m.near("ended", got.Ended.Sub(m.base), j.ended)
		m.equal("expires", got.Expires.Sub(got.Ended), j.expires-j.ended)
	}
	m.checkResults(j)
}

func (m *model) checkResults(j *refJob) {
	list, end := j.results()
	at := 0
	for q := (ledger.Query{Limit: 3, Ordered: j.ordered}); ; {
		p, err := m.l.Results(m.ctx, j.id, q)
		m.must(err)
		for _, r := range p.Results {
			if at == len(list) {
				m.fail("result %d of %s should not be there", r.Index, j.id)
			}
			m.checkResult(j, r, list[at])
			at++
		}
		if p.End || p.Next == q.Cursor {
			m.equal("end", p.End, end)
			break
		}
		q.Cursor = p.Next
	}
	m.equal("results of "+j.id, at, len(list))
}

func (m *model) checkResult(j *refJob, got skeleton.Result, want *refResult) {
	key := want.task.key
	m.equal("result of "+j.id, []any{got.Index, got.State, len(got.Body), got.Reason, got.Attempt, got.Lost, got.Late, got.Status, got.Service, got.Key},
		[]any{want.task.index, want.state, want.body, want.reason, want.attempt, want.lost, want.late, want.status, want.service, key})
	m.near("wait", got.Wait, want.wait)
	m.near("sojourn", got.Sojourn, want.sojourn)
	m.near("finished", got.Finished.Sub(m.base), want.finished)
}
