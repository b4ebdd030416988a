package ledgertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// The operations of Model: each does the same to the ledger and the reference.

func (m *model) newID() string {
	m.made++
	return fmt.Sprintf("%s~J%05d", m.farm, m.made)
}

// storeNow asks the store for its time, in a farm of its own.
func (m *model) storeNow() time.Time {
	m.made++
	farm := m.farm + "-clock"
	s, err := m.store.Farm(farm).Stage(m.ctx, ledger.Submission{Job: skeleton.Job{ID: fmt.Sprintf("%s~J%05d", farm, m.made)}})
	if err != nil {
		m.Fatal(err)
	}
	r, err := s.Commit(m.ctx)
	if err != nil {
		m.Fatal(err)
	}
	return r.Job.Created
}

func (m *model) close() {
	j := m.anyJob()
	_, err := m.l.Close(m.ctx, j.id)
	if !m.there(j) {
		m.equal("close of no job", errors.Is(err, ledger.ErrNotFound), true)
		return
	}
	m.must(err)
	j.open = false
	m.ref.books()
}

func (m *model) cancel() {
	j := m.anyJob()
	got, err := m.l.Cancel(m.ctx, j.id)
	if !m.there(j) {
		m.equal("cancel of no job", errors.Is(err, ledger.ErrNotFound), true)
		return
	}
	m.must(err)
	j.cancelAll(&m.ref)
	m.equal("cancelled", []any{got.Cancel, got.Cancelled, got.Ended.IsZero()}, []any{j.cancel, j.count(skeleton.Cancelled), false})
}

func (m *model) take() {
	max := rapid.IntRange(0, 12).Draw(m.T, "max")
	got, err := m.l.Take(m.ctx, pick(m.T, "owner", []string{"one", "two"}), max)
	m.must(err)
	m.taken(got, max, false)
}

func (m *model) takeAny() {
	max := rapid.IntRange(0, 3).Draw(m.T, "max")
	got, err := m.l.TakeAny(m.ctx, "one", max)
	m.must(err)
	m.taken(got, max, true)
}

// taken compares what was handed out.
func (m *model) taken(got ledger.Taken, max int, anyway bool) {
	ref := &m.ref
	ref.refresh()
	n, blocked := max, ""
	if !anyway {
		n = min(n, ref.window-len(ref.held()))
		if _, kept := ref.bytes(); kept >= ref.limits.KeptBytes {
			n, blocked = 0, "results not collected"
		}
	}
	var tasks []*refTask
	for len(tasks) < n {
		t := ref.next()
		if t == nil {
			break
		}
		t.state = skeleton.Leased
		tasks = append(tasks, t)
	}
	if len(ref.waiting) == 0 {
		blocked = ""
	}
	m.equal("tasks taken", labels(got.Leases), fmt.Sprint(tasks))
	for i, t := range tasks {
		l := &refLease{Lease: got.Leases[i], task: t, end: ref.now + ledger.LeaseTime, taken: ref.now}
		m.checkLease(l)
		t.lease, t.ref = l, l.Ref
		m.leases = append(m.leases, l)
	}
	m.equal("taken", []any{got.Window, got.Live, got.Waiting, got.Blocked}, []any{ref.window, len(ref.held()), len(ref.waiting), blocked})
	next := never
	ref.all(func(t *refTask) {
		if t.lease != nil {
			next = min(next, t.lease.end-ref.now)
		}
		if t.state == skeleton.Delayed {
			next = min(next, t.until-ref.now)
		}
	})
	if next == never {
		next = 0
	}
	m.equal("something ends", got.Next > 0, next > 0)
	m.near("next", got.Next, next)
}

