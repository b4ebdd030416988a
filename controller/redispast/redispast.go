// Package redispast is the log of decisions in Redis: receipts for a day, and
// telemetry made of them.
package redispast

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/controller"
	"farmhand/telemetry"
	"farmhand/telemetry/blocklog"
	"farmhand/telemetry/redistelemetry"
)

// receipts is the name of their log.
const receipts = "receipts"

// Store is a controller.Log: it keeps receipts for a day, and makes telemetry of
// them, a row of each and the service times of every five minutes. Append belongs
// to one goroutine.
type Store struct {
	receipts  *blocklog.Store
	telemetry *redistelemetry.Store
	gather    telemetry.Gather
	log       *slog.Logger
}

var _ controller.Log = (*Store)(nil)

// New returns the log in rdb, which it does not own. log may be nil. Close it
// when done.
func New(rdb redis.UniversalClient, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{receipts: blocklog.New(rdb, blocklog.Options{}), telemetry: redistelemetry.New(rdb, nil), log: log}
}

// Append implements controller.Log. Telemetry that cannot be kept is no error of
// the receipts: it is logged.
func (p *Store) Append(ctx context.Context, entries []controller.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	additions := make([]blocklog.Addition, len(entries))
	rows := make(map[string]telemetry.Row, len(entries))
	now := time.Time{}
	for i, e := range entries {
		additions[i] = blocklog.Addition{Farm: e.Farm, Name: receipts, Entry: blocklog.Entry{At: e.At, Data: e.Data}}
		r := e.Receipt
		rows[e.Farm] = telemetry.RowOf(&r.Observation, r.Wish.Replicas, r.Replicas)
		p.gather.Add(e.Farm, e.At, &e.Service)
		if e.At.After(now) {
			now = e.At
		}
	}
	err := p.receipts.AppendAll(ctx, additions)
	if errors.Is(err, blocklog.ErrNotSealed) { // all is kept
		p.log.Warn("receipts are not packed yet", "error", err)
		err = nil
	}
	if terr := errors.Join(p.telemetry.Append(ctx, rows), p.telemetry.AppendPeriods(ctx, p.gather.Take(now))); terr != nil {
		p.log.Warn("telemetry could not be kept", "error", terr)
	}
	return err
}

// Tail implements controller.Log.
func (p *Store) Tail(ctx context.Context, farm string, n int) ([][]byte, error) {
	entries, err := p.receipts.Tail(ctx, farm, receipts, n)
	list := make([][]byte, len(entries))
	for i, e := range entries {
		list[i] = e.Data
	}
	return list, err
}

// Close keeps the service times of the five minutes that are not over.
func (p *Store) Close(ctx context.Context) error {
	return p.telemetry.AppendPeriods(ctx, p.gather.TakeAll())
}
