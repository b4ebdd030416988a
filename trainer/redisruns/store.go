// Package redisruns keeps trainings in Redis.
//
// All its keys share the hash tag {trainer}:
//
//	farmhand:{trainer}:run:ID               hash: the run; see scripts/create.lua
//	farmhand:{trainer}:checkpoint:ID:SLICE  what slice SLICE begins with; deflated
//	farmhand:{trainer}:due                  sorted set: runs under way, by the µs at which they are overdue
//	farmhand:{trainer}:runs                 sorted set: all runs, by the µs of their beginning
//	farmhand:{trainer}:schedule             hash: farm → µs of its last run by schedule
//
// A checkpoint is written before a script links it. One that never was, since its
// writer was killed or had lost the run, expires.
package redisruns

import (
	"bytes"
	"compress/flate"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/trainer"
)

const (
	prefix        = "farmhand:{trainer}:"
	runKey        = prefix + "run:"        // + id
	checkpointKey = prefix + "checkpoint:" // + id : slice
	dueKey        = prefix + "due"
	runsKey       = prefix + "runs"
	scheduleKey   = prefix + "schedule"
)

var (
	//go:embed scripts/base.lua
	base string
	//go:embed scripts/create.lua
	createLua string
	//go:embed scripts/begin.lua
	beginLua string
	//go:embed scripts/hold.lua
	holdLua string
	//go:embed scripts/commit.lua
	commitLua string
	//go:embed scripts/cancel.lua
	cancelLua string
	//go:embed scripts/overdue.lua
	overdueLua string

	createScript  = redis.NewScript(base + createLua)
	beginScript   = redis.NewScript(base + beginLua)
	holdScript    = redis.NewScript(base + holdLua)
	commitScript  = redis.NewScript(base + commitLua)
	cancelScript  = redis.NewScript(base + cancelLua)
	overdueScript = redis.NewScript(base + overdueLua)
)

// Store is a trainer.Store in Redis.
type Store struct {
	rdb    redis.UniversalClient
	offset func() time.Duration
}

var _ trainer.Store = (*Store)(nil)

// New returns the runs in rdb, which it does not own. Offset is added to Redis TIME;
// tests move it, nil means 0.
func New(rdb redis.UniversalClient, offset func() time.Duration) *Store {
	if offset == nil {
		offset = func() time.Duration { return 0 }
	}
	return &Store{rdb, offset}
}

// run a script on a run.
func (s *Store) run(ctx context.Context, script *redis.Script, id string, more []string, args ...any) *redis.Cmd {
	return script.Run(ctx, s.rdb, append([]string{runKey + id, dueKey}, more...), append([]any{s.offset().Microseconds(), id}, args...)...)
}

// Create implements trainer.Store.
func (s *Store) Create(ctx context.Context, id string, r trainer.Request, slice, apart time.Duration) (trainer.Run, bool, error) {
	request, err := json.Marshal(r)
	if err != nil {
		return trainer.Run{}, false, fmt.Errorf("trainer: %w", err)
	}
	progress, err := encode(trainer.NewProgress())
	if err != nil {
		return trainer.Run{}, false, err
	}
	answer, err := s.run(ctx, createScript, id, []string{runsKey, scheduleKey}, request, progress, slice.Microseconds(), trainer.MaxRunning, r.Farm,
		apart.Microseconds(), trainer.RunExpiry.Milliseconds(), trainer.KeptRuns, runKey).Text()
	switch {
	case err != nil:
		return trainer.Run{}, false, failed("create", err)
	case answer == "full":
		return trainer.Run{}, false, trainer.ErrFull
	case answer == "early":
		return trainer.Run{}, false, trainer.ErrEarly
	}
	run, err := s.Get(ctx, id)
	return run, answer == "created", err
}

// Begin implements trainer.Store.
func (s *Store) Begin(ctx context.Context, id string, slice int, holder string) (trainer.Run, error) {
	answer, err := s.run(ctx, beginScript, id, nil, slice, holder, trainer.Lease.Microseconds(), trainer.MaxTries).Text()
	if err != nil {
		return trainer.Run{}, failed("begin", err)
	}
	switch answer {
	case "begun":
		return s.Get(ctx, id)
	case "unknown":
		return trainer.Run{}, fmt.Errorf("%w: %.80q", trainer.ErrUnknown, id)
	case "stale":
		return trainer.Run{}, trainer.ErrNotNext
	case "held":
		return trainer.Run{}, trainer.ErrHeld
	}
	return trainer.Run{}, trainer.ErrOver
}

