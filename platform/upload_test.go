package platform_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farmhand/internal/problem"
)

// raw sends a request as it is, of which more may never come, and reads the
// answer.
func (b *bench) raw(request string) answer {
	b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
	if err != nil {
		b.t.Error(err)
		return answer{err: err, header: http.Header{}}
	}
	defer conn.Close()
	head, rest, _ := strings.Cut(request, "\n")
	err = conn.SetDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = io.WriteString(conn, head+" HTTP/1.1\r\nHost: localhost\r\n"+strings.ReplaceAll(rest, "\n", "\r\n"))
	}
	var resp *http.Response
	if err == nil {
		resp, err = http.ReadResponse(bufio.NewReader(conn), nil)
	}
	if err != nil {
		b.t.Errorf("%s: no answer: %v", head, err)
		return answer{err: err, header: http.Header{}}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), err}
}

// unfinished is the end of a request whose body stops coming.
const unfinished = "Content-Length: 100000\n\nonly"

func (a answer) problem(t *testing.T) (p problem.Problem) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Status != a.status || a.header.Get("Content-Type") != problem.ContentType || a.header.Get("X-OpenFaaS-Internal") != "proxy" {
		t.Errorf("no problem document: %+v", a)
	}
	return p
}

// What is wrong with a client's body is the client's: it is told so, and the
// replica keeps its calls.
func TestBrokenUpload(t *testing.T) {
	b := start(t)
	var shut atomic.Bool
	probe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if shut.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(probe.Close)
	b.deploy(function("echo", "ready_url", probe.URL, "exec_timeout", "100ms"))
	shut.Store(true) // a replica that is suspected now would stay out
	for name, c := range map[string]struct {
		request, kind string
		status        int
	}{
		"malformed chunk": {"POST /function/echo\nTransfer-Encoding: chunked\n\n4\nbody\nzz\n", "bad-body", 400},
		"body that stops": {"POST /function/echo\n" + unfinished, "body-timeout", 408},
	} {
		a := b.raw(c.request)
		if p := a.problem(t); a.status != c.status || p.Type != c.kind || p.Field != "body" || p.Fix == "" {
			t.Errorf("%s: %+v", name, a)
		}
		if n := b.detail("echo").AvailableReplicas; n != 1 {
			t.Fatalf("%s: %d replicas are left in the routing", name, n)
		}
	}
}

// The server's own limit for reading a body ends in an answer, too.
func TestReadTimeout(t *testing.T) {
	b := start(t, func(c *platformConfig) {
		c.UpstreamTimeout = 300 * time.Millisecond
		c.ReadTimeout = c.UpstreamTimeout + 1
		c.WriteTimeout = c.ReadTimeout
	})
	b.deploy(function("echo"))
	if a := b.raw("POST /function/echo\n" + unfinished); a.status != 408 || a.problem(t).Type != "body-timeout" {
		t.Errorf("%+v", a)
	}
	user, password := b.Credentials()
	req, _ := http.NewRequest("POST", b.base, nil)
	req.SetBasicAuth(user, password)
	if a := b.raw("POST /system/functions\nAuthorization: " + req.Header.Get("Authorization") + "\n" + unfinished[:len(unfinished)-4] + "{"); a.status != 408 {
		t.Errorf("%+v", a)
	}
}

// An answer does not wait for a body that stopped coming, whoever gives it.
func TestAnswersBeforeTheBody(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	b.deploy(function("busy", "max_inflight", "1"))
	g := newGate(t)
	held := b.later("busy/" + g.path())
	g.begun(1)
	var wg sync.WaitGroup
	for request, status := range map[string]int{
		"POST /function/echo/early?close":  413,
		"POST /function/nope":              404,
		"POST /function/busy":              429,
		"TRACE /function/echo":             405,
		"POST /system/functions":           401,
		"POST /nowhere":                    404,
		"DELETE /system/scale-function/cc": 401,
	} {
		wg.Go(func() {
			if a := b.raw(request + "\n" + unfinished); a.status != status || a.err != nil {
				t.Errorf("%s: %+v, want %d", request, a, status)
			}
		})
	}
	wg.Wait()
	g.open()
	<-held
}
