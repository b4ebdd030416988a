package platform_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

func (b *bench) echoed(a answer) echoed {
	b.t.Helper()
	var e echoed
	if err := json.Unmarshal([]byte(a.body), &e); err != nil {
		b.t.Fatalf("%+v: %v", a, err)
	}
	return e
}

func TestHeaders(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	a := b.call("echo", "Connection", "X-Hop", "X-Hop", "1", "X-Mine", "2")
	e := b.echoed(a)
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	id := e.Header.Get("X-Call-Id")
	if !uuid.MatchString(id) || a.header.Get("X-Call-Id") != id || len(a.header.Values("X-Call-Id")) != 1 {
		t.Errorf("call id: function %q, client %q", id, a.header.Values("X-Call-Id"))
	}
	host := strings.TrimPrefix(b.URL(), "http://")
	if s := e.Header.Get("X-Start-Time"); !regexp.MustCompile(`^\d{19}$`).MatchString(s) || a.header.Get("X-Start-Time") != s {
		t.Errorf("start time: function %q, client %q", s, a.header.Get("X-Start-Time"))
	}
	if e.Header.Get("X-Forwarded-Host") != host || !strings.HasPrefix(e.Header.Get("X-Forwarded-For"), "127.0.0.1:") || e.Host == host {
		t.Errorf("forwarded: %v, Host %s", e.Header, e.Host)
	}
	if e.Header.Get("X-Hop") != "" || e.Header.Get("X-Mine") != "2" || e.Body != "body" {
		t.Errorf("passed on: %+v", e)
	}
	if a.header.Get("X-Served-By") != "farmhand/dev" || !regexp.MustCompile(`^\d+\.\d{6}$`).MatchString(a.header.Get("X-Duration-Seconds")) || a.header.Get("X-OpenFaaS-Internal") != "" {
		t.Errorf("answer: %v", a.header)
	}
	// The caller's own id is kept, and not sent back.
	a = b.call("echo", "X-Call-Id", "mine", "X-Forwarded-For", "10.1.1.1:5", "X-Forwarded-Host", "first")
	e = b.echoed(a)
	if e.Header.Get("X-Call-Id") != "mine" || a.header.Get("X-Call-Id") != "" || e.Header.Get("X-Forwarded-For") != "10.1.1.1:5" || e.Header.Get("X-Forwarded-Host") != "first" {
		t.Errorf("own id: %+v, %v", e, a.header)
	}
}

func TestPaths(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	for path, want := range map[string]string{
		"echo":                 "/|",
		"echo/":                "/|",
		"echo?x=1":             "/|x=1",
		"echo/a/b?x=1&y=%20z":  "/a/b|x=1&y=%20z",
		"echo/a%2Fb/%20":       "/a%2Fb/%20|",
		"echo/a?x;y=%zz&&":     "/a|x;y=%zz&&",
		"echo.openfaas-fn/a/b": "/a/b|",
	} {
		e := b.echoed(b.call(path))
		if got := e.Path + "|" + e.Query; got != want {
			t.Errorf("%s arrives as %s, want %s", path, got, want)
		}
	}
	req, _ := http.NewRequest("GET", b.URL(), nil)
	req.URL.Opaque = "/function/echo//a/../b" // as it is, not tidied up by the client
	if e := b.echoed(b.do(req)); e.Path != "//a/../b" {
		t.Errorf("an untidy path arrives as %s", e.Path)
	}
}

func TestMethodsAndAnswers(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"} {
		req, _ := http.NewRequest(m, b.URL()+"/function/echo", nil)
		if a := b.do(req); a.status != 200 {
			t.Errorf("%s: %d", m, a.status)
		}
	}
	req, _ := http.NewRequest("TRACE", b.URL()+"/function/echo", nil)
	if a := b.do(req); a.status != 405 {
		t.Errorf("TRACE: %d", a.status)
	}
	for _, code := range []int{301, 404, 418, 425, 429, 500, 502, 503} {
		a := b.call(fmt.Sprintf("echo?status=%d", code))
		if a.status != code || a.header.Get("X-OpenFaaS-Internal") != "" || a.header.Get("X-Call-Id") == "" {
			t.Errorf("the function's own %d: %+v", code, a)
		}
	}
}

func TestLargeBodies(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	body := strings.Repeat("0123456789abcdef", 1<<18)                                                    // 4 MiB
	req, _ := http.NewRequest("POST", b.URL()+"/function/echo", io.MultiReader(strings.NewReader(body))) // chunked
	if e := b.echoed(b.do(req)); e.Body != body {
		t.Errorf("%d bytes came back", len(e.Body))
	}
	// A function may answer before it has read the body.
	req, _ = http.NewRequest("POST", b.URL()+"/function/echo/early", strings.NewReader(body[:100<<10]))
	if a := b.do(req); a.status != 413 {
		t.Errorf("early answer: %+v", a)
	}
}