func (m *model) checkLease(l *refLease) {
	t := l.task
	body, err := m.l.Body(m.ctx, l.Lease)
	m.must(err)
	m.equal("lease", []any{l.Attempt, l.Lost, len(body), l.Size, l.Key, l.Class, l.Tenant, l.Attempts, l.NoRetry, l.Farm, l.Due.IsZero()},
		[]any{t.failures + 1, t.lost, t.body, t.body, t.key, t.class, t.tenant, t.attempts, t.noRetry, m.farm, t.due == never})
	m.near("accepted", l.Accepted.Sub(m.base), t.accepted)
	m.near("taken", l.Taken.Sub(m.base), m.ref.now)
	if t.due != never {
		m.near("due", l.Due.Sub(m.base), t.due)
	}
	for _, o := range m.leases {
		if o.task == t && o.Fence >= l.Fence {
			m.fail("fence %d after %d", l.Fence, o.Fence)
		}
	}
}

func labels(leases []ledger.Lease) string {
	list := make([]string, len(leases))
	for i, l := range leases {
		list[i] = fmt.Sprintf("%s/%d", l.Job, l.Index)
	}
	return fmt.Sprint(list)
}

// someLeases draws different leases, old and current ones.
func (m *model) someLeases(max int) (list []*refLease) {
	for range rapid.IntRange(0, max).Draw(m.T, "leases") {
		from := m.leases
		if !chance(m.T, "an old one", 5) {
			from = nil
			for _, t := range m.ref.held() {
				from = append(from, t.lease)
			}
		}
		if l := pick(m.T, "lease", from); l != nil && !slices.ContainsFunc(list, func(o *refLease) bool { return o.task == l.task }) {
			list = append(list, l)
		}
	}
	return list
}

// outcomes draws how leases end. Results come first and by ref: in which order a
// ledger takes the outcomes of one call is left to it.
func (m *model) outcomes() (outcomes []ledger.Outcome, leases []*refLease) {
	kinds := []ledger.Kind{ledger.Success, ledger.Success, ledger.Success, ledger.Failed, ledger.TimedOut, ledger.Lost, ledger.Rejected, ledger.Released}
	var done []ledger.Outcome
	var doneLeases []*refLease
	list := m.someLeases(8)
	slices.SortFunc(list, func(a, b *refLease) int { return strings.Compare(a.Ref, b.Ref) })
	for _, l := range list {
		o := ledger.Outcome{Lease: l.Lease, Kind: pick(m.T, "kind", kinds), Status: 200, Body: make([]byte, rapid.IntRange(0, 6).Draw(m.T, "answer"))}
		if o.Kind == ledger.Success {
			o.Service, o.Waited = 3*time.Second, time.Second
			done, doneLeases = append(done, o), append(doneLeases, l)
			continue
		}
		o.Reason = "because"
		o.Delay = pick(m.T, "delay", []time.Duration{0, grain, 2 * grain})
		outcomes, leases = append(outcomes, o), append(leases, l)
	}
	return append(done, outcomes...), append(doneLeases, leases...)
}

func (m *model) settle() {
	outcomes, leases := m.outcomes()
	got, err := m.l.Settle(m.ctx, outcomes, 0)
	m.must(err)
	m.settled(got, outcomes, leases)
}

func (m *model) settled(got ledger.Settled, outcomes []ledger.Outcome, leases []*refLease) {
	want := ledger.Settled{Verdicts: make([]ledger.Verdict, len(outcomes)), Window: m.ref.window}
	for i, o := range outcomes {
		want.Verdicts[i] = m.ref.settle(o, leases[i])
	}
	m.ref.books()
	want.Live, want.Waiting = len(m.ref.held()), len(m.ref.waiting)
	m.equal("settled", got, want)
}

func (m *model) exchange() {
	outcomes, leases := m.outcomes()
	max := rapid.IntRange(0, 8).Draw(m.T, "max")
	s, t, err := m.l.Exchange(m.ctx, "two", outcomes, 0, max)
	m.must(err)
	m.settled(s, outcomes, leases)
	m.taken(t, max, false)
}

func (m *model) renew() {
	list := m.someLeases(6)
	leases, want := make([]ledger.Lease, len(list)), make([]ledger.Standing, len(list))
	for i, l := range list {
		leases[i] = l.Lease
		leases[i].Timeout = pick(m.T, "timeout", []time.Duration{0, grain / 2, 5 * grain / 2})
		if l.task.lease != l {
			want[i] = ledger.WasLost
			continue
		}
		l.end = m.ref.now + ledger.LeaseTime
		switch {
		case l.task.state == skeleton.Cancelled:
			want[i] = ledger.WasCancel
		case leases[i].Timeout > 0 && m.ref.now-l.taken > leases[i].Timeout:
			want[i] = ledger.HasTimeout
		default:
			want[i] = ledger.Held
		}
	}
	got, err := m.l.Renew(m.ctx, leases)
	m.must(err)
	m.equal("standings", got, want)
}

