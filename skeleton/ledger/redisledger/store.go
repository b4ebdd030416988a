// Package redisledger keeps the ledger of every farm in Redis.
//
// All keys of a farm share the hash tag {FARM} and no script touches two farms;
// Redis Cluster itself is untested. Scripts move ids and metadata only: bodies
// and results over ledger.MaxInline live in keys of their own, written before
// they become visible and fetched outside scripts. Time is Redis TIME, read
// inside each script; no state is kept by the expiry of a key.
package redisledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Schema of the keys: a program reads its own major version, of any minor.
const (
	schemaMajor = 1
	schemaMinor = 0
)

const (
	keySchema = "farmhand:schema"
	keyRoster = "farmhand:roster"
)

// Options of a store. The zero value is fit for production.
type Options struct {
	Limits ledger.Limits
	// Offset is added to Redis TIME; tests move it. Nil means 0.
	Offset func() time.Duration
}

// Store is a ledger.Store in Redis. Close it when done.
type Store struct {
	rdb    redis.UniversalClient
	limits ledger.Limits
	shift  func() time.Duration
	hub    *hub
}

var _ ledger.Store = (*Store)(nil)

// New returns the store in rdb, which it does not own. It asks nothing of the
// server, which may be away.
func New(rdb redis.UniversalClient, o Options) *Store {
	s := &Store{rdb: rdb, limits: o.Limits.WithDefaults(), shift: o.Offset, hub: newHub(rdb)}
	if s.shift == nil {
		s.shift = func() time.Duration { return 0 }
	}
	return s
}

// Check looks at the schema of the data in Redis, marking an empty server, and
// says whether this program can work with it.
func (s *Store) Check(ctx context.Context) error {
	if err := s.rdb.SetNX(ctx, keySchema, fmt.Sprintf("%d.%d", schemaMajor, schemaMinor), 0).Err(); err != nil {
		return check("schema", err)
	}
	have, err := s.rdb.Get(ctx, keySchema).Result()
	if err != nil {
		return check("schema", err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(have, "%d.%d", &major, &minor); err != nil || major != schemaMajor {
		return fmt.Errorf("%w: Redis holds %q, this program reads %d.x", ledger.ErrSchema, have, schemaMajor)
	}
	return nil
}

// Close ends the subscriptions.
func (s *Store) Close() { s.hub.close() }

func (s *Store) offset() int64 { return s.shift().Microseconds() }

// Farm implements ledger.Store.
func (s *Store) Farm(name string) ledger.Ledger {
	return &farm{store: s, name: name, prefix: prefixOf(name)}
}

func prefixOf(name string) string { return "farmhand:{" + name + "}:" }

// Roster implements ledger.Store.
func (s *Store) Roster(ctx context.Context) (skeleton.Roster, error) {
	var r skeleton.Roster
	raw, err := s.rdb.Get(ctx, keyRoster).Bytes()
	if err != nil {
		return r, check("roster", err)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("redisledger: roster: %w", err)
	}
	return r, nil
}

// PublishWindows implements ledger.Store, in one round trip.
func (s *Store) PublishWindows(ctx context.Context, farms []skeleton.Farm) error {
	pipe := s.rdb.Pipeline()
	cmds := make([]*redis.Cmd, len(farms))
	for i, f := range farms {
		l := s.Farm(f.Name).(*farm)
		cmds[i] = scriptPublish.EvalSha(ctx, pipe, []string{l.prefix}, l.argv([]any{f.Ready, f.Target, max(1, f.Settings.Slots)})...)
	}
	if len(farms) > 0 {
		_, _ = pipe.Exec(ctx) // each command keeps its own error
	}
	var errs []error // one farm's key must not be in the way of the others
	for i, f := range farms {
		err := cmds[i].Err()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			err = s.Farm(f.Name).(*farm).run(ctx, scriptPublish, f.Ready, f.Target, max(1, f.Settings.Slots)).Err()
		}
		if err := check("publish", err); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.Name, err))
		}
	}
	if n := len(errs); n > 0 && n < len(farms) {
		errs = append(errs, ledger.ErrSome)
	}
	return errors.Join(errs...)
}

// PublishRoster implements ledger.Store.
func (s *Store) PublishRoster(ctx context.Context, r skeleton.Roster) error {
	now, err := s.rdb.Time(ctx).Result()
	if err != nil {
		return check("publish", err)
	}
	r.Published = now.Add(s.shift())
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("redisledger: roster: %w", err)
	}
	pipe := s.rdb.Pipeline()
	pipe.Set(ctx, keyRoster, raw, 0)
	pipe.Publish(ctx, keyRoster, "")
	_, err = pipe.Exec(ctx)
	return check("publish", err)
}

// WatchRoster implements ledger.Store.
func (s *Store) WatchRoster(ctx context.Context, fn func()) error {
	return s.hub.watch(ctx, keyRoster, func(string) { fn() })
}

// Durability implements ledger.Store. It asks the server for its persistence:
// where CONFIG is forbidden, an append-only file counts as synced every second.
func (s *Store) Durability(ctx context.Context) (string, error) {
	info, err := s.rdb.Info(ctx, "persistence").Result()
	if err != nil {
		if derr := check("durability", err); strings.Contains(err.Error(), "ERR") || strings.Contains(err.Error(), "not supported") {
			return "memory", nil // a server without persistence may not know the section
		} else {
			return "", derr
		}
	}
	if !strings.Contains(info, "aof_enabled:1") {
		return "memory", nil
	}
	conf, err := s.rdb.ConfigGet(ctx, "appendfsync").Result()
	if err == nil && conf["appendfsync"] == "always" {
		return "disk", nil
	}
	return "process", nil
}

// farm is the ledger of one farm.
type farm struct {
	store  *Store
	name   string
	prefix string
}

var _ ledger.Ledger = (*farm)(nil)

func (l *farm) key(parts ...string) string { return l.prefix + strings.Join(parts, ":") }

// unit strips the farm off a job id: FARM~ULID → ULID.
func (l *farm) unit(job string) (string, error) {
	unit, ok := strings.CutPrefix(job, l.name+"~")
	if !ok || unit == "" || strings.ContainsAny(unit, ",:\n") {
		return "", fmt.Errorf("%w: %q is no job of farm %s", ledger.ErrNotFound, job, l.name)
	}
	return unit, nil
}

func (l *farm) id(unit string) string { return l.name + "~" + unit }