// Lines come as they are written, not when a buffer is full.
func TestStreams(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	g := newGate(t)
	resp, err := b.http.Get(b.URL() + "/function/echo/stream?gate=" + url.QueryEscape(g.url))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for n := range 3 {
		line, err := in.ReadString('\n')
		if err != nil || line != fmt.Sprintf("{\"n\":%d}\n", n) {
			t.Fatalf("line %d: %q, %v", n, line, err)
		}
		if n < 2 {
			g.pass()
		}
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("end: %v", err)
	}
}

// A client that goes away takes its call along.
func TestClientGoesAway(t *testing.T) {
	b := start(t)
	b.deploy(function("echo", "write_timeout", "1m"))
	g := newGate(t)
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "POST", b.URL()+"/function/echo/"+g.path(), nil)
	done := make(chan error, 1)
	go func() {
		_, err := b.http.Do(req)
		done <- err
	}()
	g.begun(1)
	cancel()
	if err := <-done; err == nil {
		t.Error("a cancelled call succeeds")
	}
	receive(t, "the function sees it", g.cancelled)
	b.scale("echo", 0)
	b.ready("echo") // it has ended, so it was free: busy ones have a minute
}

func TestExecTimeout(t *testing.T) {
	b := start(t)
	b.deploy(function("echo", "exec_timeout", "100ms"))
	g := newGate(t)
	a := b.call("echo/" + g.path())
	if a.status != 504 || a.body != "" || a.header.Get("X-OpenFaaS-Internal") != "of-watchdog" || a.header.Get("X-Duration-Seconds") == "" || a.header.Get("X-Call-Id") == "" {
		t.Errorf("%+v", a)
	}
	receive(t, "the function's context ends", g.cancelled)
}

func TestXTimeout(t *testing.T) {
	b := start(t)
	b.deploy(function("echo", "exec_timeout", "4s"))
	g := newGate(t)
	begun := time.Now()
	if a := b.call("echo/"+g.path(), "X-Timeout", "50ms"); a.status != 504 || time.Since(begun) > 2*time.Second {
		t.Errorf("%+v after %s", a, time.Since(begun))
	}
	if a := b.call("echo", "X-Timeout", "nonsense"); a.status != 200 {
		t.Errorf("%+v", a)
	}
}

func TestUpstreamTimeout(t *testing.T) {
	b := start(t, func(c *platformConfig) { c.UpstreamTimeout = 100 * time.Millisecond })
	b.deploy(function("echo"))
	g := newGate(t)
	if a := b.call("echo/" + g.path()); a.status != 502 || a.body != "" || a.header.Get("X-OpenFaaS-Internal") != "" {
		t.Errorf("%+v", a)
	}
}

func TestMaxInflight(t *testing.T) {
	b := start(t)
	b.deploy(function("echo", "max_inflight", "1"))
	b.scale("echo", 2)
	b.ready("echo")
	g := newGate(t)
	one, two := b.later("echo/"+g.path()), b.later("echo/"+g.path())
	g.begun(2)
	a := b.call("echo")
	if a.status != 429 || a.body != "Concurrent request limit exceeded. Max concurrent requests: 1\n" || a.header.Get("X-OpenFaaS-Internal") != "faas-middleware" {
		t.Errorf("%+v", a)
	}
	g.open()
	x, y := <-one, <-two
	if x.status != 200 || y.status != 200 || x.body == y.body {
		t.Errorf("both on one replica, or failed: %+v, %+v", x, y)
	}
}

func TestMetrics(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	b.call("echo")
	b.call("echo.openfaas-fn?status=503")
	b.call("nope")
	get := func() string {
		req, _ := http.NewRequest("GET", b.MetricsURL(), nil)
		return b.do(req).body
	}
	text := get()
	for _, line := range []string{
		`gateway_function_invocation_total{code="200",function_name="echo.openfaas-fn"} 1`,
		`gateway_function_invocation_total{code="503",function_name="echo.openfaas-fn"} 1`,
		`gateway_function_invocation_started{function_name="echo.openfaas-fn"} 2`,
		`gateway_functions_seconds_count{code="200",function_name="echo.openfaas-fn"} 1`,
		`gateway_functions_seconds_bucket{code="503",function_name="echo.openfaas-fn",le="0.005"} `,
		`gateway_functions_seconds_bucket{code="503",function_name="echo.openfaas-fn",le="10"} 1`,
		`gateway_service_count{function_name="echo.openfaas-fn"} 1`,
	} {
		if !strings.HasSuffix(line, " ") { // whose value is not known
			line += "\n"
		}
		if !strings.Contains(text, line) {
			t.Errorf("missing: %s", line)
		}
	}
	if strings.Contains(text, "nope") {
		t.Error("an unknown function is counted")
	}
	if a := b.system("DELETE", "/system/functions", `{"functionName":"echo"}`); a.status != 202 {
		t.Fatal(a)
	}
	if strings.Contains(get(), "echo") {
		t.Error("a deleted function is still counted")
	}
}
