package blocklog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Query says which entries of a log are read. The zero Query is all, oldest first.
type Query struct {
	From   time.Time // entries from this instant on; zero = from the first
	To     time.Time // entries before this instant; zero = to the last
	Limit  int       // most entries; 0 = all
	Newest bool      // newest first
}

// blocksAtOnce are fetched in one round trip.
const blocksAtOnce = 16

// All returns the entries of a log that a query asks for, one after the other:
// those that were in the log when it was first asked, but for blocks that were
// dropped for age or size before they were reached. The first error of Redis is
// the last thing it says. A block that cannot be read is an error that wraps
// ErrDamaged, or is the codec's, and the entries after it follow.
func (s *Store) All(ctx context.Context, farm, name string, q Query) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		id := logID{farm, name}
		fail := func(err error) bool { return yield(Entry{}, fmt.Errorf("blocklog: read %s: %w", id, err)) }
		open, blocks, err := s.look(ctx, id, q)
		if err != nil {
			fail(err)
			return
		}
		left := q.Limit
		if left <= 0 {
			left = -1
		}
		// give passes entries on; it returns false when it is enough.
		give := func(entries []Entry) bool {
			if q.Newest {
				slices.Reverse(entries)
			}
			for _, e := range entries {
				if e.At.Before(q.From) || !q.To.IsZero() && !e.At.Before(q.To) {
					continue
				}
				if left--; !yield(e, nil) || left == 0 {
					return false
				}
			}
			return true
		}
		if q.Newest && !give(open) {
			return
		}
		codec := s.spec(name).Codec
		for some := range slices.Chunk(blocks, blocksAtOnce) {
			packed, err := s.rdb.HMGet(ctx, id.key()+":b", some...).Result()
			if err != nil {
				fail(err)
				return
			}
			for i, b := range packed {
				text, ok := b.(string)
				if !ok {
					continue // dropped meanwhile
				}
				entries, err := unpack([]byte(text), codec)
				if err != nil {
					if !fail(fmt.Errorf("block %s: %w", some[i], err)) {
						return
					}
				} else if !give(entries) {
					return
				}
			}
		}
		if !q.Newest {
			give(open)
		}
	}
}

// look returns the open entries and the names of the blocks that a query needs,
// as they are at one instant.
func (s *Store) look(ctx context.Context, id logID, q Query) (open []Entry, blocks []string, err error) {
	from, to, newest := int64(first), int64(never), 0
	if !q.From.IsZero() {
		from = micros(q.From)
	}
	if !q.To.IsZero() {
		to = micros(q.To.Add(time.Microsecond - 1)) // rounded up
	}
	if q.Newest {
		newest = 1
	}
	r, err := s.run(ctx, scriptRead, []call{{id.key(), []any{from, to, max(0, q.Limit), newest}}})[0].Slice()
	if err != nil {
		return nil, nil, err
	}
	list, names := r[0].([]any), r[1].([]any)
	open, blocks = make([]Entry, len(list)), make([]string, len(names))
	for i := range list {
		open[i] = parse(list[i].(string))
	}
	for i := range names {
		blocks[i] = names[i].(string)
	}
	return open, blocks, nil
}

// Read returns what All does. With an error it returns what could be read.
func (s *Store) Read(ctx context.Context, farm, name string, q Query) ([]Entry, error) {
	var entries []Entry
	var errs []error
	for e, err := range s.All(ctx, farm, name, q) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		entries = append(entries, e)
	}
	return entries, errors.Join(errs...)
}

// Tail returns the last n entries, newest first. Up to the spec's Keep that is
// one cheap round trip.
func (s *Store) Tail(ctx context.Context, farm, name string, n int) ([]Entry, error) {
	if n < 1 {
		return nil, nil
	}
	return s.Read(ctx, farm, name, Query{Limit: n, Newest: true})
}
