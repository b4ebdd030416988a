package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farmhand/gateway"
)

// raw serves every connection by serve, which owns it, until the test ends.
func raw(t *testing.T, serve func(n int, c *net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				serve(n, c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return "http://" + l.Addr().String()
}

// faulty returns the address of a gateway with a fault.
func faulty(t *testing.T, fault string) string {
	t.Helper()
	if fault == "refuse" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		return "http://" + l.Addr().String()
	}
	return raw(t, func(_ int, c *net.TCPConn) {
		if request(bufio.NewReader(c)) == nil {
			return
		}
		switch fault {
		case "half":
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		case "half chunked":
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
		case "reset midway":
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			_ = c.SetLinger(0)
		case "reset":
			_ = c.SetLinger(0)
		case "garbage":
			_, _ = io.WriteString(c, "what?\r\n\r\n")
		}
	})
}

// request reads one whole request and returns its body, nil at the end.
func request(r *bufio.Reader) []byte {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil
	}
	return append([]byte{}, body...)
}

func invoker(t *testing.T, url string, o gateway.InvokerOptions) *gateway.Invoker {
	t.Helper()
	v, err := gateway.NewInvoker(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.CloseIdle)
	return v
}

func TestInvoke(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Authorization", "X-Call-Id", "Idempotency-Key", "X-Idempotency-Key", "Accept-Encoding"} {
			if v, ok := r.Header[name]; ok {
				t.Errorf("sent %s: %s", name, v)
			}
		}
		w.Header().Set("X-Seen", r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Farm-Task"))
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(302)
		_, _ = io.Copy(w, r.Body)
	}))
	defer srv.Close()
	v := invoker(t, srv.URL, gateway.InvokerOptions{})
	header := http.Header{"X-Farm-Task": {"7"}, "X-Call-Id": {"x"}, "Idempotency-Key": {"x"}, "X-Idempotency-Key": {"x"}}
	for _, body := range []string{"task", ""} {
		a, err := v.Invoke(t.Context(), "f.dev", []byte(body), header)
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != 302 || string(a.Body) != body || a.Header.Get("X-Seen") != "POST /function/f.dev 7" {
			t.Errorf("%+v", a)
		}
	}
	if len(header) != 4 {
		t.Errorf("the caller's header was changed: %v", header)
	}
	if _, err := v.Invoke(t.Context(), "../system/functions", nil, nil); !errors.Is(err, gateway.ErrBadName) {
		t.Errorf("got %v", err)
	}
}

func TestInvokeFailures(t *testing.T) {
	kinds := []error{gateway.ErrRefused, gateway.ErrReset, gateway.ErrTimeout, gateway.ErrTooLarge, context.Canceled}
	for fault, want := range map[string]error{
		"refuse": gateway.ErrRefused, "close": gateway.ErrReset, "reset": gateway.ErrReset, "half": gateway.ErrReset,
		"half chunked": gateway.ErrReset, "reset midway": gateway.ErrReset, "garbage": gateway.ErrReset,
	} {
		v := invoker(t, faulty(t, fault), gateway.InvokerOptions{})
		_, err := v.Invoke(t.Context(), "f", []byte("task"), nil)
		for _, kind := range kinds {
			if errors.Is(err, kind) != (kind == want) {
				t.Errorf("%s: %v", fault, err)
			}
		}
	}
}

func TestInvokeTimesOut(t *testing.T) {
	arrived := make(chan struct{}, 2)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the client leave
		if r.Header.Get("X-Begin") != "" {
			_, _ = io.WriteString(w, "begun")
			_ = http.NewResponseController(w).Flush()
		}
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	defer srv.Close()
	v := invoker(t, srv.URL, gateway.InvokerOptions{})
	for _, header := range []http.Header{nil, {"X-Begin": {"1"}}} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := v.Invoke(ctx, "f", []byte("task"), header); !errors.Is(err, gateway.ErrTimeout) || errors.Is(err, gateway.ErrReset) {
			t.Errorf("got %v", err)
		}
		cancel()
		<-arrived
		ctx, cancel = context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		if _, err := v.Invoke(ctx, "f", []byte("task"), header); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

func TestInvokeBoundsAnswers(t *testing.T) {
	const limit = 1000
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Chunked") != "" {
			_ = http.NewResponseController(w).Flush()
		}
		if r.Header.Get("X-Fail") != "" {
			w.WriteHeader(400)
		}
		_, _ = w.Write(body)
	}))
	defer srv.Close()
	v := invoker(t, srv.URL, gateway.InvokerOptions{MaxAnswer: limit})
	for _, header := range []http.Header{{}, {"X-Chunked": {"1"}}} {
		for size, fits := range map[int]bool{0: true, limit - 1: true, limit: true, limit + 1: false, 5 << 20: false} {
			a, err := v.Invoke(t.Context(), "f", bytes.Repeat([]byte("x"), size), header)
			if fits && (err != nil || len(a.Body) != size) {
				t.Errorf("%d bytes: %v", size, err)
			}
			if !fits && !errors.Is(err, gateway.ErrTooLarge) {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	}
	a, err := v.Invoke(t.Context(), "f", bytes.Repeat([]byte("x"), 2*limit), http.Header{"X-Fail": {"1"}})
	if err != nil || a.Status != 400 || !a.Truncated || len(a.Body) != limit {
		t.Errorf("a long reason: %v", err)
	}
}

// On a kept-alive connection that dies after it took a task, the task must not
// be sent again, whatever the caller's headers say.
func TestNeverSentTwice(t *testing.T) {
	for _, fault := range []string{"close", "reset"} {
		var sent atomic.Int32
		url := raw(t, func(_ int, c *net.TCPConn) {
			for r := bufio.NewReader(c); ; {
				body := request(r)
				switch string(body) {
				case "":
					return
				case "warm-up":
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				default:
					sent.Add(1)
					if fault == "reset" {
						_ = c.SetLinger(0)
					}
					return
				}
			}
		})
		v := invoker(t, url, gateway.InvokerOptions{})
		if _, err := v.Invoke(t.Context(), "f", []byte("warm-up"), nil); err != nil {
			t.Fatal(err)
		}
		header := http.Header{"Idempotency-Key": {"k"}, "X-Idempotency-Key": {"k"}}
		if _, err := v.Invoke(t.Context(), "f", []byte("task"), header); !errors.Is(err, gateway.ErrReset) {
			t.Errorf("%s: %v", fault, err)
		}
		if n := sent.Load(); n != 1 {
			t.Errorf("%s: sent %d times", fault, n)
		}
	}
}

// Many calls at once share few connections afterwards, and none gets another's
// answer.
func TestInvokeKeepsConnections(t *testing.T) {
	var opened atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	v := invoker(t, srv.URL, gateway.InvokerOptions{})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 50 {
				body := strings.Repeat(string(rune('A'+i)), 100)
				a, err := v.Invoke(t.Context(), "f", []byte(body), nil)
				if err != nil || string(a.Body) != body {
					t.Errorf("call %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := opened.Load(); n > 2*64 {
		t.Errorf("%d connections for 3200 calls of 64 callers", n)
	}
}

func BenchmarkInvoke(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer srv.Close()
	v, err := gateway.NewInvoker(srv.URL, gateway.InvokerOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer v.CloseIdle()
	body := bytes.Repeat([]byte("x"), 200)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := v.Invoke(context.Background(), "f", body, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