func (m *model) advance() {
	m.pass(pick(m.T, "by", []time.Duration{grain, grain, grain, 2 * grain, 3 * grain, 10 * grain, 60 * grain}))
}

func (m *model) publish() {
	ready, slots := rapid.IntRange(0, 3).Draw(m.T, "ready"), rapid.IntRange(1, 6).Draw(m.T, "slots")
	s := skeleton.DefaultSettings()
	s.Slots = slots
	m.must(ledger.Publish(m.ctx, m.store, skeleton.Roster{Farms: []skeleton.Farm{{Name: m.farm, Settings: s, Ready: ready, Target: 3}}}))
	m.ref.window = ready * slots
}

func (m *model) sweep() {
	for _, t := range m.ref.held() {
		if j := t.job; j.expires > 0 && j.expires <= m.ref.now && t.lease.end > m.ref.now {
			m.Skip("whether a job expires while its cancelled tasks still run is left to the ledger")
		}
	}
	for more := true; more; {
		var err error
		more, err = m.l.Sweep(m.ctx)
		m.must(err)
	}
	m.ref.refresh()
	m.ref.expire()
}

// acknowledge drops a stretch of what a reader of the job would have got.
func (m *model) acknowledge() {
	j := m.anyJob()
	to := j.base
	if n := rapid.IntRange(0, 10).Draw(m.T, "results"); j.ordered {
		for to < len(j.tasks) && n > 0 && (j.ended > 0 || slices.Contains([]skeleton.State{skeleton.Done, skeleton.Dead}, j.tasks[to].state)) {
			to++
			n--
		}
	} else {
		to = min(len(j.stream), to+n)
	}
	err := m.l.Acknowledge(m.ctx, j.id, j.ordered, to)
	if !m.there(j) {
		m.equal("acknowledge of no job", errors.Is(err, ledger.ErrNotFound), true)
		return
	}
	m.must(err)
	j.acknowledge(to)
}

func (m *model) redrive() {
	dead := m.ref.dead()
	var refs []string
	limit, want := rapid.IntRange(1, 4).Draw(m.T, "limit"), 0
	if chance(m.T, "by name", 2) {
		refs = []string{}
		var named []*refTask
		for range limit {
			if t := pick(m.T, "letter", dead); t != nil && !slices.Contains(named, t) {
				named = append(named, t)
				refs = append(refs, t.ref)
			}
		}
		dead, limit = named, len(named)
	}
	got, err := m.l.Redrive(m.ctx, refs, limit)
	m.must(err)
	for _, t := range dead {
		if want < limit && m.ref.redrive(t) {
			want++
		}
	}
	m.equal("redriven", got, want)
}

func (m *model) callbacks() {
	got, err := m.l.Callbacks(m.ctx, 100)
	m.must(err)
	var want, have []string
	for _, j := range m.ref.jobs {
		if j.owed > 0 && j.owed <= m.ref.now {
			j.tries++
			j.owed = m.ref.now + ledger.CallbackLease
			want = append(want, fmt.Sprint(j.id, j.tries))
		}
	}
	for _, due := range got {
		have = append(have, fmt.Sprint(due.Job.ID, due.Try))
	}
	slices.Sort(have)
	m.equal("callbacks", have, want)
	if len(got) == 0 {
		return
	}
	id := pick(m.T, "job told", got).Job.ID
	again := pick(m.T, "again", []time.Duration{0, 2 * grain})
	m.must(m.l.CallbackDone(m.ctx, id, again))
	for _, j := range m.ref.jobs {
		if j.id != id {
			continue
		}
		if j.owed = 0; again > 0 {
			j.owed = m.ref.now + again
		}
	}
}
