package fn_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"farmhand/internal/fn"
)

// pipes is a listener in memory, so that a test can own the clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// get makes one call on a connection of its own and returns the status and whether the
// server closes the connection; the status is 0 when nobody accepts any more.
func (p *pipes) get(t *testing.T, path string) (int, bool) {
	t.Helper()
	mine, theirs := net.Pipe()
	defer mine.Close()
	select {
	case p.conns <- theirs:
	case <-p.done:
		return 0, false
	}
	go func() { _, _ = io.WriteString(mine, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n") }()
	resp, err := http.ReadResponse(bufio.NewReader(mine), nil)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return -1, false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // only the status matters
	return resp.StatusCode, resp.Close
}

// After SIGTERM the function serves on for healthcheck_interval, not ready and
// without keeping connections, and only then ends.
func TestServesOnWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		var drained atomic.Int32
		ctx, terminate := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- fn.Serve(ctx, p, fn.Config{HealthInterval: 3 * time.Second}, quiet, func(context.Context, *slog.Logger) (*fn.Service, error) {
				return &fn.Service{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Drain: func() { drained.Add(1) }}, nil
			})
		}()
		if code, _ := p.get(t, "/_/ready"); code != 200 {
			t.Errorf("ready: %d", code)
		}
		begin := time.Now()
		terminate()
		synctest.Wait()
		if drained.Load() != 1 {
			t.Errorf("Drain was called %d times at once", drained.Load())
		}
		time.Sleep(2900 * time.Millisecond) // of the bubble's clock
		for path, want := range map[string]int{"/": 200, "/_/health": 200, "/_/ready": 503} {
			code, closes := p.get(t, path)
			if code != want || !closes {
				t.Errorf("%s while draining: %d, closes %v, want %d", path, code, closes, want)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d < 3*time.Second || d > 5*time.Second {
			t.Errorf("ended after %s, want 3 s", d)
		}
		if code, _ := p.get(t, "/"); code != 0 {
			t.Errorf("after the end: %d", code)
		}
	})
}

// A call that does not end is cut off, and Stop still has time left before the
// platform kills the process at write_timeout.
func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		ctx, terminate := context.WithCancel(t.Context())
		done := make(chan error, 1)
		entered := make(chan struct{})
		var left time.Duration
		go func() {
			done <- fn.Serve(ctx, p, fn.Config{WriteTimeout: 20 * time.Second}, quiet, func(context.Context, *slog.Logger) (*fn.Service, error) {
				return &fn.Service{
					Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { close(entered); <-r.Context().Done() }),
					Stop: func(ctx context.Context) error {
						end, _ := ctx.Deadline()
						left = time.Until(end)
						return nil
					},
				}, nil
			})
		}()
		mine, theirs := net.Pipe()
		defer mine.Close()
		p.conns <- theirs
		_, _ = io.WriteString(mine, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		<-entered
		begin := time.Now()
		terminate()
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(begin); d > 20*time.Second || left < time.Second {
			t.Errorf("ended after %s, Stop had %s", d, left)
		}
	})
}

// Stop has all the time that calls do not use, so that background work can
// finish; without any the end comes at once.
func TestStopHasTheRest(t *testing.T) {
	for name, c := range map[string]struct{ call, work, left, end time.Duration }{
		"nothing runs":         {0, 0, 20 * time.Second, 3 * time.Second},
		"background work":      {0, 15 * time.Second, 20 * time.Second, 18 * time.Second},
		"a call, then as much": {9 * time.Second, 9 * time.Second, 14 * time.Second, 18 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipes()
				ctx, terminate := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					done <- fn.Serve(ctx, p, fn.Config{WriteTimeout: 20 * time.Second, HealthInterval: 3 * time.Second}, quiet, func(context.Context, *slog.Logger) (*fn.Service, error) {
						return &fn.Service{
							Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(c.call) }), // of the bubble's clock
							Stop: func(ctx context.Context) error {
								if end, _ := ctx.Deadline(); time.Until(end).Round(time.Second) != c.left {
									t.Errorf("Stop has %s, want %s", time.Until(end), c.left)
								}
								select {
								case <-ctx.Done():
									return ctx.Err()
								case <-time.After(c.work):
									return nil
								}
							},
						}, nil
					})
				}()
				var call sync.WaitGroup
				call.Go(func() { p.get(t, "/") })
				synctest.Wait()
				begin := time.Now()
				terminate()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if took := time.Since(begin).Round(time.Second); took != c.end {
					t.Errorf("it took %s, want %s", took, c.end)
				}
				call.Wait()
			})
		})
	}
}

// A panic in the middle of an answer must not let it pass for a whole one.
func TestPanicMidwayBreaksTheAnswer(t *testing.T) {
	r := start(t, fn.Config{}, &fn.Service{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half of it")
		_ = http.NewResponseController(w).Flush()
		panic("boom")
	})})
	resp, err := http.Get(r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("read a whole answer %q", b)
	}
}

// A handler can stream past the server's write timeout.
func TestStreaming(t *testing.T) {
	next := make(chan string)
	r := start(t, fn.Config{WriteTimeout: time.Second}, &fn.Service{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.SetWriteDeadline(time.Time{}); err != nil {
			t.Error(err)
		}
		if _, ok := w.(http.Flusher); !ok {
			t.Error("not a Flusher")
		}
		for s := range next {
			_, _ = io.WriteString(w, s+"\n")
			if err := rc.Flush(); err != nil {
				t.Error(err)
			}
		}
	})})
	go func() { next <- "a" }()
	resp, err := http.Get(r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{"a", "b", "c"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("read %q, want %q", lines.Text(), want)
		}
		if want != "c" {
			next <- string(want[0] + 1)
		}
	}
	close(next)
}

// A panic answers a problem document without headers the handler had set for
// its own answer, and the text of the panic stays in the log.
func TestPanicKeepsItsTextInTheLog(t *testing.T) {
	var text lockedBuffer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- fn.Serve(ctx, l, fn.Config{}, slog.New(slog.NewTextHandler(&text, nil)), func(context.Context, *slog.Logger) (*fn.Service, error) {
			return &fn.Service{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "3")
				panic("secret boom")
			})}, nil
		})
	}()
	code, body := get(t, "http://"+l.Addr().String())
	if code != 500 || strings.Contains(body, "boom") || !strings.Contains(body, `"internal"`) {
		t.Errorf("%d %q", code, body)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
	if !strings.Contains(text.String(), "secret boom") {
		t.Errorf("log: %q", text.String())
	}
}
