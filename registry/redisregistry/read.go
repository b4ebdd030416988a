package redisregistry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/registry"
)

// Revision implements registry.Source.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	n, err := s.rdb.Get(ctx, revisionKey).Int64()
	if found(err) != nil {
		return 0, failed("revision", err)
	}
	return n, nil
}

// Champion implements registry.Source.
func (s *Store) Champion(ctx context.Context, farm string) (string, int64, error) {
	pipe := s.rdb.TxPipeline()
	version, count := pipe.HGet(ctx, aliasesKey, champion+" "+farm), pipe.HGet(ctx, termsKey, farm)
	_, err := pipe.Exec(ctx)
	for _, err := range []error{found(err), found(version.Err()), found(count.Err())} { // Exec returns the first error only, which may be Nil
		if err != nil {
			return "", 0, failed("champion", err)
		}
	}
	term := int64(0)
	if count.Err() == nil {
		if term, err = count.Int64(); err != nil {
			return "", 0, fmt.Errorf("%w: the term of %s is %.80q", registry.ErrDamaged, farm, count.Val())
		}
	}
	if v := version.Val(); v != "" && !registry.IsVersion(v) {
		return "", 0, notVersion(champion, farm, v)
	}
	return version.Val(), term, nil
}

func notVersion(alias, farm, v string) error {
	return fmt.Errorf("%w: the %s of %s is %.80q; promote a version by force", registry.ErrDamaged, alias, farm, v)
}

// Aliases implements registry.Registry.
func (s *Store) Aliases(ctx context.Context, farm string) (a registry.Aliases, err error) {
	names := []string{champion, challenger, previous}
	list, err := s.rdb.HMGet(ctx, aliasesKey, champion+" "+farm, challenger+" "+farm, previous+" "+farm).Result()
	if err != nil {
		return a, failed("aliases", err)
	}
	for i, to := range []*string{&a.Champion, &a.Challenger, &a.Previous} {
		v, _ := list[i].(string) // nil: there is none
		if v != "" && !registry.IsVersion(v) {
			err = errors.Join(err, notVersion(names[i], farm, v))
			continue
		}
		*to = v
	}
	return a, err
}

// Policy implements registry.Source.
func (s *Store) Policy(ctx context.Context, version string) ([]byte, error) {
	if !registry.IsVersion(version) {
		return nil, unknown(version)
	}
	pipe := s.rdb.Pipeline()
	file, listed := pipe.Get(ctx, fileKey+version), pipe.ZScore(ctx, orderKey, version)
	if _, err := pipe.Exec(ctx); found(err) != nil {
		return nil, failed("read "+registry.Short(version), err)
	}
	if errors.Is(file.Err(), redis.Nil) {
		if listed.Err() == nil {
			return nil, fmt.Errorf("%w: the bytes of policy %s are gone; import the file again", registry.ErrDamaged, registry.Short(version))
		}
		return nil, unknown(version)
	}
	for _, err := range []error{file.Err(), found(listed.Err())} { // Exec returns the first error only, which may be Nil
		if err != nil {
			return nil, failed("read "+registry.Short(version), err)
		}
	}
	b := []byte(file.Val())
	if err := registry.Verify(version, b); err != nil {
		return nil, err
	}
	return b, nil
}

// leastDigits is how much of a version names it at least.
const leastDigits = 4

// Resolve implements registry.Source.
func (s *Store) Resolve(ctx context.Context, name string) (string, error) {
	all, err := s.rdb.ZRange(ctx, orderKey, 0, -1).Result()
	if err != nil {
		return "", failed("versions", err)
	}
	if len(name) < leastDigits {
		return "", fmt.Errorf("%w: %.80q is too short: want %d digits of a version, or more", registry.ErrUnknown, name, leastDigits)
	}
	all = slices.DeleteFunc(all, func(v string) bool { return !strings.HasPrefix(v, name) })
	switch len(all) {
	case 0:
		return "", unknown(name)
	case 1:
		return all[0], nil
	}
	return "", fmt.Errorf("%w: %d versions begin with %s: want more digits", registry.ErrUnknown, len(all), name)
}

