package redisledger

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

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
	known bool // the farm knows the submission's key: there is nothing to stage
	over  bool

	pending      []skeleton.NewTask // not written yet
	pendingBytes int
}

// batchBytes is how much is written in one round trip, about.
const batchBytes = 1 << 20

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
		s.due = max(1, t.Due.UnixMicro()) // 0 means none
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

// Add implements ledger.Stage. It writes in batches; a submission of one small
// batch goes out with Commit, in one script.
func (s *stage) Add(ctx context.Context, tasks []skeleton.NewTask) error {
	limits := s.l.store.limits
	if s.known {
		return nil
	}
	for _, t := range tasks {
		if s.tasks == limits.QueueTasks || s.bytes+len(t.Body) > limits.QueueBytes {
			return ledger.ErrTooLarge
		}
		if err := s.note(t); err != nil {
			return err
		}
		s.pending = append(s.pending, t)
		s.pendingBytes += len(t.Body)
		if len(s.pending) == ledger.MaxBatch || s.pendingBytes >= batchBytes {
			if err := s.flush(ctx); err != nil || s.known {
				return err
			}
		}
	}
	return nil
}

// flush begins or continues the stage with the pending tasks.
func (s *stage) flush(ctx context.Context) error {
	limits := s.l.store.limits
	state, err := s.l.run(ctx, scriptTouch, s.piece, flag(!s.begun), len(s.pending), s.pendingBytes, limits.QueueTasks, limits.QueueBytes,
		s.tasks-len(s.pending), s.sub.Key).Text()
	switch {
	case err != nil:
		return check("stage", err)
	case state == "known":
		s.known, s.pending = true, nil
		return nil
	case state != "ok":
		return stageErrors[state]
	}
	s.begun = true
	pipe := s.l.store.rdb.Pipeline()
	if err := s.write(ctx, pipe); err != nil {
		return err
	}
	_, err = pipe.Exec(ctx)
	return check("stage", err)
}

// write puts the pending tasks into a pipeline.
func (s *stage) write(ctx context.Context, pipe redis.Pipeliner) error {
	fields, err := s.records()
	if err != nil {
		return err
	}
	for i, t := range s.pending {
		if len(t.Body) > ledger.MaxInline {
			off := place(s.tasks - len(s.pending) + i)
			pipe.Set(ctx, s.l.key("b", s.piece, off), t.Body, 0)
			pipe.SAdd(ctx, s.l.key("x", s.piece), off)
		}
	}
	if len(fields) > 0 {
		pipe.HSet(ctx, s.l.key("p", s.piece), fields...)
	}
	clear(s.pending) // the bodies may go
	s.pending, s.pendingBytes = s.pending[:0], 0
	return nil
}

// records are the pending tasks as they are stored: off, record of each.
func (s *stage) records() ([]any, error) {
	fields := make([]any, 0, 2*len(s.pending))
	for i, t := range s.pending {
		raw, err := encodeTask(t, len(t.Body) <= ledger.MaxInline)
		if err != nil {
			return nil, err
		}
		fields = append(fields, place(s.tasks-len(s.pending)+i), raw)
	}
	return fields, nil
}

// small reports whether the whole submission can go with its commit.
func (s *stage) small() bool {
	return !s.begun && !slices.ContainsFunc(s.pending, func(t skeleton.NewTask) bool { return len(t.Body) > ledger.MaxInline })
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
	var records []any
	var err error
	if s.small() {
		records, err = s.records()
	} else if len(s.pending) > 0 {
		err = s.flush(ctx)
	}
	if err != nil {
		return ledger.Receipt{}, err
	}
	args := make([]any, 0, 14+8*len(s.runs)+len(records)+len(s.keys))
	args = append(args, s.unit, s.piece, flag(s.sub.Append), flag(job.Open), flag(job.Ordered), job.Callback, s.sub.Key, s.bytes,
		limits.QueueTasks, limits.QueueBytes, limits.Retention.Microseconds(), limits.DeadRetains.Microseconds(), len(s.runs), len(records)/2)
	for _, r := range s.runs {
		args = append(args, r.off, r.n, r.shape.class, r.shape.tenant, r.shape.deadline.Microseconds(), r.shape.due, r.shape.attempts, flag(r.shape.noRetry))
	}
	answer, err := s.l.run(ctx, scriptCommit, append(append(args, records...), s.keys...)...).Slice()
	if err != nil {
		return ledger.Receipt{}, check("commit", err)
	}
	switch answer[0] {
	case "ok":
		s.over = true
		job, err := s.l.job(s.unit, answer[4].(string))
		return ledger.Receipt{Job: job, First: integer(answer[1]), Tasks: integer(answer[2]), Duplicates: integer(answer[3])}, err
	case "repeated":
		s.over = true
		return s.repeated(ctx, answer[1].(string))
	}
	return ledger.Receipt{}, stageErrors[answer[0].(string)]
}

// What touch and commit refuse.
var stageErrors = map[string]error{
	"FULL": ledger.ErrFull, "TOOLARGE": ledger.ErrTooLarge, "GONE": ledger.ErrGone,
	"EXISTS": ledger.ErrExists, "NOTFOUND": ledger.ErrNotFound, "CLOSED": ledger.ErrClosed,
	"KEYUSED": ledger.ErrKeyUsed,
}

// repeated reads the receipt of the first submission with this key.
func (s *stage) repeated(ctx context.Context, raw string) (ledger.Receipt, error) {
	f := strings.Split(raw, ",")
	if len(f) != 5 {
		return ledger.Receipt{}, fmt.Errorf("redisledger: receipt %q", raw)
	}
	n := func(i int) int { v, _ := strconv.Atoi(f[i]); return v } // written by our own script
	job, err := s.l.Job(ctx, s.l.id(f[0]))
	return ledger.Receipt{Job: job, First: n(1), Tasks: n(2), Duplicates: n(3), Repeated: true}, err
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
