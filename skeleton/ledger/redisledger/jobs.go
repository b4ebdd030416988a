package redisledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

func member(score int64, name string) redis.Z { return redis.Z{Score: float64(score), Member: name} }

// Job implements ledger.Producer.
func (l *farm) Job(ctx context.Context, id string) (skeleton.Job, error) {
	unit, err := l.unit(id)
	if err != nil {
		return skeleton.Job{}, err
	}
	book, err := l.store.rdb.HGet(ctx, l.key("job", unit), "book").Result()
	if errors.Is(err, redis.Nil) {
		return skeleton.Job{}, ledger.ErrNotFound
	}
	if err != nil {
		return skeleton.Job{}, check("job", err)
	}
	return l.job(unit, book)
}

// job reads the book of a job (scripts/books.lua).
func (l *farm) job(unit, book string) (skeleton.Job, error) {
	f := strings.SplitN(book, ",", 15)
	if len(f) != 15 {
		return skeleton.Job{}, fmt.Errorf("redisledger: book of job %s: %q", unit, book)
	}
	n := func(i int) int {
		v, _ := strconv.Atoi(f[i]) // written by our own scripts
		return v
	}
	return skeleton.Job{ID: l.id(unit), Farm: l.name,
		Total: n(0), Done: n(1), Dead: n(2), Cancelled: n(3), Late: n(4), Position: n(5), BodyBytes: n(6), KeptBytes: n(7),
		Open: f[8] == "1", Ordered: f[9] == "1", Created: micros(f[10]), Ended: micros(f[11]), Expires: micros(f[12]),
		Cancel: n(13) > 0, Callback: f[14]}, nil
}

// Jobs implements ledger.Producer.
func (l *farm) Jobs(ctx context.Context, after string, limit int) ([]skeleton.Job, error) {
	from := "+"
	if after != "" {
		unit, err := l.unit(after)
		if err != nil {
			return nil, err
		}
		from = "(" + unit
	}
	units, err := l.store.rdb.ZRevRangeByLex(ctx, l.key("jobs"), &redis.ZRangeBy{Max: from, Min: "-", Count: int64(limit)}).Result()
	if err := check("jobs", err); err != nil {
		return nil, err
	}
	pipe := l.store.rdb.Pipeline()
	cmds := make([]*redis.StringCmd, len(units))
	for i, unit := range units {
		cmds[i] = pipe.HGet(ctx, l.key("job", unit), "book")
	}
	if len(units) > 0 {
		if _, err := pipe.Exec(ctx); check("jobs", err) != nil {
			return nil, check("jobs", err)
		}
	}
	jobs := make([]skeleton.Job, 0, len(units))
	for i, unit := range units {
		if cmds[i].Err() != nil {
			continue // swept in between
		}
		job, err := l.job(unit, cmds[i].Val())
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// Close implements ledger.Producer.
func (l *farm) Close(ctx context.Context, id string) (skeleton.Job, error) {
	unit, err := l.unit(id)
	if err != nil {
		return skeleton.Job{}, err
	}
	limits := l.store.limits
	n, err := l.run(ctx, scriptClose, unit, limits.Retention.Microseconds(), limits.DeadRetains.Microseconds()).Int()
	if err != nil {
		return skeleton.Job{}, check("close", err)
	}
	if n < 0 {
		return skeleton.Job{}, ledger.ErrNotFound
	}
	return l.Job(ctx, id)
}

// Cancel implements ledger.Producer. It first empties the job's runs, then
// cancels the tasks that stand alone; a sweeper continues one that was cut off.
func (l *farm) Cancel(ctx context.Context, id string) (skeleton.Job, error) {
	unit, err := l.unit(id)
	if err != nil {
		return skeleton.Job{}, err
	}
	if err := l.cancel(ctx, unit); err != nil {
		return skeleton.Job{}, err
	}
	return l.Job(ctx, id)
}

func (l *farm) cancel(ctx context.Context, unit string) error {
	limits := l.store.limits
	keep, keepDead := limits.Retention.Microseconds(), limits.DeadRetains.Microseconds()
	for {
		left, err := l.run(ctx, scriptCancel, unit, ledger.MaxBatch, keep, keepDead).Int()
		if err != nil {
			return check("cancel", err)
		}
		if left < 0 {
			return ledger.ErrNotFound
		}
		if left == 0 {
			break
		}
	}
	runs, err := l.store.rdb.LRange(ctx, l.key("job", unit, "runs"), 0, -1).Result()
	if err != nil {
		return check("cancel", err)
	}
	ours := make(map[string]bool, len(runs))
	for _, r := range runs {
		ours[r] = true
	}
	leases, err := l.store.rdb.ZRange(ctx, l.key("leases"), 0, -1).Result()
	if err != nil {
		return check("cancel", err)
	}
	args := []any{keep, keepDead, ""}
	for _, lease := range leases {
		if run, _, ok := strings.Cut(lease, "."); ok && ours[run] {
			args = append(args, lease)
		}
	}
	if err := l.cancelAll(ctx, args); err != nil {
		return err
	}
	var cursor uint64
	for {
		page, next, err := l.store.rdb.HScan(ctx, l.key("live"), cursor, "", ledger.MaxBatch).Result()
		if err != nil {
			return check("cancel", err)
		}
		args := []any{keep, keepDead, ""}
		for i := 0; i < len(page); i += 2 {
			if run, _, ok := strings.Cut(page[i], "."); ok && ours[run] {
				args = append(args, page[i])
			}
		}
		if next == 0 {
			args[2] = unit // the last page: the cancellation is complete
		}
		if len(args) > 3 || next == 0 {
			if err := l.cancelAll(ctx, args); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

func (l *farm) cancelAll(ctx context.Context, args []any) error {
	return check("cancel", l.run(ctx, scriptCancelRefs, args...).Err())
}

// WatchJob implements ledger.Producer.
func (l *farm) WatchJob(ctx context.Context, id string, fn func()) error {
	unit, err := l.unit(id)
	if err != nil {
		return err
	}
	return l.store.hub.watch(ctx, l.key("job", unit), func(string) { fn() })
}

// Acknowledge implements ledger.Producer.
func (l *farm) Acknowledge(ctx context.Context, id string, ordered bool, cursor int) error {
	unit, err := l.unit(id)
	if err != nil {
		return err
	}
	for {
		a, err := l.run(ctx, scriptAck, unit, flag(ordered), cursor, ledger.MaxBatch).Slice()
		if err != nil {
			return check("acknowledge", err)
		}
		names := make([]string, 0, len(a)-1)
		for _, name := range a[1:] {
			names = append(names, l.key("r", name.(string)))
		}
		if len(names) > 0 {
			if err := l.store.rdb.Unlink(ctx, names...).Err(); err != nil {
				return check("acknowledge", err)
			}
		}
		switch left := integer(a[0]); {
		case left < 0:
			return fmt.Errorf("%w: %s", ledger.ErrNotFound, id)
		case left == 0:
			return nil
		}
	}
}
