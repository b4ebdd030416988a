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
	"maps"
	"slices"
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

// Flush adds what a dispatcher counted to the seconds of its farms. A farm with an empty tally gets a heartbeat. What was stored is taken out
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
// all that is kept. An error says which farms are not in the answer, and why.
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

// batch is how many farms one round trip serves: so few that the first reading
// of all, with 15 minutes of each, does not run into a timeout.
const batch = 50

// each calls a script for many farms, and then done for each farm whose call
// went well.
func (s *Store) each(ctx context.Context, script *redis.Script, calls map[string][]any, done func(string, *redis.Cmd) error) error {
	var errs []error
	for farms := range slices.Chunk(slices.Collect(maps.Keys(calls)), batch) {
		cmds := s.call(ctx, script, farms, calls)
		for i, farm := range farms {
			err := cmds[i].Err()
			if err == nil {
				err = done(farm, cmds[i])
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("redissignal: %s: %w", farm, err))
			}
		}
	}
	return few(errs)
}

// call calls a script for some farms in one round trip. A server that does not
// know the script is taught it, and called again: a flush that it has taken in
// the meantime is the same one by its name.
func (s *Store) call(ctx context.Context, script *redis.Script, farms []string, calls map[string][]any) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(farms))
	for range 2 {
		pipe := s.rdb.Pipeline()
		for i, farm := range farms {
			cmds[i] = script.EvalSha(ctx, pipe, []string{prefix(farm)}, calls[farm]...)
		}
		_, _ = pipe.Exec(ctx) // each command keeps its own error
		unknown := func(c *redis.Cmd) bool { return redis.HasErrorPrefix(c.Err(), "NOSCRIPT") }
		if !slices.ContainsFunc(cmds, unknown) || script.Load(ctx, s.rdb).Err() != nil {
			break
		}
	}
	return cmds
}

// few joins errors, but not hundreds of the same.
func few(errs []error) error {
	if n := len(errs); n > 3 {
		errs = append(errs[:3:3], fmt.Errorf("redissignal: and %d more", n-3))
	}
	return errors.Join(errs...)
}

func prefix(farm string) string { return "farmhand:{" + farm + "}:" }
