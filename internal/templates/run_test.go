package templates_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where nobody listens: functions start without Redis and gateway, alive but not
// ready.
const nobody = "127.0.0.1:1"

// Every function of stack.yml can be built from what faas-cli sends, by its
// Dockerfile, and runs.
func TestSuiteRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: building and running the functions of stack.yml; make test runs it")
	}
	away := []string{
		"farmhand_redis_url=redis://" + nobody + "/0", "farmhand_gateway_url=http://" + nobody,
		secrets(t, "farmhand-token", "t0ken", "basic-auth-user", "admin", "basic-auth-password", "secret"),
	}
	checks := map[string]func(*testing.T, string){
		"dispatcher": func(t *testing.T, program string) { servesWithout(t, program, away) },
		"controller": func(t *testing.T, program string) { servesWithout(t, program, away) },
		"trainer":    func(t *testing.T, program string) { servesWithout(t, program, away) },
		"montecarlo": func(t *testing.T, program string) {
			task := `{"spot":100,"strike":105,"rate":0.02,"volatility":0.25,"maturity":1,"kind":"call","paths":100000,"seed":7}`
			if r := works(t, program, []byte(task)); !strings.Contains(r.body, `"price":8.67`) {
				t.Errorf("%+v", r)
			}
		},
		"thumbnail": func(t *testing.T, program string) {
			picture, err := os.ReadFile(filepath.Join(root, "examples", "images", "julia.jpg"))
			if err != nil {
				t.Fatal(err)
			}
			if r := works(t, program, picture); http.DetectContentType([]byte(r.body)) != "image/jpeg" {
				t.Errorf("%d %.100q", r.status, r.body)
			}
		},
	}
	for name, f := range suite(t) {
		t.Run(name, func(t *testing.T) {
			program := program(t, name, f)
			if check := checks[name]; check != nil {
				check(t, program)
			} else {
				t.Errorf("nothing is known of it: say in this test what it answers")
			}
		})
	}
}

// servesWithout checks a function that needs Redis or the gateway: without its
// secrets it says what is missing; without them it is alive, and ends when told.
func servesWithout(t *testing.T, program string, away []string) {
	bare := start(t, program)
	if err := bare.awaitEnd(t); err == nil || !strings.Contains(bare.text(), "farmhand-token") {
		t.Errorf("without secrets: %v; log: %s", err, bare.text())
	}
	p := start(t, program, away...)
	if r := p.get(t, "/_/health"); r.status != 200 {
		t.Errorf("health: %+v", r)
	}
	if r := p.get(t, "/_/ready"); r.status != 503 {
		t.Errorf("ready without Redis: %+v", r)
	}
	if r := p.post(t, "/jobs", strings.NewReader("{}")); r.status != 401 {
		t.Errorf("without a token: %+v", r)
	}
	p.terminate(t)
	if err := p.awaitEnd(t); err != nil {
		t.Errorf("exit: %v; log: %s", err, p.text())
	}
}

// works checks a worker: it does a task, and finishes another one when it is
// told to end.
func works(t *testing.T, program string, task []byte) reply {
	p := start(t, program)
	p.awaitReady(t)
	first := p.post(t, "/", bytes.NewReader(task))
	if last := <-p.terminateDuring(t, "/", task); last.status != 200 || last.body != first.body {
		t.Errorf("the last call: %d, %d bytes, want those of the first: %d, %d bytes", last.status, len(last.body), first.status, len(first.body))
	}
	if err := p.awaitEnd(t); err != nil {
		t.Errorf("exit: %v; log: %s", err, p.text())
	}
	return first
}

// The example of the template works as it stands.
func TestSampleRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: building and running the sample of farm-worker; make test runs it")
	}
	program := program(t, sample, workers(t)[sample])
	r := works(t, program, []byte(`{"text": "abc", "rounds": 1}`))
	if want := `{"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}`; r.status != 200 || r.body != want || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", r)
	}
}

