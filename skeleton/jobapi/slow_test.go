package jobapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"farmhand/internal/fn"
)

// onPipe serves one connection in memory, with the timeouts of a function, and
// returns the client's end.
func onPipe(t *testing.T, h http.Handler) net.Conn {
	t.Helper()
	mine, theirs := net.Pipe()
	l := &oneConn{conn: make(chan net.Conn, 1), done: make(chan struct{})}
	l.conn <- theirs
	srv := &http.Server{Handler: h, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		_ = mine.Close()
		if err := errors.Join(srv.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return mine
}

type oneConn struct {
	conn chan net.Conn
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *oneConn) Close() error   { close(l.done); return nil }
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{} }

func answer(t *testing.T, c net.Conn) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

const slowHead = "POST /jobs?worker=echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n"

// A body that keeps coming is taken however long that lasts, and its answer
// arrives; what the API takes for the time plays no part.
func TestSlowUploadIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, store := inside(t, Config{Now: func() time.Time { return time.Unix(1e9, 0) }})
		c := onPipe(t, a)
		fmt.Fprintf(c, slowHead, 20)
		for range 10 {
			time.Sleep(29 * time.Second) // of the bubble's clock
			if _, err := io.WriteString(c, "1\n"); err != nil {
				t.Fatal(err)
			}
		}
		if code, body := answer(t, c); code != 201 {
			t.Errorf("%d %s", code, body)
		}
		if g, err := store.Farm("echo").Gauges(t.Context()); err != nil || g.Submitted != 10 {
			t.Errorf("%+v %v", g, err)
		}
	})
}

// A body that stops coming is refused before the gateway gives up.
func TestSilentUploadIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, store := inside(t, Config{})
		c := onPipe(t, a)
		fmt.Fprintf(c, slowHead, 20)
		if _, err := io.WriteString(c, "1\n"); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		code, body := answer(t, c)
		if code != 408 || !strings.Contains(body, `"too-slow"`) {
			t.Errorf("%d %s", code, body)
		}
		if d := time.Since(begin); d < 30*time.Second || d > 35*time.Second {
			t.Errorf("after %s", d)
		}
		if g, err := store.Farm("echo").Gauges(t.Context()); err != nil || g.Submitted != 0 {
			t.Errorf("%+v %v", g, err)
		}
	})
}

// Who has no token cannot hold a connection by a body that does not come; who
// has one may take the time that any body may.
func TestGuardWaitsForTheTokenless(t *testing.T) {
	for auth, want := range map[string]struct {
		code  int
		after time.Duration
	}{"": {401, scheduleTime}, "Authorization: Bearer s3cret\r\n": {200, 20 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			a, _ := inside(t, Config{})
			c := onPipe(t, a.Guard(func(next http.Handler) http.Handler { return fn.RequireToken("s3cret", next) }))
			begin := time.Now()
			var ended sync.WaitGroup
			ended.Go(func() {
				fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\n%sTransfer-Encoding: chunked\r\n\r\n", auth)
				time.Sleep(20 * time.Second) // of the bubble's clock
				_, _ = io.WriteString(c, "0\r\n\r\n")
			})
			if code, body := answer(t, c); code != want.code || time.Since(begin) != want.after {
				t.Errorf("%q: %d after %s: %s", auth, code, time.Since(begin), body)
			}
			_ = c.Close()
			ended.Wait()
		})
	}
}
