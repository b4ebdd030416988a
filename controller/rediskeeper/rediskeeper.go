// Package rediskeeper keeps in Redis what has to survive a controller: for each
// farm one hash with its lease, its state and its overrides. Time is Redis TIME.
package rediskeeper

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/controller"
)

var (
	//go:embed scripts/claim.lua
	claimLua string
	//go:embed scripts/save.lua
	saveLua string
	//go:embed scripts/release.lua
	releaseLua string
	//go:embed scripts/override.lua
	overrideLua string

	claim    = redis.NewScript(claimLua)
	save     = redis.NewScript(saveLua)
	release  = redis.NewScript(releaseLua)
	override = redis.NewScript(overrideLua)
)

// Store is a controller.Keeper in Redis.
type Store struct {
	rdb   redis.UniversalClient
	shift func() time.Duration
}

var _ controller.Keeper = (*Store)(nil)

// New returns the keeper in rdb, which it does not own. shift is added to Redis
// TIME; tests move it. Nil means 0.
func New(rdb redis.UniversalClient, shift func() time.Duration) *Store {
	if shift == nil {
		shift = func() time.Duration { return 0 }
	}
	return &Store{rdb: rdb, shift: shift}
}

// key of a farm's hash; the roster has one outside all farms.
func key(farm string) string {
	if farm == "" {
		return "farmhand:roster:control"
	}
	return "farmhand:{" + farm + "}:control"
}

// Claim implements controller.Keeper.
func (s *Store) Claim(ctx context.Context, owner string, length time.Duration, claims []controller.Claim) ([]controller.Held, error) {
	offset := s.shift().Microseconds()
	answers, err := s.each(ctx, claim, len(claims), func(i int) (string, []any) {
		return key(claims[i].Farm), []any{offset, owner, length.Microseconds(), claims[i].Fence}
	})
	if err != nil {
		return nil, fmt.Errorf("rediskeeper: claim: %w", err)
	}
	held := make([]controller.Held, len(claims))
	for i, cmd := range answers {
		a, err := cmd.Slice()
		if err != nil {
			held[i].Err = fmt.Errorf("rediskeeper: claim: %w", err)
			continue
		}
		us, _ := strconv.ParseInt(a[0].(string), 10, 64) // written by our own script
		held[i] = controller.Held{Now: time.UnixMicro(us).UTC(), Fence: a[1].(int64), Owner: a[2].(string), State: bytesOf(a[3]), Overrides: bytesOf(a[4])}
	}
	return held, nil
}

// Release implements controller.Keeper.
func (s *Store) Release(ctx context.Context, owner string, claims []controller.Claim) error {
	_, err := s.each(ctx, release, len(claims), func(i int) (string, []any) {
		return key(claims[i].Farm), []any{owner, claims[i].Fence}
	})
	if err != nil {
		return fmt.Errorf("rediskeeper: release: %w", err)
	}
	return nil
}

// Save implements controller.Keeper.
func (s *Store) Save(ctx context.Context, saves []controller.Save) ([]bool, error) {
	answers, err := s.each(ctx, save, len(saves), func(i int) (string, []any) {
		return key(saves[i].Farm), []any{saves[i].Fence, saves[i].State}
	})
	if err != nil {
		return nil, fmt.Errorf("rediskeeper: save: %w", err)
	}
	kept := make([]bool, len(saves))
	for i, cmd := range answers {
		kept[i], _ = cmd.Bool() // a farm whose key is spoilt keeps nothing
	}
	return kept, nil
}

// Override implements controller.Keeper.
func (s *Store) Override(ctx context.Context, farm string, old, new []byte) (bool, error) {
	done, err := override.Run(ctx, s.rdb, []string{key(farm)}, old, new).Bool()
	if err != nil {
		return false, fmt.Errorf("rediskeeper: override: %w", err)
	}
	return done, nil
}

// Kept implements controller.Keeper. Fence is that of the lease, ours or not.
func (s *Store) Kept(ctx context.Context, farm string) (controller.Held, error) {
	pipe := s.rdb.Pipeline()
	now := pipe.Time(ctx)
	all := pipe.HGetAll(ctx, key(farm))
	if _, err := pipe.Exec(ctx); err != nil {
		return controller.Held{}, fmt.Errorf("rediskeeper: read: %w", err)
	}
	f := all.Val()
	fence, _ := strconv.ParseInt(f["fence"], 10, 64) // written by our own scripts; 0 where there is none
	return controller.Held{Now: now.Val().Add(s.shift()).UTC(), Fence: fence, Owner: f["owner"], State: bytesOf(f["state"]), Overrides: bytesOf(f["overrides"])}, nil
}

// each calls a script for n keys in one round trip. A server that does not know
// the script is taught it.
func (s *Store) each(ctx context.Context, script *redis.Script, n int, args func(int) (string, []any)) ([]*redis.Cmd, error) {
	cmds := make([]*redis.Cmd, n)
	for try := 0; ; try++ {
		pipe := s.rdb.Pipeline()
		for i := range n {
			k, a := args(i)
			cmds[i] = script.EvalSha(ctx, pipe, []string{k}, a...)
		}
		if n == 0 {
			return cmds, nil
		}
		_, err := pipe.Exec(ctx)
		if try > 0 || !redis.HasErrorPrefix(err, "NOSCRIPT") {
			for _, cmd := range cmds {
				if cmd.Err() == nil { // the others have errors of their own
					return cmds, nil
				}
			}
			return cmds, err
		}
		// A server that does not know it knows it for none of them.
		if err := script.Load(ctx, s.rdb).Err(); err != nil {
			return nil, err
		}
	}
}

func bytesOf(v any) []byte {
	if s := v.(string); s != "" {
		return []byte(s)
	}
	return nil
}
