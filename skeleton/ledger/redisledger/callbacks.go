package redisledger

import (
	"context"
	"errors"
	"time"

	"farmhand/skeleton/ledger"
)

// Callbacks implements ledger.Keeper.
func (l *farm) Callbacks(ctx context.Context, limit int) ([]ledger.CallbackDue, error) {
	a, err := l.run(ctx, scriptCallbacks, limit, ledger.CallbackLease.Microseconds()).Slice()
	if err != nil {
		return nil, check("callbacks", err)
	}
	due := make([]ledger.CallbackDue, 0, len(a)/2)
	for i := 0; i+1 < len(a); i += 2 {
		job, err := l.Job(ctx, l.id(a[i].(string)))
		if errors.Is(err, ledger.ErrNotFound) {
			continue // swept in between
		}
		if err != nil {
			return nil, err
		}
		due = append(due, ledger.CallbackDue{Job: job, Try: integer(a[i+1])})
	}
	return due, nil
}

// CallbackDone implements ledger.Keeper.
func (l *farm) CallbackDone(ctx context.Context, job string, again time.Duration) error {
	unit, err := l.unit(job)
	if err != nil {
		return err
	}
	return check("callback", l.run(ctx, scriptCallbackDone, unit, again.Microseconds()).Err())
}
