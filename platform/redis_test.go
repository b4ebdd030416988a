package platform_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"farmhand/internal/redistest"
	"farmhand/platform"
	"farmhand/skeleton/ledger/redisledger"
)

// How durable a server of the user's own is, the platform says as the ledger does.
func TestDurabilityOfGivenRedis(t *testing.T) {
	for name, c := range map[string]struct {
		conf []string
		want platform.Durability
	}{
		"no file":         {[]string{"appendonly no"}, platform.InMemory},
		"every second":    {[]string{"appendfsync everysec"}, platform.InProcess},
		"always":          {[]string{"appendfsync always"}, platform.OnDisk},
		"now and then":    {[]string{"appendfsync no"}, platform.InProcess},
		"no CONFIG":       {[]string{"appendfsync always", `rename-command CONFIG ""`}, platform.InProcess},
		"no INFO":         {[]string{`rename-command INFO ""`}, platform.InMemory},
		"no CONFIG, file": {[]string{"appendonly no", `rename-command CONFIG ""`}, platform.InMemory},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t, c.conf...)
			b := start(t, func(conf *platformConfig) { conf.Redis = "redis://" + s.Addr + "/0" })
			ledger, err := redisledger.New(redistest.Client(t, s), redisledger.Options{}).Durability(t.Context())
			if got := b.Durability(); got != c.want || err != nil || ledger != string(got) {
				t.Errorf("%q, want %q; the ledger says %q, %v", got, c.want, ledger, err)
			}
		})
	}
}

// A redis-server that dies comes back on the same port with the same data.
func TestKilledRedis(t *testing.T) {
	needRedis(t)
	b := start(t, func(c *platformConfig) { c.Redis = "auto" })
	if b.Durability() != platform.InProcess || b.Info().RedisKind != "redis-server" {
		t.Errorf("%+v", b.Info())
	}
	r, ctx := b.redis(t), context.Background()
	if err := r.Set(ctx, "kept", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	pid := redisPid(t, r)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "Redis is back", func() bool { v, _ := r.Get(ctx, "kept").Result(); return v == "yes" })
	if again := redisPid(t, r); again == pid {
		t.Error("the dead answer")
	}
	// Nobody gets in without the password, and no argument tells it.
	stranger := redis.NewClient(&redis.Options{Addr: b.Info().RedisAddr, MaxRetries: -1})
	defer stranger.Close()
	if err := stranger.Ping(ctx).Err(); err == nil {
		t.Error("no password is needed")
	}
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(redisPid(t, r)) + "/cmdline")
	if err != nil || bytes.Contains(raw, []byte(r.Options().Password)) {
		t.Errorf("the command line tells the password, or: %v", err)
	}
}

// What Redis keeps is nobody else's to read, wherever it may be moved.
func TestRedisFiles(t *testing.T) {
	needRedis(t)
	b := start(t, func(c *platformConfig) { c.Redis = "auto" })
	if err := b.redis(t).Set(t.Context(), "kept", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(filepath.Join(b.config.State, "redis"), func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		if st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, st.Mode())
		}
		if st.Mode().IsRegular() {
			files++
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestGivenRedis(t *testing.T) {
	needRedis(t)
	first := start(t, func(c *platformConfig) { c.Redis = "auto" })
	full, err := first.RedisURL()
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *platformConfig) { c.Redis = full })
	if i := b.Info(); i.RedisKind != "given" || b.Durability() != platform.InProcess || i.RedisAddr != first.Info().RedisAddr {
		t.Errorf("%+v", i)
	}
	d := function("echo", "farmhand_redis_url", "x")
	d.Secrets = []string{"farmhand-redis"}
	b.deploy(d)
	body := b.call("echo/world").body
	if !strings.Contains(body, first.redis(t).Options().Password+" 600") || strings.Contains(body, full) {
		t.Error("the function does not get the given server's password as its secret")
	}
}

// The embedded Redis lets keys expire.
func TestEmbeddedRedis(t *testing.T) {
	b := start(t)
	if b.Durability() != platform.InMemory {
		t.Errorf("%q", b.Durability())
	}
	r, ctx := b.redis(t), context.Background()
	if err := r.Set(ctx, "k", 1, 1000*1e6).Err(); err != nil {
		t.Fatal(err)
	}
	until(t, "the key expires", func() bool { return r.Exists(ctx, "k").Val() == 0 })
}

func needRedis(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("SKIPPED: redis-server is not installed (apt-get install redis-server)")
	}
}

func (b *bench) redis(t *testing.T) *redis.Client {
	t.Helper()
	full, err := os.ReadFile(filepath.Join(b.config.State, "redis.url"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := redis.ParseURL(strings.TrimSpace(string(full)))
	if err != nil {
		t.Fatal(err)
	}
	r := redis.NewClient(o)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func redisPid(t *testing.T, r *redis.Client) int {
	t.Helper()
	text, err := r.Info(context.Background(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, "process_id:")
	pid, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
