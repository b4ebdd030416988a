package blocklog

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Append appends one entry to a log. See AppendAll.
func (s *Store) Append(ctx context.Context, farm, name string, at time.Time, data []byte) error {
	return s.AppendAll(ctx, []Addition{{farm, name, Entry{at, data}}})
}

// AppendAll appends entries to their logs, in their order: all in one round trip
// where no log has two of them. Then it packs what is ripe, of a few logs only,
// so that the logs of many farms do not become ripe at once: two round trips more.
//
// An entry that equals the newest one of its log, time and data, is there
// already. So a call that failed may be made again, if it has no two entries for
// one log.
//
// The error joins those of single entries, which name log and farm. One that
// wraps ErrInvalid stands for an entry that will never be taken; ErrNotSealed for
// entries that are kept. All others are of Redis: the entry may be kept or not.
func (s *Store) AppendAll(ctx context.Context, additions []Addition) error {
	var errs []error
	due := map[string]ripe{}
	for _, round := range rounds(additions, &errs) {
		calls := make([]call, len(round))
		for i, a := range round {
			calls[i] = call{keyOf(a.Farm, a.Name), s.spec(a.Name).appendArgs(a.Entry)}
		}
		for i, cmd := range s.run(ctx, scriptAppend, calls) {
			a := round[i]
			r, err := cmd.Slice()
			if err != nil {
				errs = append(errs, fmt.Errorf("blocklog: append to %s of %s: %w", a.Name, a.Farm, err))
				continue
			}
			delete(due, calls[i].key)
			if n := r[1].(int64); n > 0 {
				due[calls[i].key] = ripeOf(a, r[0].(string), n)
			}
		}
	}
	if err := s.seal(ctx, choose(due, len(additions))); err != nil {
		errs = append(errs, fmt.Errorf("blocklog: %w: %w", ErrNotSealed, err))
	}
	return errors.Join(errs...)
}

// rounds are the valid additions, in their order, no two of a round to one log:
// a pipeline is sent again when its connection breaks, and entries are known
// again only by the newest one of their log.
func rounds(additions []Addition, errs *[]error) (rounds [][]*Addition) {
	met := map[[2]string]int{}
	for i := range additions {
		a := &additions[i]
		if err := a.check(); err != nil {
			*errs = append(*errs, err)
			continue
		}
		log := [2]string{a.Farm, a.Name}
		n := met[log]
		met[log]++
		if n == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[n] = append(rounds[n], a)
	}
	return rounds
}

// appendArgs are those of the script append.
func (s Spec) appendArgs(e Entry) []any {
	return []any{micros(e.At), e.Data, s.Entries, s.Span.Microseconds(), s.Bytes, s.Keep, s.MaxBytes, s.life()}
}

// life is how many milliseconds a log lives that nobody writes to.
func (s Spec) life() int64 { return (s.Retention + goodbye).Milliseconds() }

// Instants that scripts can tell apart from the others: 1970 and 2255.
const (
	first = 0
	never = 9e15
)

// micros is an instant in microseconds since 1970, within what scripts can count.
func micros(t time.Time) int64 { return min(never, max(first, t.UnixMicro())) }
