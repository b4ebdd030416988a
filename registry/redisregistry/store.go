// Package redisregistry keeps the registry of policies in Redis.
//
// All its keys share the hash tag {policies}, so that one script can see to it that
// no version goes that a farm still names:
//
//	farmhand:{policies}:order          sorted set: version, by microseconds of its import
//	farmhand:{policies}:file:VERSION   the bytes
//	farmhand:{policies}:meta           hash: version → where it comes from, what it is (JSON)
//	farmhand:{policies}:verdicts:VERSION  hash: farm → verdict (JSON)
//	farmhand:{policies}:aliases        hash: "champion FARM", "challenger FARM", "previous FARM" → version
//	farmhand:{policies}:history:FARM   list: "µs kind from to reason", the newest first
//	farmhand:{policies}:terms          hash: farm → revision of its last promotion or rollback
//	farmhand:{policies}:revision       counter of moves
package redisregistry

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"farmhand/registry"
)

var (
	//go:embed scripts/import.lua
	importLua string
	//go:embed scripts/move.lua
	moveLua string
	//go:embed scripts/judge.lua
	judgeLua string

	importScript = redis.NewScript(importLua)
	moveScript   = redis.NewScript(moveLua)
	judgeScript  = redis.NewScript(judgeLua)
)

// The keys.
const (
	prefix      = "farmhand:{policies}:"
	orderKey    = prefix + "order"
	metaKey     = prefix + "meta"
	aliasesKey  = prefix + "aliases"
	termsKey    = prefix + "terms"
	revisionKey = prefix + "revision"
	fileKey     = prefix + "file:"     // + version
	verdictsKey = prefix + "verdicts:" // + version
	historyKey  = prefix + "history:"  // + farm
)

// The aliases.
const (
	champion   = "champion"
	challenger = "challenger"
	previous   = "previous"
)

// Store is a registry.Registry in Redis.
type Store struct {
	rdb    redis.UniversalClient
	limits Limits
}

var _ registry.Registry = (*Store)(nil)

// Limits of what is kept. 0: those of package registry.
type Limits struct {
	Versions int
	Bytes    int
}

// New returns the registry in rdb, which it does not own.
func New(rdb redis.UniversalClient, l Limits) *Store {
	if l.Versions <= 0 {
		l.Versions = registry.MaxVersions
	}
	if l.Bytes <= 0 {
		l.Bytes = registry.MaxBytes
	}
	return &Store{rdb: rdb, limits: l}
}

// kept is what is kept of a version beside its bytes.
type kept struct {
	Origin  registry.Origin  `json:"origin"`
	Bytes   int              `json:"bytes"`
	Summary registry.Summary `json:"summary"`
}

// Import implements registry.Registry.
func (s *Store) Import(ctx context.Context, file []byte, o registry.Origin) (string, error) {
	summary, err := registry.Validate(file)
	if err != nil {
		return "", err
	}
	if len(o.By) > registry.MaxText || len(o.Note) > registry.MaxText {
		return "", fmt.Errorf("%w: by and note have %d and %d bytes: want at most %d", registry.ErrInvalid, len(o.By), len(o.Note), registry.MaxText)
	}
	version := registry.VersionOf(file)
	var known kept // what is damaged of it is written anew
	text, err := s.rdb.HGet(ctx, metaKey, version).Bytes()
	if found(err) != nil {
		return "", failed("import", err)
	}
	if err == nil && json.Unmarshal(text, &known) == nil {
		o = known.Origin
	}
	meta, err := json.Marshal(kept{o, len(file), summary})
	if err != nil {
		return "", fmt.Errorf("registry: import: %w", err)
	}
	room, err := importScript.Run(ctx, s.rdb, []string{orderKey, metaKey, aliasesKey},
		version, file, meta, s.limits.Versions, s.limits.Bytes, fileKey, verdictsKey).Bool()
	if err != nil {
		return "", failed("import", err)
	}
	if !room {
		return "", fmt.Errorf("%w: %d bytes more do not fit into %d versions and %d bytes, and farms name all that is there", registry.ErrFull,
			len(file), s.limits.Versions, s.limits.Bytes)
	}
	return version, nil
}

// Judge implements registry.Registry.
func (s *Store) Judge(ctx context.Context, farm, version string, v registry.Verdict) error {
	if err := named(farm, version); err != nil {
		return err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("registry: verdict: %w", err)
	}
	if len(text) > maxVerdict {
		return fmt.Errorf("registry: the verdict has %d bytes: want at most %d", len(text), maxVerdict)
	}
	known, err := judgeScript.Run(ctx, s.rdb, []string{orderKey, verdictsKey + version}, version, farm, text).Bool()
	if err != nil {
		return failed("verdict", err)
	}
	if !known {
		return unknown(version)
	}
	return nil
}

// maxVerdict is how many bytes a verdict has at most.
const maxVerdict = 64 << 10

// named checks names before they become parts of keys.
func named(farm, version string) error {
	if farm == "" || len(farm) > 200 || strings.ContainsAny(farm, " {}\x00\r\n") {
		return fmt.Errorf("registry: %.80q is no name of a farm", farm)
	}
	if !registry.IsVersion(version) {
		return unknown(version)
	}
	return nil
}

func unknown(version string) error {
	return fmt.Errorf("%w: %.80q", registry.ErrUnknown, version)
}

// failed says what Redis could not do. Keys of another kind than ours are damage.
func failed(what string, err error) error {
	if strings.Contains(err.Error(), "WRONGTYPE") {
		return fmt.Errorf("%w: a key of %s* is not what it was: %w", registry.ErrDamaged, prefix, err)
	}
	return fmt.Errorf("registry: %s: %w", what, err)
}

// found passes nil replies on as no value.
func found(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}
