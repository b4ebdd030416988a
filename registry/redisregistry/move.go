package redisregistry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"farmhand/registry"
)

// Challenge implements registry.Registry.
func (s *Store) Challenge(ctx context.Context, farm, version string, r registry.Reason) error {
	if err := s.usable(ctx, farm, version, r); err != nil {
		return err
	}
	_, err := s.move(ctx, registry.Challenge, farm, version, "", r)
	return err
}

// Promote implements registry.Registry.
func (s *Store) Promote(ctx context.Context, farm, version string, r registry.Reason) error {
	if err := s.usable(ctx, farm, version, r); err != nil {
		return err
	}
	for {
		a, err := s.championed(ctx, farm, r)
		if err != nil || a == version && !r.Forced {
			return err
		}
		if !r.Forced {
			v, err := s.verdict(ctx, farm, version)
			if err != nil {
				return err
			}
			if err := registry.Permit(v, a); err != nil {
				return err
			}
			if err := s.stands(ctx, farm, version); err != nil {
				return err
			}
		}
		if done, err := s.move(ctx, registry.Promotion, farm, version, a, r); done || err != nil {
			return err
		}
	}
}

// stands checks that the last promotion of a version was not rolled back: the verdict
// which led to it may come again, when a trainer was killed before it could note it.
func (s *Store) stands(ctx context.Context, farm, version string) error {
	history, err := s.History(ctx, farm)
	if err != nil && !errors.Is(err, registry.ErrDamaged) {
		return err
	}
	for _, c := range history {
		switch {
		case c.Kind == registry.Rollback && c.From == version:
			return fmt.Errorf("%w: it was champion here, and was rolled back", registry.ErrRefused)
		case c.Kind == registry.Promotion && c.To == version:
			return nil
		}
	}
	return nil
}

// championed is the champion of a farm. One that is damaged may be replaced by force.
func (s *Store) championed(ctx context.Context, farm string, r registry.Reason) (string, error) {
	if r.Forced {
		v, err := s.rdb.HGet(ctx, aliasesKey, champion+" "+farm).Result()
		if found(err) != nil {
			return "", failed("champion", err)
		}
		if !registry.IsVersion(v) {
			return "", nil
		}
		return v, nil
	}
	v, _, err := s.Champion(ctx, farm)
	return v, err
}

// Rollback implements registry.Registry.
func (s *Store) Rollback(ctx context.Context, farm string, r registry.Reason) (string, error) {
	if err := r.Check(); err != nil {
		return "", err
	}
	for {
		back, err := s.rdb.HGet(ctx, aliasesKey, previous+" "+farm).Result()
		switch {
		case errors.Is(err, redis.Nil):
			return "", fmt.Errorf("%w: %s", registry.ErrNothing, farm)
		case err != nil:
			return "", failed("previous", err)
		case back != "" && !registry.IsVersion(back):
			return "", notVersion(previous, farm, back)
		case back != "":
			if err := s.usable(ctx, farm, back, r); err != nil {
				return "", err
			}
		}
		if done, err := s.move(ctx, registry.Rollback, farm, back, back, r); done || err != nil {
			return back, err
		}
	}
}

// Forget implements registry.Registry.
func (s *Store) Forget(ctx context.Context, farm string) error {
	pipe := s.rdb.TxPipeline()
	pipe.HDel(ctx, aliasesKey, champion+" "+farm, challenger+" "+farm, previous+" "+farm)
	pipe.HDel(ctx, termsKey, farm)
	pipe.Del(ctx, historyKey+farm)
	pipe.Incr(ctx, revisionKey)
	if _, err := pipe.Exec(ctx); err != nil {
		return failed("forget "+farm, err)
	}
	return nil
}

// usable checks that an alias may be moved to a version: its bytes are whole, and it
// can run with this program.
func (s *Store) usable(ctx context.Context, farm, version string, r registry.Reason) error {
	if err := named(farm, version); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	file, err := s.Policy(ctx, version)
	if err != nil {
		return err
	}
	_, err = registry.Validate(file)
	return err
}

// move an alias. It reports false where what the caller believes is not so any more.
func (s *Store) move(ctx context.Context, kind registry.Kind, farm, version, believed string, r registry.Reason) (bool, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return false, fmt.Errorf("registry: %s: %w", kind, err)
	}
	answer, err := moveScript.Run(ctx, s.rdb, []string{aliasesKey, historyKey + farm, revisionKey, orderKey, termsKey},
		string(kind), farm, version, believed, text, registry.HistoryLength, r.Forced).Text()
	if err != nil {
		return false, failed(string(kind), err)
	}
	switch answer {
	case "moved", "same":
		return true, nil
	case "unknown":
		return false, unknown(version)
	case "nothing":
		return false, fmt.Errorf("%w: %s", registry.ErrNothing, farm)
	}
	return false, nil
}
