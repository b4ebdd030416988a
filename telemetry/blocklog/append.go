package blocklog

import (
	"context"
	"time"
)

// Append appends one entry to a log. See AppendAll.
func (s *Store) Append(ctx context.Context, farm, name string, at time.Time, data []byte) error {
	return s.AppendAll(ctx, []Addition{{farm, name, Entry{at, data}}})
}

// AppendAll appends entries to their logs, in their order and in one round trip.
// Then it packs what is ripe, of a few logs only, so that the logs of many farms
// are not packed all at once: mostly two round trips more.
//
// Entries of one log are appended together or not at all. Where they equal the
// newest ones of their log, times and data, they are there already; so a call
// that failed may be made again, if it has no more than Spec.Keep entries for one
// log.
//
// Logs fail one by one; the error joins their errors. ErrInvalid stands for an
// entry that will never be taken, ErrNotSealed for entries that are kept. All
// others are of Redis: the entries may be kept or not.
func (s *Store) AppendAll(ctx context.Context, additions []Addition) error {
	var failed failures
	var logs []logID
	calls := map[logID]*call{}
	for i := range additions {
		a := &additions[i]
		id := logID{a.Farm, a.Name}
		if err := a.check(); err != nil {
			failed.add("append to", id, err)
			continue
		}
		if calls[id] == nil {
			calls[id] = &call{id.key(), s.spec(a.Name).args()}
			logs = append(logs, id)
		}
		calls[id].args = append(calls[id].args, micros(a.At), a.Data)
	}
	batch := make([]call, len(logs))
	for i, id := range logs {
		batch[i] = *calls[id]
	}
	var due []ripe
	for i, cmd := range s.run(ctx, scriptAppend, batch) {
		r, err := ripeOf(logs[i], cmd)
		if err != nil {
			failed.add("append to", logs[i], err)
		} else if r.count > 0 {
			due = append(due, r)
		}
	}
	s.seal(ctx, due, len(additions), &failed)
	return failed.err()
}

// args are the arguments of every script that writes to a log.
func (s Spec) args() []any {
	return []any{s.Entries, s.Span.Microseconds(), s.Bytes, s.Keep, s.Retention.Microseconds(), s.MaxBytes, (s.Retention + goodbye).Milliseconds()}
}

// Instants that scripts can tell apart from the others: 1970 and 2255.
const (
	first = 0
	never = 9e15
)

// micros is an instant in microseconds since 1970, within what scripts can count.
func micros(t time.Time) int64 { return min(never, max(first, t.UnixMicro())) }
