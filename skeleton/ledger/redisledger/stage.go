package redisledger

import (
	"context"
	"errors"
	"fmt"
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

// Add implements ledger.Stage. It writes in batches; what is left goes out with
// Commit, in one round trip for a small submission.
func (s *stage) Add(ctx context.Context, tasks []skeleton.NewTask) error {
	limits := s.l.store.limits
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
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the pending tasks.
func (s *stage) flush(ctx context.Context) error {
	c := s.touch()
	switch state, err := s.l.run(ctx, c.script, c.args...).Text(); {
	case err != nil:
		return check("stage", err)
	case state != "ok":
		return stageErrors[state]
	}
	s.begun = true
	pipe := s.l.store.rdb.Pipeline()
	if err := s.write(ctx, pipe); err != nil {
		return err
	}
	_, err := pipe.Exec(ctx)
	return check("stage", err)
}

// touch is the call that begins or continues the stage for the pending tasks.
func (s *stage) touch() call {
	limits := s.l.store.limits
	return call{scriptTouch, []any{s.piece, flag(!s.begun), len(s.pending), s.pendingBytes, limits.QueueTasks, limits.QueueBytes, s.tasks - len(s.pending)}}
}

// write puts the pending tasks into a pipeline.
func (s *stage) write(ctx context.Context, pipe redis.Pipeliner) error {
	fields := make([]any, 0, 2*len(s.pending))
	for i, t := range s.pending {
		inline := len(t.Body) <= ledger.MaxInline
		raw, err := encodeTask(t, inline)
		if err != nil {
			return err
		}
		off := place(s.tasks - len(s.pending) + i)
		if !inline {
			pipe.Set(ctx, s.l.key("b", s.piece, off), t.Body, 0)
			pipe.SAdd(ctx, s.l.key("x", s.piece), off)
		}
		fields = append(fields, off, raw)
	}
	if len(fields) > 0 {
		pipe.HSet(ctx, s.l.key("p", s.piece), fields...)
	}
	clear(s.pending) // the bodies may go
	s.pending, s.pendingBytes = s.pending[:0], 0
	return nil
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
	answer, err := s.send(ctx, call{scriptCommit, append(args, s.keys...)})
	if err != nil {
		return ledger.Receipt{}, err
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
	return ledger.Receipt{}, stageErrors[answer[0].(string)]
}

// send writes what is pending and commits, in one round trip if nothing was
// written before. Where the stage cannot be begun the commit finds it gone, and
// what was written is removed. A stage that was begun is there for the commit
// whatever becomes of its last tasks, so these go first.
func (s *stage) send(ctx context.Context, commit call) ([]any, error) {
	if s.begun && len(s.pending) > 0 {
		if err := s.flush(ctx); err != nil {
			return nil, err
		}
	}
	pipe := s.l.store.rdb.Pipeline()
	keys := []string{s.l.prefix}
	touch := s.touch()
	small := len(s.pending) > 0
	var touched *redis.Cmd
	if small {
		touched = touch.script.EvalSha(ctx, pipe, keys, s.l.argv(touch.args)...)
		s.begun = true
		if err := s.write(ctx, pipe); err != nil {
			return nil, err
		}
	}
	done := commit.script.EvalSha(ctx, pipe, keys, s.l.argv(commit.args)...)
	_, _ = pipe.Exec(ctx) // each command keeps its own error
	if small {
		unknown := redis.HasErrorPrefix(touched.Err(), "NOSCRIPT")
		if unknown { // a server that was just started: what was written stands, begin now
			touched = s.l.run(ctx, touch.script, touch.args...)
		}
		state, err := touched.Text()
		if err != nil {
			return nil, check("stage", err)
		}
		if state != "ok" {
			s.over = true
			err := errors.Join(stageErrors[state], s.l.shred(ctx, s.piece))
			if answer, _ := done.Slice(); len(answer) > 0 && answer[0] == "repeated" {
				return answer, nil // room or not: there is nothing to add
			}
			return nil, err
		}
		if unknown {
			done = s.l.run(ctx, commit.script, commit.args...)
		}
	}
	if redis.HasErrorPrefix(done.Err(), "NOSCRIPT") {
		done = s.l.run(ctx, commit.script, commit.args...)
	}
	answer, err := done.Slice()
	return answer, check("commit", err)
}

// What touch and commit refuse.
var stageErrors = map[string]error{
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
