package redisledger

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// repair finds the tasks whose leases somebody deleted. It looks at every task
// of every unfinished job, so it runs only when the counters say that leases are
// missing.
func (l *farm) repair(ctx context.Context) error {
	units, err := l.store.rdb.ZRange(ctx, l.key("jobs"), 0, -1).Result()
	if err := check("repair", err); err != nil {
		return err
	}
	for _, unit := range units {
		job, err := l.Job(ctx, l.id(unit))
		if errors.Is(err, ledger.ErrNotFound) || err == nil && job.Pending() == 0 {
			continue
		}
		if err != nil {
			return err
		}
		if err := l.repairJob(ctx, unit); err != nil {
			return err
		}
	}
	return nil
}

func (l *farm) repairJob(ctx context.Context, unit string) error {
	names, err := l.store.rdb.LRange(ctx, l.key("job", unit, "runs"), 0, -1).Result()
	if err := check("repair", err); err != nil || len(names) == 0 {
		return err
	}
	pipe := l.store.rdb.Pipeline()
	described := make([]*redis.StringCmd, len(names))
	moved := make([]*redis.StringCmd, len(names))
	for i, name := range names {
		described[i] = pipe.HGet(ctx, l.key("runs"), name)
		moved[i] = pipe.HGet(ctx, l.key("runs"), name+"+")
	}
	if _, err := pipe.Exec(ctx); check("repair", err) != nil {
		return check("repair", err)
	}
	type body struct {
		piece string
		off   int
	}
	again := map[body]bool{} // tasks that a later run took over: they were redriven
	var refs []any
	for i := len(names) - 1; i >= 0; i-- {
		if described[i].Err() != nil {
			continue // used up and forgotten
		}
		run, err := decodeRun(described[i].Val())
		if err != nil {
			return err
		}
		gone, _ := strconv.Atoi(moved[i].Val()) // written by our own scripts, or missing: 0
		for off := run.off; off < run.off+gone; off++ {
			if again[body{run.piece, off}] {
				continue
			}
			if refs = append(refs, names[i]+"."+place(off)); len(refs) == ledger.MaxBatch {
				if err := l.repairRefs(ctx, refs); err != nil {
					return err
				}
				refs = refs[:0]
			}
		}
		if run.n == 1 {
			again[body{run.piece, run.off}] = true
		}
	}
	if len(refs) == 0 {
		return nil
	}
	return l.repairRefs(ctx, refs)
}

func (l *farm) repairRefs(ctx context.Context, refs []any) error {
	limits := l.store.limits
	args := append([]any{skeleton.LostBudget, limits.Retention.Microseconds(), limits.DeadRetains.Microseconds()}, refs...)
	return check("repair", l.run(ctx, scriptRepair, args...).Err())
}
