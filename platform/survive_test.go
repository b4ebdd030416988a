package platform_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/openfaas/faas-provider/types"

	"farmhand/platform"
)

func deployment(d types.FunctionDeployment) string {
	raw, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// remote runs a platform as a process of its own.
func remote(t testing.TB, c platform.Config) *exec.Cmd {
	t.Helper()
	c.Log = nil
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "test_role=platform", "test_config="+string(raw))
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "http") {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("%q, %v\n%s", line, err, log.String())
	}
	t.Cleanup(func() { // once more is fine
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return cmd
}

// The platform is killed: no process of its functions is left, and the next
// start brings back functions and replica counts, on the same Redis.
func TestKilledPlatform(t *testing.T) {
	needRedis(t)
	c := config(t)
	c.Redis = "auto"
	cmd := remote(t, c)
	info := running(t, c.State)
	b := attach(t, info)
	b.deploy(function("echo"))
	b.scale("echo", 3)
	b.ready("echo")
	grandchild, err := strconv.Atoi(b.call("echo/spawn").body)
	if err != nil {
		t.Fatal(err)
	}
	r := b.redis(t)
	if err := r.Set(context.Background(), "kept", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	// A second platform on the same state is refused and named.
	if _, err := platform.Start(context.Background(), c); err == nil || !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("second start: %v", err)
	}
	until(t, "the count is saved", func() bool {
		raw, _ := os.ReadFile(filepath.Join(c.State, "functions.json"))
		return bytes.Contains(raw, []byte(`"replicas": 3`))
	})
	var pids []int
	for _, in := range b.detail("echo").Instances {
		pids = append(pids, in.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range pids {
		gone(t, pid)
	}
	if _, err := platform.Running(c.State); err != platform.ErrNotRunning {
		t.Errorf("a dead platform: %v", err)
	}
	again := start(t, func(n *platformConfig) { n.State, n.Redis = c.State, c.Redis })
	if alive(grandchild) {
		t.Error("a process of a killed function is left after the next start")
	}
	again.ready("echo")
	if d := again.detail("echo"); d.Replicas != 3 {
		t.Errorf("restored: %+v", d)
	}
	if again.Info().RedisAddr != info.RedisAddr {
		t.Errorf("Redis moved from %s to %s", info.RedisAddr, again.Info().RedisAddr)
	}
	if v, err := again.redis(t).Get(context.Background(), "kept").Result(); v != "yes" {
		t.Errorf("Redis forgot: %q, %v", v, err)
	}
}

// Sweeping after a kill leaves neither a process nor a copy of a secret.
func TestSweep(t *testing.T) {
	c := config(t)
	if _, err := exec.LookPath("redis-server"); err == nil {
		c.Redis = "auto"
	}
	cmd := remote(t, c)
	b := attach(t, running(t, c.State))
	d := function("echo")
	d.Secrets = []string{"farmhand-token"}
	b.deploy(d)
	grandchild, err := strconv.Atoi(b.call("echo/spawn").body)
	if err != nil {
		t.Fatal(err)
	}
	if err := platform.Sweep(c.State, c.Log); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("sweeping a platform that runs: %v", err)
	}
	if a := b.call("echo"); a.status != 200 {
		t.Errorf("after a refused sweep: %+v", a)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	copies := func() (n int) {
		list, err := filepath.Glob(filepath.Join(c.State, "run", "*", "secrets", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := copies(); n != 1 {
		t.Errorf("%d copies of the secret before", n)
	}
	for range 2 { // twice is fine
		if err := platform.Sweep(c.State, c.Log); err != nil {
			t.Fatal(err)
		}
	}
	gone(t, grandchild)
	if entries, err := os.ReadDir(filepath.Join(c.State, "run")); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestBadStarts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, c := range map[string]struct {
		change func(*platformConfig)
		text   string
	}{
		"taken port":           {func(c *platformConfig) { c.Listen = l.Addr().String() }, "--listen"},
		"taken metrics port":   {func(c *platformConfig) { c.MetricsListen = l.Addr().String() }, "--metrics-listen"},
		"everybody's address":  {func(c *platformConfig) { c.Listen = "0.0.0.0:0" }, "loopback"},
		"no such stack":        {func(c *platformConfig) { c.Stack = "/nowhere/stack.yml" }, "--stack"},
		"deploy what":          {func(c *platformConfig) { c.Deploy = true }, "--stack"},
		"strange cold start":   {func(c *platformConfig) { c.ColdStart = "lognormal:x" }, "lognormal:0.74,0.16"},
		"strange redis":        {func(c *platformConfig) { c.Redis = "mysql://u:pw@h" }, "--redis"},
		"dead redis":           {func(c *platformConfig) { c.Redis = "redis://:pw@127.0.0.1:1/0" }, "127.0.0.1:1"},
		"short server timeout": {func(c *platformConfig) { c.WriteTimeout = 1 }, "timeout"},
		"state below a file":   {func(c *platformConfig) { c.State = "/dev/null/x" }, "--state"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := config(t)
			c.change(&conf)
			p, err := platform.Start(context.Background(), conf)
			if err == nil {
				_ = p.Stop(context.Background())
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "pw") {
				t.Errorf("%v; want %q named", err, c.text)
			}
		})
	}
}

// A secret of the platform's own that is empty stops the start: no function could
// run with it. The error names the file and the way out.
func TestEmptySecrets(t *testing.T) {
	b := start(t)
	b.stop()
	for _, name := range []string{"credentials/basic-auth-user", "credentials/basic-auth-password", "secrets/farmhand-token", "secrets/farmhand-redis"} {
		file := filepath.Join(b.config.State, name)
		if err := os.WriteFile(file, []byte(" \n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := platform.Start(t.Context(), b.config); err == nil || !strings.Contains(err.Error(), file+" is empty: delete it") {
			t.Errorf("%s is empty: %v", name, err)
			if err == nil {
				_ = p.Stop(t.Context())
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		again := start(t, func(c *platformConfig) { c.State = b.config.State })
		again.stop()
	}
}

// Stop may be called twice, and a new start finds all in order.
func TestStopTwice(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	b.stop()
	b.stop()
	if _, err := os.Stat(filepath.Join(b.config.State, "gateway.url")); !os.IsNotExist(err) {
		t.Errorf("the address file is left: %v", err)
	}
	again := start(t, func(c *platformConfig) { c.State = b.config.State })
	again.ready("echo")
}

// What cannot be restored is kept for the time when it can.
func TestRestoreLater(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	b.stop()
	second := start(t, func(c *platformConfig) { c.State, c.AllowDirs = b.config.State, nil })
	if a := second.call("echo"); a.status != 404 {
		t.Errorf("%+v", a)
	}
	second.stop()
	third := start(t, func(c *platformConfig) { c.State = b.config.State })
	third.ready("echo")
}

// Files with secrets are nobody else's to read, and no log has one.
func TestSecretsStaySecret(t *testing.T) {
	var said log
	debug := func(c *platformConfig) { c.Log = said.logger() }
	b := start(t, debug, func(c *platformConfig) {
		if _, err := exec.LookPath("redis-server"); err == nil {
			c.Redis = "auto"
		}
	})
	mine := filepath.Join(b.config.State, "secrets", "mine")
	if err := os.WriteFile(mine, []byte("a secret of the user's own"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := function("echo")
	(*d.Labels)["com.openfaas.scale.max"] = "1"
	d.Secrets = []string{"farmhand-token", "farmhand-redis", "basic-auth-password", "mine"}
	b.deploy(d)
	names := []string{"credentials/basic-auth-user", "credentials/basic-auth-password", "secrets/farmhand-token", "secrets/farmhand-redis", "redis.url", "functions.json", "run/platform.json"}
	for _, name := range names {
		st, err := os.Stat(filepath.Join(b.config.State, name))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	st, err := os.Stat(b.config.State)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("state folder: %v, %v", st.Mode(), err)
	}
	token, err := b.Token()
	if err != nil || len(token) < 20 {
		t.Errorf("token of %d characters, %v", len(token), err)
	}
	secrets := []string{token, "a secret of the user's own"}
	for _, name := range []string{"credentials/basic-auth-password", "secrets/farmhand-redis"} {
		raw, err := os.ReadFile(filepath.Join(b.config.State, name))
		if err != nil || len(raw) < 20 {
			t.Fatalf("%s: %d bytes, %v", name, len(raw), err)
		}
		secrets = append(secrets, string(raw))
	}
	// Much of what can be logged: calls that end well and badly, refusals, lost
	// replicas and a lost Redis, a second start.
	b.call("echo", "Authorization", "Bearer "+token)
	b.call("echo/crash", "Authorization", "Bearer "+token)
	b.raw("POST /function/echo\nAuthorization: Bearer " + token + "\nTransfer-Encoding: chunked\n\nzz\n")
	b.system("POST", "/system/functions", deployment(types.FunctionDeployment{Service: "a", Image: "i", Secrets: []string{"nosuch"}}))
	b.system("POST", "/system/scale-function/echo", `{"replicas":2}`)
	if b.config.Redis == "auto" {
		r := b.redis(t)
		pid := redisPid(t, r)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		until(t, "Redis is back", func() bool { return r.Ping(t.Context()).Err() == nil })
	}
	b.stop()
	if err := os.Remove(mine); err != nil { // so that the function cannot be restored
		t.Fatal(err)
	}
	again := start(t, debug, func(c *platformConfig) { c.State, c.Redis = b.config.State, b.config.Redis })
	again.stop()
	logs := map[string]string{"the platform": said.String()}
	files, err := filepath.Glob(filepath.Join(b.config.State, "logs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		logs[file] = string(raw)
	}
	if !strings.Contains(logs["the platform"], "cannot be restored") || !strings.Contains(logs["the platform"], "clamped") {
		t.Errorf("the log does not tell what happened:\n%s", logs["the platform"])
	}
	for name, text := range logs {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("a secret is in the log of %s", name)
			}
		}
	}
}
