package platform_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farmhand/platform"
)

// A function whose program cannot be found at the next start is told by name
// and reason, until a start brings it back; where the programs were is
// remembered for that.
func TestUnrestoredIsTold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	prebuilt := t.TempDir()
	if err := os.Symlink(self, filepath.Join(prebuilt, "test")); err != nil {
		t.Fatal(err)
	}
	d := function("echo")
	d.Annotations = nil
	b := start(t, func(c *platformConfig) { c.Prebuilt = prebuilt })
	b.deploy(d)
	b.stop()
	state := b.config.State
	if stack, dir := platform.LastSources(state); stack != "" || dir != prebuilt {
		t.Errorf("remembered %q, %q", stack, dir)
	}
	second := start(t, func(c *platformConfig) { c.State = state })
	list, err := platform.ListUnrestored(state)
	if err != nil || len(list) != 1 || list[0].Function != "echo" || !strings.Contains(list[0].Reason, "--prebuilt") {
		t.Errorf("%+v, %v", list, err)
	}
	second.stop()
	_, dir := platform.LastSources(state)
	third := start(t, func(c *platformConfig) { c.State, c.Prebuilt = state, dir })
	third.ready("echo")
	if list, err := platform.ListUnrestored(state); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A function that is not back says so wherever it is asked for, and can be removed
// and updated like any other.
func TestUnrestoredIsRemoved(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	prebuilt := t.TempDir()
	if err := os.Symlink(self, filepath.Join(prebuilt, "test")); err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *platformConfig) { c.Prebuilt = prebuilt })
	for _, name := range []string{"gone", "mended"} {
		d := function(name)
		d.Annotations = nil
		b.deploy(d)
		next, _ := b.follow(t.Context(), "name="+name) // the log is there once a line has come
		b.print(name, "hello\n")
		next()
	}
	b.stop()
	state := b.config.State
	b = start(t, func(c *platformConfig) { c.State = state })
	for _, a := range []answer{
		b.system("GET", "/system/function/gone", ""), b.call("gone"),
		b.system("POST", "/system/scale-function/gone", `{"serviceName":"gone","replicas":2}`),
	} {
		if a.status != 404 || !strings.Contains(a.body, "could not bring it back: image test:latest") || !strings.Contains(a.body, "remove it") {
			t.Errorf("%+v", a)
		}
	}
	for _, name := range []string{"gone.openfaas-fn", "gone"} { // once
		want := map[string]int{"gone.openfaas-fn": 202, "gone": 404}[name]
		if a := b.system("DELETE", "/system/functions", `{"functionName":"`+name+`"}`); a.status != want {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a := b.system("PUT", "/system/functions", deployment(function("mended"))); a.status != 202 {
		t.Errorf("%+v", a)
	}
	b.ready("mended")
	if list, err := platform.ListUnrestored(state); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	for name, there := range map[string]bool{"gone": false, "mended": true} {
		if _, err := os.Stat(filepath.Join(state, "logs", name+".ndjson")); (err == nil) != there {
			t.Errorf("the log of %s: %v", name, err)
		}
	}
	b.stop()
	b = start(t, func(c *platformConfig) { c.State, c.Prebuilt = state, prebuilt })
	if list, err := b.client.GetFunctions(t.Context(), ""); err != nil || len(list) != 1 || list[0].Name != "mended" {
		t.Errorf("%+v, %v", list, err)
	}
}

// A function that is there twice is restored once, and the platform can end.
func TestRestoreTwice(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	b.stop()
	file := filepath.Join(b.config.State, "functions.json")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	one := strings.Trim(strings.TrimSpace(string(raw)), "[]")
	if err := os.WriteFile(file, []byte("["+one+","+one+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said log
	again := start(t, func(c *platformConfig) { c.State, c.Log = b.config.State, said.logger() })
	again.ready("echo")
	if !strings.Contains(said.String(), "there twice") {
		t.Errorf("nothing is said: %s", said.String())
	}
	again.stop()
	if raw, err = os.ReadFile(file); err != nil || strings.Count(string(raw), `"service": "echo"`) != 1 {
		t.Errorf("it is kept as %s, %v", raw, err)
	}
}

// Whoever is out of patience does not wait for a replica that nobody told to end.
func TestHurry(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	pid := b.detail("echo").Instances[0].Pid
	b.Lose("echo")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done := make(chan error, 1)
	go func() { done <- b.Stop(ctx) }()
	if err := receive(t, "it has ended", done); err != nil || alive(pid) {
		t.Errorf("alive: %v, %v", alive(pid), err)
	}
}

func TestNothingRemembered(t *testing.T) {
	dir := t.TempDir()
	if stack, prebuilt := platform.LastSources(dir); stack != "" || prebuilt != "" {
		t.Errorf("%q %q", stack, prebuilt)
	}
	if list, err := platform.ListUnrestored(dir); err != nil || list != nil {
		t.Errorf("%v %v", list, err)
	}
	c := config(t)
	c.Prebuilt = filepath.Join(dir, "nowhere")
	if p, err := platform.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no such folder") {
		t.Errorf("%v %v", p, err)
	}
}
