package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A connection that was never made has sent nothing, whatever kept it.
func TestHandshakeFailuresSendNothing(t *testing.T) {
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Error("a request arrived:", r.URL) })
	stranger := httptest.NewUnstartedServer(handler) // its certificate is of an authority nobody knows
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS()
	defer stranger.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer plain.Close()
	silent, closing := listen(t, false), listen(t, true)
	for name, url := range map[string]string{"unknown authority": stranger.URL, "no TLS": strings.Replace(plain.URL, "http:", "https:", 1),
		"silence": "https://" + silent, "end of file": "https://" + closing} {
		v, err := NewInvoker(url, InvokerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if name == "silence" {
			v.transport.DialTLSContext = dialTLS(&net.Dialer{Timeout: 50 * time.Millisecond}, nil)
		}
		_, err = v.Invoke(t.Context(), "f", []byte("task"), nil)
		for _, kind := range []error{ErrRefused, ErrReset, ErrTimeout, ErrTooLarge} {
			if errors.Is(err, kind) != (kind == ErrRefused) {
				t.Errorf("%s: %v", name, err)
			}
		}
		v.CloseIdle()
	}
}

// listen accepts connections and says nothing, or closes them.
func listen(t *testing.T, closes bool) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if closes {
				c.Close()
			} else {
				t.Cleanup(func() { c.Close() })
			}
		}
	}()
	return l.Addr().String()
}

func TestInvokeOverTLS(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" ")
		_, _ = io.Copy(w, r.Body)
	}))
	defer srv.Close()
	v, err := NewInvoker(srv.URL, InvokerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.CloseIdle()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	v.transport.DialTLSContext = dialTLS(&net.Dialer{Timeout: dialTimeout}, &tls.Config{RootCAs: roots})
	a, err := v.Invoke(t.Context(), "f", []byte("task"), nil)
	if err != nil || string(a.Body) != "HTTP/1.1 task" {
		t.Errorf("%+v %v", a, err)
	}
}

func TestKindsOfFailure(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx       context.Context
		err, want error
	}{
		"dial timeout":  {t.Context(), &net.OpError{Op: "dial", Err: context.DeadlineExceeded}, ErrRefused},
		"no such host":  {t.Context(), &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}}, ErrRefused},
		"read timeout":  {t.Context(), context.DeadlineExceeded, ErrTimeout},
		"read reset":    {t.Context(), &net.OpError{Op: "read", Err: syscall.ECONNRESET}, ErrReset},
		"our time":      {over, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, ErrTimeout},
		"our own doing": {gone, io.EOF, context.Canceled},
	} {
		if err := ofFailure(c.ctx, c.err); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
