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
			return nil, "", fmt.Errorf("redisledger: %q is no cursor of dead letters", after)
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
func (l *farm) Redrive(ctx context.Context, refs []string, limit int) (int, error) {
	total := 0
	if refs == nil {
		for total < limit {
			n, err := l.run(ctx, scriptRedrive, min(limit-total, ledger.MaxBatch)).Int()
			if err != nil {
				return total, check("redrive", err)
			}
			total += n
			if n == 0 {
				break
			}
		}
		return total, nil
	}
	for len(refs) > 0 {
		n := min(len(refs), ledger.MaxBatch)
		args := []any{0}
		for _, ref := range refs[:n] {
			if _, _, err := split(ref); err != nil {
				return total, err
			}
			args = append(args, ref)
		}
		done, err := l.run(ctx, scriptRedrive, args...).Int()
		if err != nil {
			return total, check("redrive", err)
		}
		total += done
		refs = refs[n:]
	}
	return total, nil
}
