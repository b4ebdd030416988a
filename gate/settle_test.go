package gate

import (
	"context"
	"errors"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"farmhand/registry"
	"farmhand/registry/redisregistry"
	"farmhand/registry/registrytest"
)

// broken is a registry of which a call fails, as when a trainer is killed before it.
type broken struct {
	registry.Registry
	judge, promote error
}

func (b *broken) Judge(ctx context.Context, farm, version string, v registry.Verdict) error {
	if b.judge != nil {
		return b.judge
	}
	return b.Registry.Judge(ctx, farm, version, v)
}

func (b *broken) Promote(ctx context.Context, farm, version string, r registry.Reason) error {
	if b.promote != nil {
		return b.promote
	}
	return b.Registry.Promote(ctx, farm, version, r)
}

// Killed before or between its steps, a settlement is made good by the next one; once
// made it changes nothing more.
func TestSettle(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = c.Close() })
	reg := redisregistry.New(c, redisregistry.Limits{})
	cfg := config(t, asPeak, twenty)
	version, err := reg.Import(t.Context(), cfg.Challenger, registry.Origin{By: "trainer"})
	if err != nil {
		t.Fatal(err)
	}
	good := verdict(t, ran(t, cfg))
	champion := func() string {
		v, _, err := reg.Champion(t.Context(), "f")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	killed := errors.New("killed")
	for _, b := range []*broken{{reg, killed, nil}, {reg, nil, killed}} {
		if _, err := Settle(t.Context(), b, "f", version, good); !errors.Is(err, killed) || champion() != "" {
			t.Errorf("%v, champion %q", err, champion())
		}
	}
	bad := good
	bad.Outcome = registry.Inconclusive
	if done, err := Settle(t.Context(), reg, "f", version, bad); done || err != nil || champion() != "" {
		t.Errorf("inconclusive: %v, %v", done, err)
	}
	for range 2 {
		if done, err := Settle(t.Context(), reg, "f", version, good); !done || err != nil || champion() != version {
			t.Errorf("promoted: %v, %v", done, err)
		}
	}
	if h, err := reg.History(t.Context(), "f"); err != nil || len(h) != 1 || h[0].By != "gate" || h[0].Text == "" {
		t.Errorf("%+v, %v", h, err)
	}

	// Killed after the promotion, which somebody rolls back before it is made good.
	if _, err := reg.Rollback(t.Context(), "f", registry.Reason{By: "me"}); err != nil {
		t.Fatal(err)
	}
	if done, err := Settle(t.Context(), reg, "f", version, good); done || err != nil || champion() != "" {
		t.Errorf("after the rollback: %v, %v, champion %q", done, err, champion())
	}

	// Meanwhile somebody has promoted another one.
	other, err := reg.Import(t.Context(), registrytest.File(t, 1), registry.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	if err := reg.Promote(t.Context(), "f", other, registry.Reason{Text: "by hand", Forced: true}); err != nil {
		t.Fatal(err)
	}
	if done, err := Settle(t.Context(), reg, "f", version, good); done || err != nil || champion() != other {
		t.Errorf("against another champion: %v, %v", done, err)
	}
}
