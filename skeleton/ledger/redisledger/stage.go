package redisledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// stage writes tasks under a piece that nothing links until Commit.
type stage struct {
	l     *farm
	sub   ledger.Submission
	unit  string
	piece string
	runs  []stagedRun
	keys  []any // off, key, bytes of each task with a key
	tasks int
	bytes int
	begun bool
	over  bool
}

// stagedRun is a stretch of tasks that differ in nothing the queue looks at.
type stagedRun struct {
	shape  shape
	off, n int
}

type shape struct {
	class    int
	tenant   string
	deadline time.Duration
	due      int64 // µs
	attempts int
	noRetry  bool
}

func shapeOf(t skeleton.NewTask) shape {
	s := shape{class: t.Class, tenant: t.Tenant, deadline: t.Deadline, attempts: t.Attempts, noRetry: t.NoRetry}
	if s.attempts == 0 {
		s.attempts = skeleton.DefaultAttempts
	}
	if s.deadline == 0 && !t.Due.IsZero() {
		s.due = t.Due.UnixMicro()
	}
	return s
}

// Stage implements ledger.Producer.
func (l *farm) Stage(_ context.Context, sub ledger.Submission) (ledger.Stage, error) {
	unit, err := l.unit(sub.Job.ID)
	if err != nil {
		return nil, err
	}
	return &stage{l: l, sub: sub, unit: unit, piece: ulid.Make().String()}, nil
}

// Add implements ledger.Stage.
func (s *stage) Add(ctx context.Context, tasks []skeleton.NewTask) error {
	for len(tasks) > 0 {
		n, bytes := 0, 0
		for n < len(tasks) && n < ledger.MaxBatch && (n == 0 || bytes+len(tasks[n].Body) <= 4<<20) {
			bytes += len(tasks[n].Body)
			n++
		}
		if err := s.add(ctx, tasks[:n], bytes); err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

func (s *stage) add(ctx context.Context, tasks []skeleton.NewTask, bytes int) error {
	limits := s.l.store.limits
	if s.tasks+len(tasks) > limits.QueueTasks || s.bytes+bytes > limits.QueueBytes {
		return ledger.ErrTooLarge
	}
	first := 1
	if s.begun {
		first = 0
	}
	switch state, err := s.l.run(ctx, scriptTouch, s.piece, first, len(tasks), bytes, limits.QueueTasks, limits.QueueBytes, s.tasks).Text(); {
	case err != nil:
		return check("stage", err)
	case state == "GONE":
		return ledger.ErrGone
	case state == "FULL":
		return ledger.ErrFull
	}
	s.begun = true
	pipe := s.l.store.rdb.Pipeline()
	fields := make([]any, 0, 2*len(tasks))
	for _, t := range tasks {
		inline := len(t.Body) <= ledger.MaxInline
		raw, err := encodeTask(t, inline)
		if err != nil {
			return err
		}
		off := place(s.tasks)
		if !inline {
			pipe.Set(ctx, s.l.key("b", s.piece, off), t.Body, 0)
			pipe.SAdd(ctx, s.l.key("x", s.piece), off)
		}
		fields = append(fields, off, raw)
		if err := s.note(t); err != nil {
			return err
		}
	}
	pipe.HSet(ctx, s.l.key("p", s.piece), fields...)
	_, err := pipe.Exec(ctx)
	return check("stage", err)
}

// place names a task inside its piece.
func place(off int) string { return fmt.Sprintf("%07d", off) }

// note remembers what Commit has to say of a task.
func (s *stage) note(t skeleton.NewTask) error {
	limits := s.l.store.limits
	sh := shapeOf(t)
	if n := len(s.runs); n > 0 && s.runs[n-1].shape == sh {
		s.runs[n-1].n++
	} else if n == limits.StageRuns {
		return fmt.Errorf("%w: more than %d changes of class, tenant, deadline or retry", ledger.ErrTooLarge, n)
	} else {
		s.runs = append(s.runs, stagedRun{shape: sh, off: s.tasks, n: 1})
	}
	if t.Key != "" {
		if len(s.keys)/3 == limits.KeyedTasks {
			return fmt.Errorf("%w: more than %d tasks with a key", ledger.ErrTooLarge, limits.KeyedTasks)
		}
		s.keys = append(s.keys, s.tasks, t.Key, len(t.Body))
	}
	s.tasks++
	s.bytes += len(t.Body)
	return nil
}

// Commit implements ledger.Stage.
func (s *stage) Commit(ctx context.Context) (ledger.Receipt, error) {
	limits := s.l.store.limits
	job := s.sub.Job
	args := []any{s.unit, s.piece, flag(s.sub.Append), flag(job.Open), flag(job.Ordered), job.Callback, s.sub.Key, s.bytes,
		limits.QueueTasks, limits.QueueBytes, limits.Retention.Microseconds(), limits.DeadRetains.Microseconds(), len(s.runs)}
	for _, r := range s.runs {
		args = append(args, r.off, r.n, r.shape.class, r.shape.tenant, r.shape.deadline.Microseconds(), r.shape.due, r.shape.attempts, flag(r.shape.noRetry))
	}
	args = append(args, s.keys...)
	answer, err := s.l.run(ctx, scriptCommit, args...).Slice()
	if err != nil {
		return ledger.Receipt{}, check("commit", err)
	}
	switch answer[0] {
	case "ok":
		s.over = true
		return s.receipt(ctx, s.unit, int(answer[1].(int64)), int(answer[2].(int64)), int(answer[3].(int64)), false)
	case "repeated":
		f := strings.Split(answer[1].(string), ",")
		if len(f) != 4 {
			return ledger.Receipt{}, fmt.Errorf("redisledger: receipt %q", answer[1])
		}
		n := func(i int) int { v, _ := strconv.Atoi(f[i]); return v } // written by our own script
		return s.receipt(ctx, f[0], n(1), n(2), n(3), true)
	}
	return ledger.Receipt{}, commitErrors[answer[0].(string)]
}

var commitErrors = map[string]error{
	"FULL": ledger.ErrFull, "TOOLARGE": ledger.ErrTooLarge, "GONE": ledger.ErrGone,
	"EXISTS": ledger.ErrExists, "NOTFOUND": ledger.ErrNotFound, "CLOSED": ledger.ErrClosed,
}

func (s *stage) receipt(ctx context.Context, unit string, first, tasks, dups int, repeated bool) (ledger.Receipt, error) {
	job, err := s.l.Job(ctx, s.l.id(unit))
	if errors.Is(err, ledger.ErrUnavailable) {
		// The tasks are in; only the picture of the job could not be read.
		job, err = skeleton.Job{ID: s.l.id(unit), Farm: s.l.name, Open: s.sub.Job.Open, Ordered: s.sub.Job.Ordered, Total: first + tasks}, nil
	}
	return ledger.Receipt{Job: job, First: first, Tasks: tasks, Duplicates: dups, Repeated: repeated}, err
}

// Abort implements ledger.Stage. What it cannot remove now, the sweeper will.
func (s *stage) Abort(ctx context.Context) error {
	if s.over || !s.begun {
		return nil
	}
	s.over = true
	if err := s.l.run(ctx, scriptAbort, s.piece).Err(); err != nil {
		return check("abort", err)
	}
	return nil
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