// What the main program of a worker makes of what Handle returns, and does not.
func TestWorkerAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: building and running a worker; make test runs it")
	}
	program := program(t, "probe", workers(t)["probe"])
	p := start(t, program, "farmhand_max_body=1000", "exec_timeout=5s", "write_timeout=10")
	p.awaitReady(t)
	for name, c := range map[string]struct {
		path, body, timeout string
		status              int
		want                string
	}{
		"the body":                {path: "/", body: "abc", status: 200, want: "abc"},
		"any path":                {path: "//a/../b", body: "abc", status: 200, want: "abc"},
		"nothing":                 {path: "/", status: 200},
		"a status":                {path: "/?status=422", body: "bad", status: 422, want: "bad"},
		"no content":              {path: "/?status=204", body: "lost", status: 204},
		"no status":               {path: "/?status=42", status: 500, want: "42 is no status that Handle may answer with\n"},
		"an error":                {path: "/?error=oops", body: "x", status: 500, want: "oops\n"},
		"an error and a 200":      {path: "/?error=oops&status=200", status: 500, want: "oops\n"},
		"an error and a 503":      {path: "/?error=oops&status=503", status: 503, want: "oops\n"},
		"a panic":                 {path: "/?panic", status: 500, want: "a panic; the worker's log has it\n"},
		"too much":                {path: "/", body: strings.Repeat("x", 1001), status: 413, want: "the task is longer than 1000 bytes (farmhand_max_body)\n"},
		"just enough":             {path: "/", body: strings.Repeat("x", 1000), status: 200, want: strings.Repeat("x", 1000)},
		"time of exec_timeout":    {path: "/?left", status: 200, want: "true 5s"},
		"time of the attempt":     {path: "/?left", timeout: "2s", status: 200, want: "true 2s"},
		"time in seconds":         {path: "/?left", timeout: "3", status: 200, want: "true 3s"},
		"no more than allowed":    {path: "/?left", timeout: "1h", status: 200, want: "true 5s"},
		"a time nobody can read":  {path: "/?left", timeout: "soon", status: 200, want: "true 5s"},
		"the end of the attempt":  {path: "/?sleep=1h", timeout: "30ms", status: 504, want: "context deadline exceeded\n"},
		"done within the attempt": {path: "/?sleep=1ms", timeout: "4s", status: 200, want: "whole"},
	} {
		t.Run(name, func(t *testing.T) {
			r := p.post(t, c.path, strings.NewReader(c.body), "X-Timeout", c.timeout, "X-Farm-Deadline", "2020-01-01T00:00:00Z")
			if r.status != c.status || r.body != c.want {
				t.Errorf("%d %q, want %d %q", r.status, r.body, c.status, c.want)
			}
		})
	}
	r := p.post(t, "/", strings.NewReader("x"))
	if got := r.header.Values("X-Probe"); len(got) != 2 || got[0] != "POST" || !strings.HasPrefix(got[1], "127.0.0.1:") {
		t.Errorf("headers of Handle: %v", r.header)
	}
	if text := p.text(); !strings.Contains(text, "boom") || !strings.Contains(text, "handler.go") {
		t.Errorf("the log does not have the panic: %s", text)
	}
}

// After SIGTERM a worker serves on for healthcheck_interval, not ready, and then
// finishes its calls; those that last longer than write_timeout are cut off.
func TestWorkerDrains(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: building and running a worker; make test runs it")
	}
	program := program(t, "probe", workers(t)["probe"])
	for name, c := range map[string]struct {
		interval, write, sleep string
		status                 int
		ok                     bool
	}{
		"finishes":       {"2s", "10s", "2100ms", 200, true},
		"is out of time": {"0", "300ms", "1h", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, program, "healthcheck_interval="+c.interval, "write_timeout="+c.write, "exec_timeout=0")
			p.awaitReady(t)
			got := p.terminateDuring(t, "/?sleep="+c.sleep, nil)
			if c.ok {
				if r := p.get(t, "/_/ready"); r.status != 503 {
					t.Errorf("ready: %+v", r)
				}
				if r := p.post(t, "/", strings.NewReader("late")); r.body != "late" || !r.closed {
					t.Errorf("a call after SIGTERM: %+v", r)
				}
			}
			if r := <-got; r.status != c.status {
				t.Errorf("the running call: %+v", r)
			}
			if err := p.awaitEnd(t); (err == nil) != c.ok {
				t.Errorf("exit: %v; log: %s", err, p.text())
			}
		})
	}
}

// A worker that cannot work as it is told to does not start.
func TestWorkerRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: building and running a worker; make test runs it")
	}
	program := program(t, sample, workers(t)[sample])
	for env, want := range map[string]string{
		"farmhand_max_body=many":     "want a number of bytes",
		"read_timeout=soon":          "want whole seconds",
		"healthcheck_interval=-1s":   "want whole seconds",
		"exec_timeout=61s":           "raise write_timeout",
		"write_timeout=0":            "raise write_timeout",
		"farmhand_listen=nowhere:x1": "farmhand_listen",
	} {
		p := start(t, program, env)
		if err := p.awaitEnd(t); err == nil || !strings.Contains(p.text(), want) {
			t.Errorf("%s: %v; log: %s", env, err, p.text())
		}
	}
}
