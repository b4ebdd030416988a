package ledgertest

import (
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// maxDues is how many kinds of tasks of one history have a due of their own.
const maxDues = 5

// newTasks draws the tasks of a submission.
func (m *model) newTasks() []skeleton.NewTask {
	t := m.T
	list := make([]skeleton.NewTask, rapid.IntRange(0, 8).Draw(t, "tasks"))
	if chance(t, "many", 8) {
		list = make([]skeleton.NewTask, 30)
	}
	var like skeleton.NewTask
	for i := range list {
		if i == 0 || chance(t, "another kind", 3) {
			like = skeleton.NewTask{Class: pick(t, "class", []int{0, 1, 5}), Tenant: pick(t, "tenant", []string{"A", "B", "C", ""}),
				Attempts: pick(t, "attempts", []int{0, 1, 2}), NoRetry: chance(t, "no retry", 4)}
			switch rapid.IntRange(0, 4).Draw(t, "due") {
			case 0, 1:
				like.Deadline = pick(t, "deadline", []time.Duration{grain, 2 * grain, 5 * grain})
			case 2:
				if m.dues < maxDues {
					// Off all other instants, and so that ageing, which is ten times as
					// far off, tells them apart as well.
					off := 500*time.Millisecond + time.Duration(m.dues)*300*time.Millisecond
					like.Due = m.base.Add(m.ref.now + pick(t, "at", []time.Duration{-grain, grain, 3 * grain}) + off)
					m.dues++
				}
			}
		}
		list[i] = like
		list[i].Body = make([]byte, rapid.IntRange(1, 9).Draw(t, "bytes"))
		if chance(t, "keyed", 8) {
			list[i].Key = pick(t, "key", []string{"k1", "k2", "k3", "k4"})
		}
	}
	return list
}

func (m *model) submit() {
	sub := ledger.Submission{Job: skeleton.Job{ID: m.newID(), Open: chance(m.T, "open", 3), Ordered: chance(m.T, "ordered", 2)}}
	if len(m.ref.jobs) > 0 && chance(m.T, "known id", 15) {
		sub.Job.ID = pick(m.T, "job", m.ref.jobs).id
	}
	if chance(m.T, "callback", 3) {
		sub.Job.Callback = "http://x/"
	}
	m.commit(sub)
}

func (m *model) append() {
	m.commit(ledger.Submission{Job: skeleton.Job{ID: m.anyJob().id}, Append: true})
}

// commit submits random tasks to both.
func (m *model) commit(sub ledger.Submission) {
	if chance(m.T, "submission key", 6) {
		sub.Key = pick(m.T, "key of the submission", []string{"s1", "s2", "s3"})
	}
	list := m.newTasks()
	got, err := m.send(sub, list)
	ref := &m.ref
	if known, ok := ref.receipts[sub.Key]; ok {
		if known.added != sub.Append || known.added && known.job.id != sub.Job.ID {
			m.equal("key of another submission", errors.Is(err, ledger.ErrKeyUsed), true)
			return
		}
		m.must(err)
		m.equal("receipt", []any{got.Repeated, got.Job.ID, got.First, got.Tasks, got.Duplicates}, []any{true, known.job.id, known.first, known.n, known.d})
		return
	}
	j, possible := m.refusals(sub, list)
	if len(possible) > 0 {
		if !slices.ContainsFunc(possible, func(want error) bool { return errors.Is(err, want) }) {
			m.fail("submission: error %v instead of %v", err, possible)
		}
		return
	}
	m.must(err)
	if j == nil {
		j = &refJob{id: sub.Job.ID, open: sub.Job.Open, ordered: sub.Job.Ordered, callback: sub.Job.Callback}
		ref.jobs = append(ref.jobs, j)
	}
	receipt := refReceipt{job: j, first: len(j.tasks), added: sub.Append}
	ref.seq++
	for _, nt := range list {
		if nt.Key != "" {
			if ref.keys[nt.Key] {
				receipt.d++
				continue
			}
			ref.keys[nt.Key] = true
			j.keys = append(j.keys, nt.Key)
		}
		m.accept(j, nt)
		receipt.n++
	}
	if sub.Key != "" {
		ref.receipts[sub.Key] = receipt
	}
	ref.books()
	m.equal("receipt", []any{got.Repeated, got.Job.ID, got.First, got.Tasks, got.Duplicates, got.Job.Ended.IsZero()},
		[]any{false, j.id, receipt.first, receipt.n, receipt.d, j.ended == 0})
}

// refusals lists why a submission may be refused.
func (m *model) refusals(sub ledger.Submission, list []skeleton.NewTask) (j *refJob, possible []error) {
	ref := &m.ref
	if at := slices.IndexFunc(ref.jobs, func(j *refJob) bool { return j.id == sub.Job.ID }); at >= 0 {
		j = ref.jobs[at]
	}
	switch {
	case sub.Append && j == nil:
		possible = append(possible, ledger.ErrNotFound)
	case sub.Append && !j.open:
		possible = append(possible, ledger.ErrClosed)
	case !sub.Append && j != nil:
		possible = append(possible, ledger.ErrExists)
	}
	bytes := 0
	for _, t := range list {
		bytes += len(t.Body)
	}
	c := ref.counts()
	queued, _ := ref.bytes()
	if len(list) > 0 && (c.Waiting+c.Leased+c.Delayed+len(list) > ref.limits.QueueTasks || queued+bytes > ref.limits.QueueBytes) {
		possible = append(possible, ledger.ErrFull)
	}
	return j, possible
}

func (m *model) send(sub ledger.Submission, list []skeleton.NewTask) (r ledger.Receipt, err error) {
	s, err := m.l.Stage(m.ctx, sub)
	m.must(err)
	half := len(list) / 2
	if err = s.Add(m.ctx, list[:half]); err == nil {
		if err = s.Add(m.ctx, list[half:]); err == nil {
			if r, err = s.Commit(m.ctx); err == nil {
				return r, nil
			}
		}
	}
	m.must(s.Abort(m.ctx))
	return r, err
}

// accept adds a task to the reference.
func (m *model) accept(j *refJob, nt skeleton.NewTask) {
	t := &refTask{job: j, index: len(j.tasks), body: len(nt.Body), key: nt.Key, tenant: nt.Tenant, class: nt.Class, due: never,
		accepted: m.ref.now, seq: m.ref.seq, attempts: nt.Attempts, noRetry: nt.NoRetry}
	if t.attempts == 0 {
		t.attempts = skeleton.DefaultAttempts
	}
	switch {
	case nt.Deadline > 0:
		t.due = m.ref.now + nt.Deadline
	case !nt.Due.IsZero():
		t.due = nt.Due.Sub(m.base)
	}
	j.tasks = append(j.tasks, t)
	m.ref.wait(t)
}
