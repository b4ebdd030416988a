package redisledger

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"farmhand/skeleton/ledger"
)

// letter is a dead letter as scripts write it.
type letter struct {
	ledger.DeadLetter
	At string `json:"at"` // µs
}

// Dead implements ledger.Producer.
func (l *farm) Dead(ctx context.Context, after string, limit int) ([]ledger.DeadLetter, string, error) {
	// The cursor is the rank: dead letters are added at the end, and one that is
	// redriven in between moves the rest forward, so a page may skip but a fresh
	// listing shows all.
	from := 0
	if after != "" {
		n, err := strconv.Atoi(after)
		if err != nil || n < 0 {
			return nil, "", fmt.Errorf("%w: %q", ledger.ErrRef, after)
		}
		from = n
	}
	refs, err := l.store.rdb.ZRange(ctx, l.key("dead"), int64(from), int64(from+limit-1)).Result()
	if err := check("dead", err); err != nil {
		return nil, "", err
	}
	if len(refs) == 0 {
		return nil, "", nil
	}
	raws, err := l.store.rdb.HMGet(ctx, l.key("letters"), refs...).Result()
	if err := check("dead", err); err != nil {
		return nil, "", err
	}
	letters := make([]ledger.DeadLetter, 0, len(refs))
	for _, raw := range raws {
		s, ok := raw.(string)
		if !ok {
			continue // redriven between the two reads
		}
		var d letter
		if err := json.Unmarshal([]byte(s), &d); err != nil {
			return nil, "", fmt.Errorf("redisledger: dead letter: %w", err)
		}
		d.Job, d.Died = l.id(d.Job), micros(d.At)
		letters = append(letters, d.DeadLetter)
	}
	next := ""
	if len(refs) == limit {
		next = strconv.Itoa(from + limit)
	}
	return letters, next, nil
}

// Redrive implements ledger.Producer.
func (l *farm) Redrive(ctx context.Context, names []string, limit int) (int, error) {
	total := 0
	if names == nil {
		// Those that are dead now: what dies again meanwhile is not redriven twice.
		dead, err := l.store.rdb.ZCard(ctx, l.key("dead")).Result()
		if err := check("redrive", err); err != nil {
			return 0, err
		}
		limit = min(limit, int(dead))
		for over := 0; total < limit; { // over: letters of cancelled jobs, which stay
			n, left, err := l.redrive(ctx, min(limit-total, ledger.MaxBatch), over)
			if err != nil {
				return total, err
			}
			total += n
			over += left
			if n+left == 0 {
				break
			}
		}
		return total, nil
	}
	for _, ref := range names { // all of them before the first is done
		if !refs.MatchString(ref) {
			return 0, fmt.Errorf("%w: %q", ledger.ErrRef, ref)
		}
	}
	for len(names) > 0 {
		n := min(len(names), ledger.MaxBatch)
		args := []any{0}
		for _, ref := range names[:n] {
			args = append(args, ref)
		}
		done, _, err := l.redrive(ctx, args...)
		if err != nil {
			return total, err
		}
		total += done
		names = names[n:]
	}
	return total, nil
}

func (l *farm) redrive(ctx context.Context, args ...any) (n, left int, err error) {
	a, err := l.run(ctx, scriptRedrive, args...).Slice()
	if err != nil {
		return 0, 0, check("redrive", err)
	}
	return integer(a[0]), integer(a[1]), nil
}
