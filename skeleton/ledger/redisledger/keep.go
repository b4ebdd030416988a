package redisledger

import (
	"context"
	"errors"
	"strconv"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Sweep implements ledger.Keeper.
func (l *farm) Sweep(ctx context.Context) (bool, error) {
	limits := l.store.limits
	a, err := l.run(ctx, scriptSweep, ledger.MaxBatch, skeleton.LostBudget, limits.Retention.Microseconds(),
		limits.DeadRetains.Microseconds(), limits.StageIdle.Microseconds(), ledger.LeaseTime.Microseconds()).Slice()
	if err != nil {
		return false, check("sweep", err)
	}
	more := integer(a[0]) == 1
	if integer(a[1]) == 1 {
		if err := l.repair(ctx); err != nil {
			return false, err
		}
	}
	for _, name := range a[2:] {
		if err := l.store.rdb.Unlink(ctx, l.key("r", name.(string))).Err(); err != nil {
			return false, check("sweep", err)
		}
	}
	steps := []struct {
		set string
		do  func(context.Context, string) error
	}{{"cancelling", l.cancel}, {"forgetting", l.forget}, {"trash", l.shred}}
	for _, step := range steps {
		names, err := l.store.rdb.SRandMemberN(ctx, l.key(step.set), 100).Result()
		if err := check("sweep", err); err != nil {
			return false, err
		}
		more = more || len(names) == 100
		for _, name := range names {
			err := step.do(ctx, name)
			if errors.Is(err, ledger.ErrNotFound) { // it expired before its cancellation was complete
				err = check("sweep", l.store.rdb.SRem(ctx, l.key(step.set), name).Err())
			}
			if err != nil {
				return false, err
			}
		}
	}
	return more, nil
}

// forget removes an expired job, bit by bit.
func (l *farm) forget(ctx context.Context, unit string) error {
	large := l.key("job", unit, "x")
	for {
		names, err := l.store.rdb.SPopN(ctx, large, ledger.MaxBatch).Result()
		if err := check("forget", err); err != nil {
			return err
		}
		if len(names) == 0 {
			break
		}
		for i, name := range names {
			names[i] = l.key("r", name)
		}
		if err := l.store.rdb.Unlink(ctx, names...).Err(); err != nil {
			return check("forget", err)
		}
	}
	for {
		left, err := l.run(ctx, scriptForget, unit, ledger.MaxBatch).Int()
		if err != nil {
			return check("forget", err)
		}
		if left == 0 {
			return nil
		}
	}
}

// shred removes the bodies of a piece.
func (l *farm) shred(ctx context.Context, piece string) error {
	offs, err := l.store.rdb.SMembers(ctx, l.key("x", piece)).Result()
	if err := check("shred", err); err != nil {
		return err
	}
	pipe := l.store.rdb.Pipeline()
	for _, off := range offs {
		pipe.Unlink(ctx, l.key("b", piece, off))
	}
	pipe.Unlink(ctx, l.key("x", piece), l.key("p", piece))
	pipe.SRem(ctx, l.key("trash"), piece)
	_, err = pipe.Exec(ctx)
	return check("shred", err)
}

// Gauges implements ledger.Keeper.
func (l *farm) Gauges(ctx context.Context) (ledger.Gauges, error) {
	a, err := l.run(ctx, scriptGauges, ledger.OverdueScan, ledger.RunningScan, ledger.Renewed.Microseconds()).Slice()
	if err != nil {
		return ledger.Gauges{}, check("gauges", err)
	}
	now := micros(a[0].(string))
	n := flat(a[6])
	g := ledger.Gauges{Counts: counts(n), Live: integer(a[1]), Window: integer(a[2]), OldestWait: time.Duration(integer(a[4])) * time.Microsecond,
		Overdue: integer(a[5]), QueueBytes: n["qbytes"], KeptBytes: n["kbytes"], Late: n["late"], Timed: n["timed"], Refused: n["refused"], Lapsed: n["lapsed"],
		Beats: map[string]time.Duration{}}
	g.RunningAge, g.RunningOverdue = time.Duration(integer(a[9]))*time.Microsecond, integer(a[10])
	if first := a[8].(string); first != "" {
		due, _ := strconv.ParseFloat(first, 64) // a score
		g.Dated, g.NextDue = true, fromMicros(int64(due)).Sub(now)
	}
	g.Factor, _ = strconv.ParseFloat(a[3].(string), 64) // written by our own script
	if g.Waiting > 0 && g.KeptBytes >= l.store.limits.KeptBytes {
		g.Blocked = Blocked
	}
	for owner, beat := range flat(a[7]) {
		g.Beats[owner] = max(0, now.Sub(fromMicros(int64(beat))))
	}
	return g, nil
}

// Blocked is why Take hands out nothing although work waits and the window is
// open.
const Blocked = "results not collected"

// flat reads pairs of name and number.
func flat(v any) map[string]int {
	list, _ := v.([]any)
	out := make(map[string]int, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		f, _ := strconv.ParseFloat(list[i+1].(string), 64) // written by our own scripts
		out[list[i].(string)] = int(f)
	}
	return out
}

func counts(n map[string]int) ledger.Counts {
	return ledger.Counts{Submitted: n["submitted"], Waiting: n["waiting"], Leased: n["leased"], Delayed: n["delayed"],
		Done: n["done"], Dead: n["dead"], Cancelled: n["cancelled"]}
}

// Audit implements ledger.Keeper.
func (l *farm) Audit(ctx context.Context) (ledger.Audit, error) {
	a, err := l.run(ctx, scriptAudit).Slice()
	if err != nil {
		return ledger.Audit{}, check("audit", err)
	}
	counters := counts(flat(a[8]))
	audit := ledger.Audit{Counters: counters, Counted: ledger.Counts{Submitted: integer(a[4]), Waiting: integer(a[0]), Leased: integer(a[1]),
		Delayed: integer(a[2]), Done: integer(a[5]), Dead: integer(a[6]), Cancelled: integer(a[7])}}
	for _, p := range a[9:] {
		audit.Problems = append(audit.Problems, p.(string))
	}
	if audit.Counters != audit.Counted {
		audit.Problems = append(audit.Problems, "counters and counted tasks differ")
	}
	if !audit.Counted.Conserved() {
		audit.Problems = append(audit.Problems, "the states do not add up")
	}
	if integer(a[3]) != audit.Counted.Dead {
		audit.Problems = append(audit.Problems, "dead tasks by their jobs and by their letters differ")
	}
	return audit, nil
}
