// Package redissignal keeps the seconds of every farm in Redis, for 15 minutes.
//
// Each dispatcher adds what it counted to the farm's bucket of the second, by
// Redis TIME, as one short string: bin by bin it would be hundreds of commands.
// Readers merge. The ledger's counters are read in the same script. Buckets
// expire by themselves: they are no tasks.
package redissignal

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"farmhand/skeleton/signal"
)

// keep is how many seconds a bucket lives: a little longer than it is read.
const keep = int(signal.Kept/time.Second) + 60

//go:embed scripts/flush.lua
var flushSource string

//go:embed scripts/read.lua
var readSource string

var (
	scriptFlush = redis.NewScript(flushSource)
	scriptRead  = redis.NewScript(readSource)
)

// Options of a Store. The zero value is fit for production.
type Options struct {
	// Offset is added to Redis TIME; tests move it. Nil means 0.
	Offset func() time.Duration
}

// Store are the seconds of all farms. It is safe for concurrent use.
type Store struct {
	rdb   redis.UniversalClient
	shift func() time.Duration
}

// New returns the store in rdb, which it does not own.
func New(rdb redis.UniversalClient, o Options) *Store {
	if o.Offset == nil {
		o.Offset = func() time.Duration { return 0 }
	}
	return &Store{rdb: rdb, shift: o.Offset}
}

// Flush adds what a dispatcher counted to the seconds of its farms, in one round
// trip. A farm with an empty tally gets a heartbeat. What was stored is taken out
// of d; an error says why the rest was not. (An answer that is lost on its way
// leaves tallies in d that were stored: they may count twice, which is rare and
// harmless, as the ledger's counters are not among them.)
func (s *Store) Flush(ctx context.Context, d signal.Deltas) error {
	name := ulid.Make().String()
	calls := make(map[string][]any, len(d))
	for farm, t := range d {
		tally, err := encode(t)
		if err != nil {
			return fmt.Errorf("redissignal: %s: %w", farm, err)
		}
		calls[farm] = []any{s.shift().Microseconds(), keep, name, tally}
	}
	return s.each(ctx, scriptFlush, calls, func(farm string, _ *redis.Cmd) error {
		delete(d, farm)
		return nil
	})
}

// Read returns what is new of each farm since a second of Unix time; 0 brings
// all that is kept. It takes one round trip. An error says which farms are not in
// the answer, and why.
func (s *Store) Read(ctx context.Context, since map[string]int64) (map[string]signal.Reading, error) {
	calls := make(map[string][]any, len(since))
	for farm, sec := range since {
		calls[farm] = []any{s.shift().Microseconds(), sec, int(signal.Kept / time.Second)}
	}
	readings := make(map[string]signal.Reading, len(since))
	err := s.each(ctx, scriptRead, calls, func(farm string, cmd *redis.Cmd) error {
		answer, err := cmd.Slice()
		if err != nil {
			return err
		}
		r, err := decode(answer)
		if err == nil {
			readings[farm] = r
		}
		return err
	})
	return readings, err
}

// each calls a script for many farms in one round trip, and then done for each
// farm whose call went well. A server that does not know the script is taught it.
func (s *Store) each(ctx context.Context, script *redis.Script, calls map[string][]any, done func(string, *redis.Cmd) error) error {
	if len(calls) == 0 {
		return nil
	}
	var errs []error
	for taught := false; ; taught = true {
		pipe := s.rdb.Pipeline()
		cmds := make(map[string]*redis.Cmd, len(calls))
		for farm, args := range calls {
			cmds[farm] = script.EvalSha(ctx, pipe, []string{prefix(farm)}, args...)
		}
		_, _ = pipe.Exec(ctx) // each command keeps its own error
		for farm, cmd := range cmds {
			err := cmd.Err()
			if redis.HasErrorPrefix(err, "NOSCRIPT") && !taught {
				continue
			}
			if err == nil {
				err = done(farm, cmd)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("redissignal: %s: %w", farm, err))
			}
			delete(calls, farm)
		}
		if len(calls) == 0 {
			return few(errs)
		}
		if err := script.Load(ctx, s.rdb).Err(); err != nil {
			return few(append(errs, fmt.Errorf("redissignal: %w", err)))
		}
	}
}

// few joins errors, but not hundreds of the same.
func few(errs []error) error {
	if n := len(errs); n > 3 {
		errs = append(errs[:3:3], fmt.Errorf("redissignal: and %d more", n-3))
	}
	return errors.Join(errs...)
}

func prefix(farm string) string { return "farmhand:{" + farm + "}:" }
