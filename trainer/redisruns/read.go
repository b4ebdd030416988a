package redisruns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/trainer"
)

// Get implements trainer.Store.
func (s *Store) Get(ctx context.Context, id string) (trainer.Run, error) {
	runs, err := s.read(ctx, []string{id})
	if err == nil && len(runs) == 0 {
		err = fmt.Errorf("%w: %.80q", trainer.ErrUnknown, id)
	}
	if err != nil {
		return trainer.Run{}, err
	}
	return runs[0], nil
}

// List implements trainer.Store.
func (s *Store) List(ctx context.Context) ([]trainer.Run, error) {
	ids, err := s.rdb.ZRevRange(ctx, runsKey, 0, trainer.KeptRuns-1).Result()
	if err != nil {
		return nil, failed("list", err)
	}
	return s.read(ctx, ids)
}

// read runs, in one round trip; unknown ones are left out. So are damaged ones, which
// the error names.
func (s *Store) read(ctx context.Context, ids []string) ([]trainer.Run, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	pipe := s.rdb.Pipeline()
	now := pipe.Time(ctx)
	hashes := make([]*redis.MapStringStringCmd, len(ids))
	for i, id := range ids {
		hashes[i] = pipe.HGetAll(ctx, runKey+id)
	}
	_, _ = pipe.Exec(ctx) // each has an error of its own
	if err := now.Err(); err != nil {
		return nil, failed("read", err)
	}
	var runs []trainer.Run
	var damaged []error
	for i, id := range ids {
		var r trainer.Run
		fields, err := hashes[i].Result()
		switch {
		case err == nil && len(fields) == 0:
			continue
		case err == nil:
			r, err = decode(id, fields, now.Val().Add(s.offset()))
		case !redis.HasErrorPrefix(err, "WRONGTYPE"):
			return nil, failed("read", err)
		}
		if err != nil {
			damaged = append(damaged, fmt.Errorf("%w: %s: %w", trainer.ErrDamaged, runKey+id, err))
			continue
		}
		runs = append(runs, r)
	}
	return runs, errors.Join(damaged...)
}

func decode(id string, f map[string]string, now time.Time) (trainer.Run, error) {
	r := trainer.Run{ID: id, State: trainer.State(f["state"]), Error: f["error"], Checkpoint: f["checkpoint"]}
	var errs [7]error
	r.Slice, errs[0] = strconv.Atoi(f["slice"])
	r.Created, errs[1] = instant(f["created"])
	r.Heartbeat, errs[2] = instant(f["heartbeat"])
	r.Ended, errs[3] = instant(f["ended"])
	until, err := instant(f["until"])
	r.Held, errs[4] = until.After(now), err
	errs[5] = json.Unmarshal([]byte(f["request"]), &r.Request)
	errs[6] = json.Unmarshal([]byte(f["progress"]), &r.Progress)
	return r, errors.Join(errs[:]...)
}

// instant reads microseconds since 1970; none or 0 is no instant.
func instant(text string) (time.Time, error) {
	if text == "" || text == "0" {
		return time.Time{}, nil
	}
	us, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMicro(us).UTC(), err
}
