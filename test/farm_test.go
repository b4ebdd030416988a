package test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/types"
	"github.com/redis/go-redis/v9"

	"farmhand/gateway"
	"farmhand/platform"
	"farmhand/skeleton/jobapi/jobclient"
	"farmhand/skeleton/ledger/redisledger"
)

// config says how a farm differs from the usual one.
type config struct {
	workers    int               // replicas (4)
	slots      int               // of a replica (1)
	inflight   int               // calls a replica really takes at once (slots)
	timeout    string            // of an attempt (20s)
	dispatcher map[string]string // more environment of the dispatcher
	trainer    map[string]string // environment of a trainer; nil: there is none
	redis      string            // URL of a server of the test's own
	byHand     bool              // no dispatcher: the test starts its own
	steered    bool              // no controller either: likewise
	farm       map[string]string // annotations of the workers, instead of a count that the test sets
	up         []string          // more flags of farmhand up
}

// farm is a platform with a dispatcher, a controller and workers, all of them
// processes.
type farm struct {
	t       *testing.T
	cfg     config
	state   string
	url     string // of the gateway
	starts  string // file with a line per worker process that started
	gateway *gateway.Client
	client  *jobclient.Client
	rdb     *redis.Client
	store   *redisledger.Store
	seeds   []string // keys of the seconds that steer wrote ahead
}

// patience bounds every wait for something that has to happen.
const patience = 90 * time.Second

// until polls a condition. It is the only place where a test sleeps.
func until(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// start brings a farm up and takes it down when the test ends, after which none
// of its processes may be left.
func start(t *testing.T, cfg config) *farm {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("SKIPPED, UNPROVEN: redis-server is not installed (apt-get install redis-server)")
	}
	cfg.workers, cfg.slots, cfg.timeout = cmp.Or(cfg.workers, 4), cmp.Or(cfg.slots, 1), cmp.Or(cfg.timeout, "20s")
	cfg.inflight = cmp.Or(cfg.inflight, cfg.slots)
	f := &farm{t: t, cfg: cfg, state: filepath.Join(t.TempDir(), "state")}
	f.starts = filepath.Join(filepath.Dir(f.state), "starts")
	if err := os.WriteFile(f.stack(), f.stackFile(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.down)
	f.up()
	if !cfg.byHand {
		f.connect(f.url + "/function/dispatcher")
		if cfg.farm == nil { // else it has another count by and by
			f.ready(cfg.workers)
		}
	}
	return f
}

func (f *farm) stack() string { return filepath.Join(filepath.Dir(f.state), "stack.yml") }

// deployment of the workers. It begins with their number; the controller leaves
// that to the test, unless the test says how the farm is to be scaled.
func (f *farm) deployment() types.FunctionDeployment {
	annotations := map[string]string{"com.openfaas.ready.http.path": "/_/ready", "farmhand.slots": fmt.Sprint(f.cfg.slots),
		"farmhand.timeout": f.cfg.timeout, "farmhand.min": "0", "farmhand.policy": "manual"}
	maps.Copy(annotations, f.cfg.farm)
	return types.FunctionDeployment{
		Service: "worker", Image: "test/worker:latest",
		Labels:      &map[string]string{"farmhand.worker": "true", "com.openfaas.scale.min": fmt.Sprint(f.cfg.workers), "com.openfaas.scale.max": "20"},
		Annotations: &annotations,
		EnvVars: map[string]string{"read_timeout": "60s", "write_timeout": "60s", "exec_timeout": f.cfg.timeout, "healthcheck_interval": "100ms",
			"max_inflight": fmt.Sprint(f.cfg.inflight), "starts": f.starts},
	}
}

// stackFile holds the functions; JSON is YAML.
func (f *farm) stackFile() []byte {
	suite := map[string]string{
		"farmhand_redis_url": "redis://redis:6379/0", "farmhand_gateway_url": "http://gateway:8080", "farmhand_metrics_listen": ":8083",
		"read_timeout": "65s", "write_timeout": "65s", "exec_timeout": "60s", "healthcheck_interval": "0s",
	}
	function := func(name string, env map[string]string, secrets ...string) map[string]any {
		return map[string]any{"image": "test/" + name + ":latest", "environment": env, "secrets": secrets,
			"annotations": map[string]string{"com.openfaas.ready.http.path": "/_/ready"}}
	}
	w := f.deployment()
	functions := map[string]any{
		"worker": map[string]any{"image": w.Image, "labels": w.Labels, "annotations": w.Annotations, "environment": w.EnvVars},
	}
	if !f.cfg.steered {
		functions["controller"] = function("controller", suite, "farmhand-token", "farmhand-redis", "basic-auth-user", "basic-auth-password")
	}
	if !f.cfg.byHand {
		env := map[string]string{"farmhand_missing": "3s"}
		for _, from := range []map[string]string{suite, f.cfg.dispatcher} {
			for name, v := range from {
				env[name] = v
			}
		}
		functions["dispatcher"] = function("dispatcher", env, "farmhand-token", "farmhand-redis")
	}
	if f.cfg.trainer != nil {
		env := maps.Clone(suite)
		maps.Copy(env, f.cfg.trainer)
		functions["trainer"] = function("trainer", env, "farmhand-token", "farmhand-redis")
	}
	raw, err := json.Marshal(map[string]any{"version": "1.0", "provider": map[string]string{"name": "openfaas"}, "functions": functions})
	if err != nil {
		f.t.Fatal(err)
	}
	return raw
}

// up starts the platform, for the first time or again.
func (f *farm) up() {
	f.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "farmhand"), append([]string{"up", "-d", "--deploy", "--state", f.state, "--stack", f.stack(),
		"--prebuilt", filepath.Join(bin, "functions"), "--listen", "127.0.0.1:0", "--metrics-listen", "none",
		"--redis", cmp.Or(f.cfg.redis, "auto"), "--cold-start", "none"}, f.cfg.up...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("farmhand up: %v\n%s", err, out)
	}
	f.url = f.read("gateway.url")
	creds := &gateway.Credentials{User: f.read("credentials/basic-auth-user"), Password: f.read("credentials/basic-auth-password")}
	var err error
	if f.gateway, err = gateway.New(f.url, creds, gateway.Options{}); err != nil {
		f.t.Fatal(err)
	}
	if f.rdb == nil {
		o, err := redis.ParseURL(f.read("redis.url"))
		if err != nil {
			f.t.Fatal(err)
		}
		f.rdb = redis.NewClient(o)
		f.store = redisledger.New(f.rdb, redisledger.Options{})
	}
}

