package memledger

import (
	"context"
	"fmt"
	"slices"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// stage collects the tasks of a submission. Nothing links it to the farm but
// its bytes and its last sign of life.
type stage struct {
	f      *farm
	sub    ledger.Submission
	tasks  []task
	runs   []stagedRun
	keyed  int
	bytes  int
	bodies arena

	swept, over, known bool     // guarded by f.mu; known: the submission is a repeated one
	seen               int64    // guarded by f.mu
	committed          *receipt // nil: not yet; guarded by f.mu
}

// stagedRun is n tasks of the same shape.
type stagedRun struct {
	shape shape
	n     int
}

// receipt is what a repeated submission is told.
type receipt struct {
	job                *job
	first, tasks, dups int
	added              bool // to a job that was there
}

// Stage implements ledger.Producer.
func (f *farm) Stage(ctx context.Context, sub ledger.Submission) (ledger.Stage, error) {
	if err := f.owns(sub.Job.ID); err != nil {
		return nil, err
	}
	return &stage{f: f, sub: sub}, ctx.Err()
}

// Add implements ledger.Stage.
func (s *stage) Add(ctx context.Context, tasks []skeleton.NewTask) error {
	if len(tasks) == 0 {
		return ctx.Err()
	}
	bytes, small := 0, 0
	for i := range tasks {
		n := len(tasks[i].Body)
		bytes += n
		if n <= ledger.MaxInline {
			small += n
		}
	}
	if err := s.f.do(ctx, func(now int64) error { return s.admit(now, len(tasks), bytes) }); err != nil {
		return err
	}
	if s.known {
		return nil // Commit will return the first receipt
	}
	s.tasks = slices.Grow(s.tasks, len(tasks))
	for i := range tasks {
		if err := s.add(&tasks[i], small); err != nil {
			return err
		}
		if n := len(tasks[i].Body); n <= ledger.MaxInline {
			small -= n
		}
	}
	return nil
}

// admit checks the limits early and books the bytes to come.
func (s *stage) admit(now int64, tasks, bytes int) error {
	f, limits := s.f, s.f.store.limits
	switch {
	case s.swept || s.over:
		return ledger.ErrGone
	case f.repeats(s.sub):
		s.known = true
		return nil
	case len(s.tasks)+tasks > limits.QueueTasks || s.bytes+bytes > limits.QueueBytes:
		return ledger.ErrTooLarge
	case f.unfinished()+len(s.tasks)+tasks > limits.QueueTasks || f.queueBytes+f.stagedBytes+bytes > limits.QueueBytes:
		return ledger.ErrFull
	}
	s.seen = now
	s.bytes += bytes
	f.stagedBytes += bytes
	f.stages[s] = struct{}{}
	return nil
}

// repeats reports whether the farm knows a submission.
func (f *farm) repeats(sub ledger.Submission) bool {
	_, known := f.receipts[sub.Key]
	return known && sub.Key != ""
}

func (f *farm) unfinished() int { return f.n.Waiting + f.n.Leased + f.n.Delayed }

var plain = &meta{} // of a task that says nothing of itself

func (s *stage) add(t *skeleton.NewTask, expect int) error {
	limits := s.f.store.limits
	sh := shapeOf(t)
	switch n := len(s.runs); {
	case n > 0 && s.runs[n-1].shape == sh:
		s.runs[n-1].n++
	case n == limits.StageRuns:
		return fmt.Errorf("%w: more than %d changes of class, tenant, deadline or retry", ledger.ErrTooLarge, n)
	default:
		s.runs = append(s.runs, stagedRun{sh, 1})
	}
	if t.Key != "" {
		if s.keyed == limits.KeyedTasks {
			return fmt.Errorf("%w: more than %d tasks with a key", ledger.ErrTooLarge, limits.KeyedTasks)
		}
		s.keyed++
	}
	m := plain
	if n := len(s.tasks); n > 0 {
		m = s.tasks[n-1].meta
	}
	if want := (meta{t.Type, t.Key, t.Stage, t.Parent, t.Timeout}); *m != want {
		m = &want
	}
	s.tasks = append(s.tasks, task{meta: m, body: s.bodies.keep(t.Body, expect)})
	return nil
}

// leave unlinks a stage from the farm.
func (s *stage) leave() {
	if _, linked := s.f.stages[s]; linked {
		delete(s.f.stages, s)
		s.f.stagedBytes -= s.bytes
	}
}

// Abort implements ledger.Stage.
func (s *stage) Abort(ctx context.Context) error {
	return s.f.do(ctx, func(int64) error {
		s.leave()
		s.over, s.tasks, s.runs = true, nil, nil
		return nil
	})
}

// Commit implements ledger.Stage.
func (s *stage) Commit(ctx context.Context) (ledger.Receipt, error) {
	var r receipt
	var out ledger.Receipt
	err := s.f.do(ctx, func(now int64) error {
		repeated := s.f.repeats(s.sub)
		if s.committed != nil {
			r, repeated = *s.committed, false
		} else if repeated {
			s.leave()
			r = s.f.receipts[s.sub.Key]
			if r.added != s.sub.Append || r.added && r.job.ID != s.sub.Job.ID {
				return ledger.ErrKeyUsed
			}
		} else if err := s.commit(now, &r); err != nil {
			return err
		}
		s.f.settleBooks(now) // an empty job ends at once
		out = ledger.Receipt{Job: r.job.Job, First: r.first, Tasks: r.tasks, Duplicates: r.dups, Repeated: repeated}
		return nil
	})
	return out, err
}

// commit makes the stage's tasks visible.
func (s *stage) commit(now int64, out *receipt) error {
	f, limits := s.f, s.f.store.limits
	j := f.jobs[s.sub.Job.ID]
	switch {
	case s.swept || s.over:
		return ledger.ErrGone
	case s.sub.Append && j == nil:
		return fmt.Errorf("%w: %s", ledger.ErrNotFound, s.sub.Job.ID)
	case s.sub.Append && !j.Open:
		return ledger.ErrClosed
	case !s.sub.Append && j != nil:
		return ledger.ErrExists
	case len(s.tasks) > limits.QueueTasks || s.bytes > limits.QueueBytes:
		return ledger.ErrTooLarge
	case len(s.tasks) > 0 && (f.unfinished()+len(s.tasks) > limits.QueueTasks || f.queueBytes+s.bytes > limits.QueueBytes):
		return ledger.ErrFull
	}
	s.leave()
	s.over, s.committed = true, out
	if j == nil {
		j = f.create(now, s.sub.Job)
	}
	out.job, out.first, out.added = j, j.Total, s.sub.Append
	out.dups = s.leaveOut(j)
	out.tasks = len(s.tasks)
	s.accept(now, j)
	if s.sub.Key != "" {
		f.receipts[s.sub.Key] = *out
		j.receipts = append(j.receipts, s.sub.Key)
	}
	return nil
}

// leaveOut drops the tasks whose key the farm knows and notes the others' keys.
func (s *stage) leaveOut(j *job) (dups int) {
	if s.keyed == 0 {
		return 0
	}
	kept, i := s.tasks[:0], 0
	for r := range s.runs {
		for end := i + s.runs[r].n; i < end; i++ {
			t := &s.tasks[i]
			if key := t.meta.key; key != "" {
				if s.f.keys[key] != nil {
					dups++
					s.bytes -= len(t.body)
					s.runs[r].n--
					continue
				}
				s.f.keys[key] = j
				j.keys = append(j.keys, key)
			}
			kept = append(kept, *t)
		}
	}
	clear(s.tasks[len(kept):])
	s.tasks = kept
	return dups
}

// accept makes the tasks wait, as runs.
func (s *stage) accept(now int64, j *job) {
	f := s.f
	tasks := slices.Clip(s.tasks)
	if cap(s.tasks) > len(s.tasks)*9/8 {
		tasks = slices.Clone(s.tasks)
	}
	first := j.Total
	if len(tasks) > 0 {
		j.pieces = append(j.pieces, piece{first, tasks})
	}
	at := 0
	for _, sr := range s.runs {
		if sr.n == 0 {
			continue
		}
		due := sr.shape.due
		if sr.shape.deadline > 0 {
			due = now + sr.shape.deadline
		}
		f.enqueue(now, j, sr.shape, due, first+at, tasks[at:at+sr.n])
		at += sr.n
	}
	s.tasks, s.runs = nil, nil
	f.n.Submitted += len(tasks)
	f.queueBytes += s.bytes
	j.Total += len(tasks)
	j.BodyBytes += s.bytes
	f.touch(j)
	if len(tasks) > 0 {
		f.wakeUp()
	}
}

// enqueue makes a run of tasks wait at the tail.
func (f *farm) enqueue(now int64, j *job, sh shape, due int64, first int, tasks []task) {
	f.seq++
	r := &run{job: j, seq: f.seq, first: first, tasks: tasks, shape: sh, due: due, accepted: now}
	for i := range tasks {
		t := &tasks[i]
		t.run, t.index, t.state = r, int32(first+i), inRun
	}
	f.runs[r.seq] = r
	j.runs = append(j.runs, r)
	r.entry = f.push(r, first, len(tasks))
	f.n.Waiting += len(tasks)
}