// List implements registry.Registry.
func (s *Store) List(ctx context.Context) ([]registry.Version, error) {
	pipe := s.rdb.Pipeline()
	order, metas, uses := pipe.ZRevRangeWithScores(ctx, orderKey, 0, -1), pipe.HGetAll(ctx, metaKey), pipe.HGetAll(ctx, aliasesKey)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, failed("versions", err)
	}
	list := make([]registry.Version, len(order.Val()))
	verdicts := make([]*redis.MapStringStringCmd, len(list))
	pipe = s.rdb.Pipeline()
	for i, z := range order.Val() {
		v := &list[i]
		v.Version, _ = z.Member.(string)
		v.At = time.UnixMicro(int64(z.Score)).UTC()
		verdicts[i] = pipe.HGetAll(ctx, verdictsKey+v.Version)
		var k kept
		if err := json.Unmarshal([]byte(metas.Val()[v.Version]), &k); err != nil {
			return nil, fmt.Errorf("%w: what is known of policy %s: %w; import the file again", registry.ErrDamaged, registry.Short(v.Version), err)
		}
		v.Origin, v.Bytes, v.Summary = k.Origin, k.Bytes, k.Summary
		v.Uses = usesOf(v.Version, uses.Val())
	}
	if len(list) == 0 {
		return list, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, failed("verdicts", err)
	}
	for i := range list {
		for farm, text := range verdicts[i].Val() {
			v, err := verdictOf(text)
			if err != nil {
				return nil, err
			}
			if list[i].Verdicts == nil {
				list[i].Verdicts = map[string]registry.Verdict{}
			}
			list[i].Verdicts[farm] = *v
		}
	}
	return list, nil
}

func usesOf(version string, aliases map[string]string) (list []registry.Use) {
	for name, v := range aliases {
		if alias, farm, ok := strings.Cut(name, " "); ok && v == version {
			list = append(list, registry.Use{Farm: farm, Alias: alias})
		}
	}
	slices.SortFunc(list, func(a, b registry.Use) int { return strings.Compare(a.Farm+" "+a.Alias, b.Farm+" "+b.Alias) })
	return list
}

// verdict on a version for a farm; nil where there is none.
func (s *Store) verdict(ctx context.Context, farm, version string) (*registry.Verdict, error) {
	text, err := s.rdb.HGet(ctx, verdictsKey+version, farm).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, failed("verdict", err)
	}
	return verdictOf(text)
}

func verdictOf(text string) (*registry.Verdict, error) {
	v := &registry.Verdict{}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return nil, fmt.Errorf("%w: a verdict: %w", registry.ErrDamaged, err)
	}
	return v, nil
}

// History implements registry.Registry.
func (s *Store) History(ctx context.Context, farm string) ([]registry.Change, error) {
	entries, err := s.rdb.LRange(ctx, historyKey+farm, 0, registry.HistoryLength-1).Result()
	if err != nil {
		return nil, failed("history", err)
	}
	list := make([]registry.Change, 0, len(entries))
	var damaged error
	for _, text := range entries {
		c, err := changeOf(text)
		if err != nil {
			damaged = fmt.Errorf("%w: the history of %s: %w; the other changes are whole", registry.ErrDamaged, farm, err)
			continue
		}
		list = append(list, c)
	}
	return list, damaged
}

// changeOf reads "µs kind from to reason".
func changeOf(text string) (c registry.Change, err error) {
	part := strings.SplitN(text, " ", 5)
	if len(part) < 5 {
		return c, fmt.Errorf("%.80q is no change", text)
	}
	us, err := strconv.ParseInt(part[0], 10, 64)
	if err != nil {
		return c, err
	}
	c.At, c.Kind, c.From, c.To = time.UnixMicro(us).UTC(), registry.Kind(part[1]), part[2], part[3]
	return c, json.Unmarshal([]byte(part[4]), &c.Reason)
}
