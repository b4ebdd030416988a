// Package redistelemetry keeps the telemetry of farms in Redis: rows for eight
// days, histograms of service times for thirty.
package redistelemetry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/telemetry"
	"farmhand/telemetry/blocklog"
)

// The logs of a farm, as blocklog names them.
const (
	RowsLog    = "rows"
	PeriodsLog = "service"
)

// rowsSpec is that of a log of rows. With a row every two seconds a farm's takes
// 8 to 11 MB, which a test measures; faster ticks than every second may reach
// the bound before the eighth day.
var rowsSpec = blocklog.Spec{Entries: 600, Span: telemetry.Span, Retention: 8 * 24 * time.Hour, MaxBytes: 16 << 20, Codec: rowCodec{}}

// periodsSpec is that of a log of periods; a farm's takes about 2 MB.
var periodsSpec = blocklog.Spec{Entries: 72, Span: 6 * time.Hour, Retention: 30 * 24 * time.Hour, MaxBytes: 4 << 20}

// Store is the telemetry of farms in Redis. It is safe for concurrent use.
type Store struct{ logs *blocklog.Store }

// New returns the store in rdb, which it does not own. It asks nothing of the
// server, which may be away. Offset is added to Redis TIME; tests move it, nil
// means 0.
func New(rdb redis.UniversalClient, offset func() time.Duration) *Store {
	logs := map[string]blocklog.Spec{RowsLog: rowsSpec, PeriodsLog: periodsSpec}
	return &Store{blocklog.New(rdb, blocklog.Options{Logs: logs, Offset: offset})}
}

// Append keeps a row of each farm, in one round trip, and mostly two more for
// what is packed then. A call that failed may be made again: a row that is there
// already is not kept twice. The errors are those of blocklog.Store.AppendAll.
func (s *Store) Append(ctx context.Context, rows map[string]telemetry.Row) error {
	var all []blocklog.Addition
	for _, farm := range slices.Sorted(maps.Keys(rows)) {
		row := rows[farm]
		data, err := telemetry.Encode([]telemetry.Row{row})
		if err != nil {
			return err
		}
		all = append(all, blocklog.Addition{Farm: farm, Name: RowsLog, Entry: blocklog.Entry{At: row.At, Data: data}})
	}
	return s.logs.AppendAll(ctx, all)
}

// Rows returns the rows of a farm from one instant on until before another,
// oldest first; a zero instant is no limit. With an error, which wraps
// telemetry.ErrDamaged or telemetry.ErrVersion where a block cannot be read, it
// returns the others.
func (s *Store) Rows(ctx context.Context, farm string, from, to time.Time) ([]telemetry.Row, error) {
	var rows []telemetry.Row
	var errs []error
	for row, err := range s.All(ctx, farm, from, to) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		rows = append(rows, row)
	}
	return rows, errors.Join(errs...)
}

// All are the rows that Rows returns, one after the other: a block of five
// minutes is in memory at a time, or sixteen before they are unpacked.
func (s *Store) All(ctx context.Context, farm string, from, to time.Time) iter.Seq2[telemetry.Row, error] {
	return func(yield func(telemetry.Row, error) bool) {
		for e, err := range s.logs.All(ctx, farm, RowsLog, blocklog.Query{From: from, To: to}) {
			row := telemetry.Row{}
			if err == nil {
				row, err = rowOf(e.Data)
			}
			if err != nil {
				err = fmt.Errorf("redistelemetry: rows of %s: %w", farm, err)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// AppendPeriods keeps periods of farms, which Gather gives. Periods of a farm
// that have the same start add up. A call that failed may be made again.
func (s *Store) AppendPeriods(ctx context.Context, periods map[string][]telemetry.Period) error {
	var all []blocklog.Addition
	for _, farm := range slices.Sorted(maps.Keys(periods)) {
		for _, p := range periods[farm] {
			all = append(all, blocklog.Addition{Farm: farm, Name: PeriodsLog, Entry: blocklog.Entry{At: p.Start, Data: telemetry.EncodePeriod(p)}})
		}
	}
	return s.logs.AppendAll(ctx, all)
}

// Periods returns the service times of a farm, in periods that begin from one
// instant on until before another, oldest first and each start once; a zero
// instant is no limit. With an error it returns what could be read.
func (s *Store) Periods(ctx context.Context, farm string, from, to time.Time) ([]telemetry.Period, error) {
	var periods []telemetry.Period
	var errs []error
	for e, err := range s.logs.All(ctx, farm, PeriodsLog, blocklog.Query{From: from}) {
		p := telemetry.Period{}
		if err == nil {
			p, err = telemetry.DecodePeriod(e.Data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("redistelemetry: periods of %s: %w", farm, err))
			continue
		}
		// One that was kept late stands later in the log than it began.
		if !p.Start.Before(from) && (to.IsZero() || p.Start.Before(to)) {
			periods = append(periods, p)
		}
	}
	return telemetry.Join(periods), errors.Join(errs...)
}

// Stats are the sizes of a farm's logs, and what was dropped.
func (s *Store) Stats(ctx context.Context, farm string) (rows, periods blocklog.Stats, err error) {
	if rows, err = s.logs.Stats(ctx, farm, RowsLog); err != nil {
		return rows, periods, err
	}
	periods, err = s.logs.Stats(ctx, farm, PeriodsLog)
	return rows, periods, err
}

// Forget removes the telemetry of a farm.
func (s *Store) Forget(ctx context.Context, farm string) error {
	return s.logs.Forget(ctx, farm, RowsLog, PeriodsLog)
}
