package ledgertest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// The reference is a ledger in plain slices and maps that looks at everything
// every time. It shares no code with any implementation. Times are durations
// since its beginning.

type refTask struct {
	job            *refJob
	index          int
	body           int // bytes
	key, tenant    string
	class          int
	due            time.Duration // none: math.MaxInt64
	accepted       time.Duration
	seq            int // of the commit
	attempts       int
	noRetry        bool
	state          skeleton.State
	failures, lost int
	lease          *refLease // held, also while cancelled
	until          time.Duration
	died           time.Duration
	ref            string // as the ledger told it last
}

type refLease struct {
	ledger.Lease
	task       *refTask
	end, taken time.Duration
}

type refReceipt struct {
	job         *refJob
	first, n, d int
	added       bool // to a job that was there
}

type reference struct {
	now             time.Duration
	limits          ledger.Limits
	window          int
	jobs            []*refJob // oldest first
	rings           [skeleton.Classes][]string
	waiting         []*refTask
	keys            map[string]bool
	receipts        map[string]refReceipt
	seq             int
	late, timed     int
	refused, lapsed int
}

const never = time.Duration(math.MaxInt64)

func (r *reference) all(fn func(t *refTask)) {
	for _, j := range r.jobs {
		for _, t := range j.tasks {
			fn(t)
		}
	}
}

// leases lists the tasks that hold a lease; by its end, then by place.
func (r *reference) held() (list []*refTask) {
	r.all(func(t *refTask) {
		if t.lease != nil {
			list = append(list, t)
		}
	})
	slices.SortFunc(list, func(a, b *refTask) int { return cmp.Or(cmp.Compare(a.lease.end, b.lease.end), a.compare(b)) })
	return list
}

func (t *refTask) compare(o *refTask) int {
	return cmp.Or(cmp.Compare(t.seq, o.seq), cmp.Compare(t.index, o.index))
}

func (t *refTask) ageing() time.Duration {
	deadline := t.due - t.accepted
	if t.due == never || deadline <= 0 {
		deadline = ledger.NoDeadline
	}
	return t.accepted + ledger.AgeFactor*deadline
}

// wait lets a task wait at its place.
func (r *reference) wait(t *refTask) {
	t.state = skeleton.Waiting
	r.waiting = append(r.waiting, t)
	if !slices.Contains(r.rings[t.class], t.tenant) {
		r.rings[t.class] = append(r.rings[t.class], t.tenant)
	}
}

// leave takes a task out of the queue.
func (r *reference) leave(t *refTask) {
	r.waiting = slices.DeleteFunc(r.waiting, func(o *refTask) bool { return o == t })
	if !slices.ContainsFunc(r.waiting, func(o *refTask) bool { return o.class == t.class && o.tenant == t.tenant }) {
		r.rings[t.class] = slices.DeleteFunc(r.rings[t.class], func(name string) bool { return name == t.tenant })
	}
}

// next takes the task that is served next out of the queue.
func (r *reference) next() *refTask {
	first := func(better func(a, b *refTask) int, ok func(*refTask) bool) (best *refTask) {
		for _, t := range r.waiting {
			if ok(t) && (best == nil || better(t, best) < 0) {
				best = t
			}
		}
		return best
	}
	byAge := func(a, b *refTask) int { return cmp.Or(cmp.Compare(a.ageing(), b.ageing()), a.compare(b)) }
	if t := first(byAge, func(t *refTask) bool { return t.ageing() <= r.now }); t != nil {
		r.leave(t)
		return t
	}
	for class := range r.rings {
		if len(r.rings[class]) == 0 {
			continue
		}
		tenant := r.rings[class][0]
		byDue := func(a, b *refTask) int { return cmp.Or(cmp.Compare(a.due, b.due), a.compare(b)) }
		t := first(byDue, func(t *refTask) bool { return t.class == class && t.tenant == tenant })
		r.rings[class] = append(r.rings[class][1:], tenant)
		r.leave(t)
		return t
	}
	return nil
}

// refresh ends what is over: leases, then delays.
func (r *reference) refresh() {
	for _, t := range r.held() {
		if t.lease.end > r.now {
			continue
		}
		t.lease = nil
		if t.state == skeleton.Leased {
			r.lapsed++
			r.lose(t, 0)
		}
	}
	var over []*refTask
	r.all(func(t *refTask) {
		if t.state == skeleton.Delayed && t.until <= r.now {
			over = append(over, t)
		}
	})
	slices.SortFunc(over, func(a, b *refTask) int { return cmp.Or(cmp.Compare(a.until, b.until), a.compare(b)) })
	for _, t := range over {
		r.wait(t)
	}
	r.books()
}

