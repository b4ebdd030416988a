package fn_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"farmhand/internal/fn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

type running struct {
	url  string
	end  context.CancelFunc
	done chan error
}

func start(t *testing.T, c fn.Config, s *fn.Service) running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := running{url: "http://" + l.Addr().String(), end: cancel, done: make(chan error, 1)}
	go func() {
		r.done <- fn.Serve(ctx, l, c, quiet, func(context.Context, *slog.Logger) (*fn.Service, error) { return s, nil })
	}()
	t.Cleanup(func() { cancel(); http.DefaultClient.CloseIdleConnections() })
	return r
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestHealthAndReadiness(t *testing.T) {
	var ready atomic.Bool
	r := start(t, fn.Config{WriteTimeout: time.Second}, &fn.Service{Handler: http.NotFoundHandler(), Ready: ready.Load})
	if code, _ := get(t, r.url+"/_/health"); code != 200 {
		t.Errorf("health: %d", code)
	}
	if code, _ := get(t, r.url+"/_/ready"); code != 503 {
		t.Errorf("not ready: %d", code)
	}
	ready.Store(true)
	if code, _ := get(t, r.url+"/_/ready"); code != 200 {
		t.Errorf("ready: %d", code)
	}
	r.end()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

// Every path reaches the service as it was sent: no redirect leads the client
// away from where the gateway has mounted the function.
func TestPathsAreNotCleaned(t *testing.T) {
	r := start(t, fn.Config{WriteTimeout: time.Second}, &fn.Service{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path)
	})})
	for _, path := range []string{"//jobs", "/jobs/../farms", "/jobs/./x", "/_/health/", "/jobs//"} {
		if code, body := get(t, r.url+path); code != 200 || body != path {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
}

// A call that runs when the process is asked to end is finished first (P55).
func TestDrainFinishesCalls(t *testing.T) {
	entered, leave, drained, stopped := make(chan bool), make(chan bool), make(chan bool), false
	r := start(t, fn.Config{WriteTimeout: 10 * time.Second}, &fn.Service{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			entered <- true
			<-leave
			_, _ = io.WriteString(w, "whole")
		}),
		Drain: func() { close(drained) },
		Stop:  func(context.Context) error { stopped = true; return nil },
	})
	got := make(chan string, 1)
	go func() { _, body := get(t, r.url); got <- body }()
	<-entered
	r.end()
	<-drained
	leave <- true
	if body := <-got; body != "whole" {
		t.Errorf("the running call got %q", body)
	}
	if err := <-r.done; err != nil {
		t.Error(err)
	}
	if !stopped {
		t.Error("the service was not stopped")
	}
}

func TestPanicIsAProblem(t *testing.T) {
	r := start(t, fn.Config{WriteTimeout: time.Second}, &fn.Service{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })})
	resp, err := http.Get(r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 500 || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
}

func TestBuildErrorClosesTheListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err = fn.Serve(context.Background(), l, fn.Config{}, quiet, func(context.Context, *slog.Logger) (*fn.Service, error) { return nil, boom })
	if !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
}

func TestToken(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("secret_mount_path", dir)
	if _, err := fn.Token(quiet); err == nil {
		t.Error("started without a token")
	}
	t.Setenv("farmhand_insecure", "true")
	var log lockedBuffer
	if token, err := fn.Token(slog.New(slog.NewTextHandler(&log, nil))); err != nil || token != "" {
		t.Errorf("insecure: %q %v", token, err)
	}
	if !strings.Contains(log.String(), "INSECURE") {
		t.Errorf("no warning: %q", log.String())
	}
	if err := os.WriteFile(filepath.Join(dir, "farmhand-token"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	token, err := fn.Token(quiet)
	if err != nil || token != "s3cret" {
		t.Fatalf("%q %v", token, err)
	}
	h := fn.RequireToken(token, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for auth, want := range map[string]int{"": 401, "Bearer wrong": 401, "Basic s3cret": 401, "Bearer s3cret": 200, "bearer s3cret": 200} {
		req := httptest.NewRequest("GET", "/", nil)
		if auth != "" {
			req.Header.Set("Authorization", auth)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code == 401 && !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("Authorization %q: no challenge", auth)
		}
		if w.Code != want {
			t.Errorf("Authorization %q: %d, want %d", auth, w.Code, want)
		}
	}
}

func TestConfigFromEnv(t *testing.T) {
	t.Setenv("write_timeout", "7")
	t.Setenv("healthcheck_interval", "250ms")
	c, err := fn.FromEnv()
	if err != nil || c.WriteTimeout != 7*time.Second || c.HealthInterval != 250*time.Millisecond || c.Listen != "127.0.0.1:8082" {
		t.Errorf("%+v %v", c, err)
	}
	for _, bad := range []string{"soon", "0", "-1s", "99999999999"} {
		t.Setenv("read_timeout", bad)
		if _, err := fn.FromEnv(); err == nil || !strings.Contains(err.Error(), "read_timeout") {
			t.Errorf("read_timeout=%s: %v", bad, err)
		}
	}
}