// connect makes the client of the dispatcher at url.
func (f *farm) connect(url string) {
	f.t.Helper()
	var err error
	if f.client, err = jobclient.New(url, f.read("secrets/farmhand-token")); err != nil {
		f.t.Fatal(err)
	}
	f.client.Patience = patience
}

func (f *farm) read(name string) string {
	f.t.Helper()
	raw, err := os.ReadFile(filepath.Join(f.state, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// ready waits until the dispatchers know so many workers to be ready.
func (f *farm) ready(n int) {
	f.t.Helper()
	until(f.t, patience, fmt.Sprintf("%d workers ready", n), func() bool {
		v, err := f.client.Farm(f.t.Context(), "worker")
		return err == nil && v.Ready == n && v.Target == n && v.Missing == ""
	})
}

// down ends the platform. None of its processes is left.
func (f *farm) down() {
	if f.t.Failed() {
		for _, name := range []string{"platform.log", "dispatcher.log", "controller.log", "trainer.log"} {
			if log, err := os.ReadFile(filepath.Join(f.state, "logs", name)); err == nil {
				f.t.Logf("%s ends with\n%s", name, log[max(0, len(log)-4000):])
			}
		}
	}
	if f.rdb != nil {
		f.store.Close()
		_ = f.rdb.Close()
	}
	if f.client != nil {
		f.client.Close()
	}
	if f.gateway != nil {
		f.gateway.CloseIdle()
	}
	info, running := platform.Running(f.state)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if out, err := exec.CommandContext(ctx, filepath.Join(bin, "farmhand"), "down", "--state", f.state).CombinedOutput(); err != nil {
		f.t.Errorf("farmhand down: %v\n%s", err, out)
	}
	if left := f.processes(""); len(left) > 0 {
		f.t.Errorf("processes are left of the platform: %v", left)
	}
	if running == nil && info.Process.Alive() {
		f.t.Error("the platform is left")
	}
}