// Checkpoint implements trainer.Store.
func (s *Store) Checkpoint(ctx context.Context, r *trainer.Run) ([]byte, error) {
	if r.Checkpoint == "" {
		return nil, nil
	}
	raw, err := s.rdb.Get(ctx, r.Checkpoint).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("%w: it is kept for %s", trainer.ErrGone, trainer.Expiry)
	}
	if err != nil {
		return nil, failed("checkpoint", err)
	}
	whole, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), trainer.MaxCheckpoint+1))
	if err != nil || len(whole) > trainer.MaxCheckpoint {
		return nil, fmt.Errorf("%w: it is damaged", trainer.ErrGone)
	}
	return whole, nil
}

// Hold implements trainer.Store.
func (s *Store) Hold(ctx context.Context, id, holder string, p trainer.Progress) error {
	progress, err := encode(p)
	if err != nil {
		return err
	}
	answer, err := s.run(ctx, holdScript, id, nil, holder, trainer.Lease.Microseconds(), progress).Text()
	return lost("hold", answer, err)
}

// unlinked is how long a checkpoint is kept that no run names.
const unlinked = 10 * time.Minute

// Commit implements trainer.Store.
func (s *Store) Commit(ctx context.Context, r *trainer.Run, holder string, checkpoint []byte) error {
	progress, err := encode(r.Progress)
	if err != nil {
		return err
	}
	key := ""
	if checkpoint != nil {
		if len(checkpoint) > trainer.MaxCheckpoint {
			return fmt.Errorf("trainer: the checkpoint has %d bytes: want at most %d", len(checkpoint), trainer.MaxCheckpoint)
		}
		small, err := deflate(checkpoint)
		if err != nil {
			return err
		}
		// The holder is part of the name: who has lost the run must not write over the
		// checkpoint of who has it now. What is there is of a call whose answer was lost,
		// and may be linked.
		key = checkpointKey + r.ID + ":" + strconv.Itoa(r.Slice+1) + ":" + holder
		if err := s.rdb.SetNX(ctx, key, small, unlinked).Err(); err != nil {
			return failed("checkpoint", err)
		}
	}
	answer, err := s.run(ctx, commitScript, r.ID, nil, holder, r.Slice, progress, string(r.State), r.Error, key, trainer.Expiry.Milliseconds(),
		trainer.RunExpiry.Milliseconds()).Text()
	return lost("commit", answer, err)
}

func deflate(b []byte) ([]byte, error) {
	var small bytes.Buffer
	w, err := flate.NewWriter(&small, flate.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err) // the level is one
	}
	if _, err := w.Write(b); err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	err = w.Close()
	return small.Bytes(), err
}

// Cancel implements trainer.Store.
func (s *Store) Cancel(ctx context.Context, id string) (trainer.Run, error) {
	if err := s.run(ctx, cancelScript, id, nil).Err(); err != nil {
		return trainer.Run{}, failed("cancel", err)
	}
	return s.Get(ctx, id)
}

// Overdue implements trainer.Store.
func (s *Store) Overdue(ctx context.Context) ([]trainer.Ticket, error) {
	ids, err := s.rdb.ZRange(ctx, dueKey, 0, -1).Result() // as many as run at once
	if err != nil {
		return nil, failed("overdue", err)
	}
	var list []trainer.Ticket
	var damaged []error
	for _, id := range ids {
		slice, err := s.run(ctx, overdueScript, id, nil, trainer.MaxPosts).Int()
		if err != nil {
			err = failed("overdue", err)
		}
		switch {
		case errors.Is(err, trainer.ErrDamaged):
			damaged = append(damaged, err)
		case err != nil:
			return list, err
		case slice >= 0:
			list = append(list, trainer.Ticket{Run: id, Slice: slice})
		}
	}
	return list, errors.Join(damaged...)
}

// lost is the error of a script that is refused to all but the holder.
func lost(what, answer string, err error) error {
	if err != nil {
		return failed(what, err)
	}
	if answer == "lost" {
		return trainer.ErrLost
	}
	return nil
}

// failed says what Redis could not do.
func failed(what string, err error) error {
	if redis.HasErrorPrefix(err, "NORUN") { // by scripts/base.lua
		return fmt.Errorf("%w: %w", trainer.ErrDamaged, err)
	}
	return fmt.Errorf("trainer: %s: %w", what, err)
}

func encode(p trainer.Progress) ([]byte, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	if len(b) > trainer.MaxProgress {
		return nil, fmt.Errorf("trainer: the progress has %d bytes: want at most %d", len(b), trainer.MaxProgress)
	}
	return b, nil
}
