package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openfaas/go-sdk/stack"
	"github.com/rogpeppe/go-internal/testscript"

	"farmhand/platform"
)

func TestNewCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "new"), RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": exitCode},
	})
}

// A new stack file has dispatcher and controller as stack.yml has them, but for
// how their images are made, and a worker with the settings of the examples.
func TestNewStackIsThatOfTheSuite(t *testing.T) {
	suite, err := stack.ParseYAMLFile(filepath.Join("..", "..", "stack.yml"), "", "", false)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker{name: "hash", handler: "./hash"}
	own, err := stack.ParseYAMLData(w.execute("stack"), "", "", false)
	if err != nil {
		t.Fatal(err)
	}
	if len(own.Functions) != 3 || own.Provider != suite.Provider || own.Version != suite.Version {
		t.Errorf("%+v", own)
	}
	for name, like := range map[string]string{"dispatcher": "dispatcher", "controller": "controller", "hash": "montecarlo"} {
		want, got := suite.Functions[like], own.Functions[name]
		want.Language, want.Handler, want.SkipBuild = "", "", true
		if name == "hash" {
			want.Language, want.Handler, want.SkipBuild = "farm-worker", "./hash", false
			want.Image = "${REGISTRY:-localhost:5000}/hash:${TAG:-latest}"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -stack.yml +new.yml\n%s", name, diff)
		}
	}
}

// The way of a newcomer: new worker, the commands that it prints, a result.
func TestNewWorkerRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: a new worker on the local platform, which builds the programs; make test runs it")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	for target, pkg := range map[string]string{"farmhand": ".", "functions/dispatcher": "../../functions/dispatcher", "functions/controller": "../../functions/controller"} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(bin, target), pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	state := filepath.Join(dir, "state", "farmhand")
	t.Cleanup(func() {
		if info, err := platform.Running(state); err == nil {
			_ = info.Process.Signal(syscall.SIGKILL)
		}
	})
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	sh := func(line string) string {
		t.Helper()
		var out, errs bytes.Buffer
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s%s", line, err, out.String(), errs.String())
		}
		return out.String()
	}
	commands := map[string]string{}
	for _, line := range strings.Split(sh("bin/farmhand new worker hash"), "\n") {
		if len(line) > 12 {
			commands[strings.TrimSpace(line[:12])] = line[12:]
		}
	}
	if want := "bin/farmhand up -d --stack hash.yml --prebuilt bin/functions --deploy"; commands["run it"] != want {
		t.Fatalf("run it: %q, want %q", commands["run it"], want)
	}
	if note := "(end a platform that runs already: bin/farmhand down)"; commands[""] != note {
		t.Errorf("%q, want %q", commands[""], note)
	}
	sh(commands["test it"])
	sh(commands["run it"] + " --listen 127.0.0.1:0 --metrics-listen none --redis memory --cold-start none")
	var result struct {
		State string
		Body  struct{ SHA256 string }
	}
	if err := json.Unmarshal([]byte(sh(commands["try it"])), &result); err != nil || result.State != "done" || len(result.Body.SHA256) != 64 {
		t.Errorf("%+v %v", result, err)
	}
	sh("bin/farmhand down")
}
