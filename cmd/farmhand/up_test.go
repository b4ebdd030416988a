package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"farmhand/platform"
)

const tiredStack = `
version: "1.0"
provider: {name: openfaas}
functions:
  tired:
    image: tired:latest
    labels: {farmhand.worker: "true"}
    annotations: {farmhand.slots: many, topic: cron-function, schedule: 0 4 29 2 *, async: "true"}
`

// The platform as its user runs it: in the background, looked at, ended.
func TestUpStatusDown(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: up, status and down, which build the program; make test runs it")
	}
	bin := filepath.Join(t.TempDir(), "farmhand")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	state := t.TempDir()
	farmhand := func(ok bool, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		cmd := exec.Command(bin, append(args, "--state", state)...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); (err == nil) != ok {
			t.Fatalf("farmhand %v: %v\n%s%s", args, err, out.String(), errs.String())
		}
		if !ok {
			return errs.String()
		}
		return out.String()
	}
	up := []string{"up", "-d", "--listen", "127.0.0.1:0", "--metrics-listen", "none", "--redis", "memory"}

	if text := farmhand(false, "status"); !strings.Contains(text, "farmhand up") {
		t.Errorf("status of nothing: %s", text)
	}
	text := farmhand(true, up...)
	t.Cleanup(func() {
		if info, err := platform.Running(state); err == nil {
			_ = info.Process.Signal(syscall.SIGKILL)
		}
	})
	raw, err := os.ReadFile(filepath.Join(state, "gateway.url"))
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(string(raw))
	for _, want := range []string{url, "faas-cli login --gateway " + url, filepath.Join(state, "secrets", "farmhand-token"), `durability "memory"`} {
		if !strings.Contains(text, want) {
			t.Errorf("up does not tell %s:\n%s", want, text)
		}
	}
	resp, err := http.Get(url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()

	if text := farmhand(false, up...); !strings.Contains(text, "in use by process") || !strings.Contains(text, url) {
		t.Errorf("second up: %s", text)
	}
	var s struct {
		URL        string `json:"url"`
		Durability string
		Functions  []platform.Detail
	}
	if err := json.Unmarshal([]byte(farmhand(true, "status", "--json")), &s); err != nil || s.URL != url || s.Durability != "memory" {
		t.Errorf("status: %+v, %v", s, err)
	}
	if text := farmhand(true, "down"); text != "ended\n" {
		t.Errorf("down: %s", text)
	}
	if text := farmhand(true, "down"); !strings.Contains(text, "no platform runs") {
		t.Errorf("down again: %s", text)
	}
	if text := farmhand(false, "up", "-d", "--listen", "example.com:80"); !strings.Contains(text, "loopback") {
		t.Errorf("up on a public address: %s", text)
	}
	// Functions come back with the programs of last time; what cannot is told.
	prebuilt := filepath.Join(t.TempDir(), "functions")
	stack := filepath.Join(prebuilt, "stack.yml")
	if err := os.Mkdir(prebuilt, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"tired": "#!/bin/sh\nexec sleep 1000\n", "stack.yml": tiredStack} {
		if err := os.WriteFile(filepath.Join(prebuilt, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	farmhand(true, append(up, "--stack", stack, "--prebuilt", prebuilt, "--deploy")...)
	farmhand(true, "down")
	farmhand(true, up...)
	text = farmhand(true, "status")
	for _, want := range []string{"async       0 calls wait, 0 run, at most 10 at once\n", "function    tired                0 of 1 ready",
		"schedule    tired                0 4 29 2 *; queued; next run 20", `INVALID     tired                farmhand.slots: "many"`} {
		if !strings.Contains(text, want) {
			t.Errorf("status after a restart does not tell %q:\n%s", want, text)
		}
	}
	farmhand(true, "down")
	if err := os.RemoveAll(prebuilt); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{up, {"status"}} {
		if text := farmhand(true, args...); !strings.Contains(text, "NOT BACK    tired") || !strings.Contains(text, "--prebuilt DIR") {
			t.Errorf("%v without the programs: %s", args, text)
		}
	}
	farmhand(true, "down")
	if text := farmhand(false, "up", "-d", "--prebuilt", prebuilt); !strings.Contains(text, "no such folder") {
		t.Errorf("up with no programs: %s", text)
	}
	// No secret is in the log.
	log, err := os.ReadFile(filepath.Join(state, "logs", "platform.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"credentials/basic-auth-password", "secrets/farmhand-token", "secrets/farmhand-redis"} {
		if value, err := os.ReadFile(filepath.Join(state, name)); err != nil || bytes.Contains(log, value) {
			t.Errorf("%s: in the log, or %v", name, err)
		}
	}
}
