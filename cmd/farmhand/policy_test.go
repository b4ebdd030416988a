package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"farmhand/internal/fn"
	"farmhand/policy/learned"
	"farmhand/registry"
	"farmhand/registry/policyapi"
	"farmhand/registry/redisregistry"
	"farmhand/registry/registrytest"
)

// The scripts testdata/policy*.txtar run the program against the registry as the
// controller serves it. In them there are one.safetensors and two.safetensors, whose
// versions are $ONE and $TWO, and peak.safetensors, which always has replicas for the
// highest load.
func TestPolicyCommands(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join("testdata", "policy*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		RequireExplicitExec: true,
		Setup:               setupRegistry,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": exitCode, "judge": judge, "damage": damage},
	})
}

type registryKey struct{}

// fakeRegistry is a registry in a Redis of its own.
type fakeRegistry struct {
	registry.Registry
	redis *miniredis.Miniredis
}

func setupRegistry(env *testscript.Env) error {
	t, ok := env.T().(testing.TB)
	if !ok {
		return errors.New("no testing.TB")
	}
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	reg := redisregistry.New(rdb, redisregistry.Limits{})
	api := fn.RequireToken("s3cret", policyapi.New(policyapi.Config{Registry: reg, Known: func(farm string) bool { return farm == "thumbnail" }}))
	srv := httptest.NewServer(http.StripPrefix("/function/controller", api))
	t.Cleanup(srv.Close)
	env.Setenv("FARMHAND_GATEWAY", srv.URL)
	env.Setenv("FARMHAND_TOKEN", "s3cret")
	env.Setenv("TZ", "UTC")
	for i, name := range []string{"ONE", "TWO"} {
		file := registrytest.File(t, uint64(i))
		env.Setenv(name, registry.Short(registry.VersionOf(file)))
		if err := os.WriteFile(filepath.Join(env.WorkDir, []string{"one", "two"}[i]+".safetensors"), file, 0o600); err != nil {
			return err
		}
	}
	peak := registrytest.Always(t, slices.Index(learned.Actions(), "rule-peak"))
	if err := os.WriteFile(filepath.Join(env.WorkDir, "peak.safetensors"), peak, 0o600); err != nil {
		return err
	}
	env.Values[registryKey{}] = &fakeRegistry{reg, m}
	return nil
}

// judge VERSION OUTCOME [CHAMPION]: keeps a verdict for thumbnail.
func judge(ts *testscript.TestScript, _ bool, args []string) {
	reg, ctx := ts.Value(registryKey{}).(*fakeRegistry), context.Background()
	version, err := reg.Resolve(ctx, args[0])
	ts.Check(err)
	v := registry.Verdict{Rule: "staffing", Notes: []string{"traffic: 2 stretches"}, Checks: []registry.Check{
		{Metric: "worker_seconds_ratio", Work: "burst-cron-150ms", Against: "staffing", Value: 0.8, Lo: 0.7, Hi: 0.9, Limit: 0.99, N: 20, Outcome: registry.Outcome(args[1])}}}
	v.Conclude()
	if len(args) > 2 {
		v.Champion, err = reg.Resolve(ctx, args[2])
		ts.Check(err)
	}
	ts.Check(reg.Judge(ctx, "thumbnail", version, v))
}

// damage VERSION: its bytes are others.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	reg, ctx := ts.Value(registryKey{}).(*fakeRegistry), context.Background()
	version, err := reg.Resolve(ctx, args[0])
	ts.Check(err)
	ts.Check(reg.redis.Set("farmhand:{policies}:file:"+version, "x"))
}