func (r *reference) rest(t *refTask, delay time.Duration) {
	if delay == 0 {
		r.wait(t)
		return
	}
	t.state, t.until = skeleton.Delayed, r.now+delay
}

func (r *reference) lose(t *refTask, delay time.Duration) {
	t.lost++
	switch {
	case t.noRetry:
		r.die(t, "unknown outcome", 0, 0)
	case t.lost > skeleton.LostBudget:
		r.die(t, "worker lost", 0, 0)
	default:
		r.rest(t, delay)
	}
}

func (r *reference) die(t *refTask, reason string, status, answer int) {
	late := r.decide(t, t.due < never)
	t.state, t.died = skeleton.Dead, r.now
	t.job.stream = append(t.job.stream, &refResult{task: t, state: skeleton.Dead, body: answer, reason: reason, attempt: t.failures,
		lost: t.lost, late: late, sojourn: r.now - t.accepted, finished: r.now, status: status})
}

// decide counts a task with a due that ended. It returns late.
func (r *reference) decide(t *refTask, late bool) bool {
	if t.due < never {
		r.timed++
	}
	if late {
		t.job.late++
		r.late++
	}
	return late
}

// settle returns the verdict.
func (r *reference) settle(o ledger.Outcome, l *refLease) ledger.Verdict {
	t := l.task
	if t.lease != l {
		r.refused++
		return ledger.Refused
	}
	t.lease = nil
	switch {
	case t.state == skeleton.Cancelled:
	case o.Kind == ledger.Success:
		late := r.decide(t, r.now > t.due)
		t.state = skeleton.Done
		t.job.stream = append(t.job.stream, &refResult{task: t, state: skeleton.Done, body: len(o.Body), attempt: t.failures + 1, lost: t.lost,
			late: late, wait: l.taken - t.accepted + o.Waited, service: o.Service, sojourn: r.now - t.accepted, finished: r.now, status: o.Status})
	case o.Kind == ledger.Released:
		r.wait(t)
	case o.Kind == ledger.Lost:
		r.lose(t, o.Delay)
	case o.Kind == ledger.Rejected:
		r.die(t, o.Reason, o.Status, len(o.Body))
	default:
		t.failures++
		switch {
		case o.Kind == ledger.TimedOut && t.noRetry:
			r.die(t, "unknown outcome", o.Status, len(o.Body))
		case t.failures >= t.attempts:
			r.die(t, o.Reason, o.Status, len(o.Body))
		default:
			r.rest(t, o.Delay)
		}
	}
	return ledger.Verdict(t.state)
}

// dead lists dead letters, oldest first.
func (r *reference) dead() (list []*refTask) {
	r.all(func(t *refTask) {
		if t.state == skeleton.Dead {
			list = append(list, t)
		}
	})
	slices.SortFunc(list, func(a, b *refTask) int { return cmp.Or(cmp.Compare(a.died, b.died), a.compare(b)) })
	return list
}

// redrive reports whether the task was dead and may live again.
func (r *reference) redrive(t *refTask) bool {
	if t.state != skeleton.Dead || t.job.cancel {
		return false
	}
	for _, res := range t.job.stream {
		if res.task == t {
			res.gone = true
		}
	}
	if t.due != never {
		t.due = r.now + max(0, t.due-t.accepted)
	}
	r.seq++
	t.accepted, t.seq, t.failures, t.lost = r.now, r.seq, 0, 0
	t.job.ended, t.job.expires, t.job.owed = 0, 0, 0
	r.wait(t)
	return true
}

func (r *reference) counts() (c ledger.Counts) {
	r.all(func(t *refTask) {
		c.Submitted++
		switch t.state {
		case skeleton.Waiting:
			c.Waiting++
		case skeleton.Leased:
			c.Leased++
		case skeleton.Delayed:
			c.Delayed++
		case skeleton.Done:
			c.Done++
		case skeleton.Dead:
			c.Dead++
		case skeleton.Cancelled:
			c.Cancelled++
		}
	})
	return c
}

func (r *reference) bytes() (queued, kept int) {
	for _, j := range r.jobs {
		q, k := j.bytes()
		queued += q
		kept += k
	}
	return queued, kept
}

// What rapid prints of a draw.
func (j *refJob) GoString() string   { return j.id }
func (t *refTask) GoString() string  { return t.String() }
func (l *refLease) GoString() string { return fmt.Sprintf("%s, fence %d", l.task, l.Fence) }

func (t *refTask) String() string { return fmt.Sprintf("%s/%d", t.job.id, t.index) }
