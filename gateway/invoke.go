package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Defaults of an Invoker.
const (
	DefaultMaxAnswer = 32 << 20
	DefaultMaxConns  = 1024 // idle connections kept

	maxReason   = 64 << 10 // bytes of a refusal
	dialTimeout = 5 * time.Second
	userAgent   = "farmhand"
)

// idleTimeout is short of any gateway's: it closes an idle connection after its
// read_timeout (8 s where it is lowest), and a request sent in that very moment
// is lost.
const idleTimeout = 5 * time.Second

// InvokerOptions of an Invoker. The zero value means the defaults.
type InvokerOptions struct {
	MaxAnswer int64 // bytes of a result (DefaultMaxAnswer)
	MaxConns  int   // idle connections kept (DefaultMaxConns)
}

// Answer of a function, or of the platform in its place.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Truncated says that Body is only the beginning. That happens to refusals
	// over 64 kB alone; a result that is too large is ErrTooLarge.
	Truncated bool
}

// Invoker calls functions over the gateway's synchronous route. It is safe for
// concurrent use.
//
// It makes every call once, and so does net/http below it: a request that met a
// dead kept-alive connection is repeated only if not one byte of it was written.
// (Requests with an idempotent method or an Idempotency-Key are repeated also
// after that, when the server closed the connection without an answer. A POST is
// no such method, and Invoke drops both spellings of that header.)
type Invoker struct {
	base      *url.URL
	transport *http.Transport
	limit     int64
}

// NewInvoker makes an invoker over the gateway at rawURL.
func NewInvoker(rawURL string, o InvokerOptions) (*Invoker, error) {
	base, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = DefaultMaxAnswer
	}
	if o.MaxConns <= 0 {
		o.MaxConns = DefaultMaxConns
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	http1 := &http.Protocols{}
	http1.SetHTTP1(true) // HTTP/2 repeats requests by rules of its own
	return &Invoker{
		base:  base,
		limit: o.MaxAnswer,
		transport: &http.Transport{ // no proxy of the environment, no time limit but the context's
			DialContext:         dialer.DialContext,
			DialTLSContext:      dialTLS(dialer, nil),
			MaxIdleConns:        o.MaxConns,
			MaxIdleConnsPerHost: o.MaxConns,
			IdleConnTimeout:     idleTimeout,
			DisableCompression:  true, // a result's bytes are the worker's own
			Protocols:           http1,
		},
	}, nil
}

// dialTLS makes a connection and shakes hands, both within the dialer's time. It
// is net/http's own work but for the error: whatever goes wrong in a handshake,
// be it an end of file, nothing of a request was sent.
func dialTLS(d *net.Dialer, c *tls.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := (&tls.Dialer{NetDialer: d, Config: c}).DialContext
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return conn, nil
	}
}

// CloseIdle closes the idle connections.
func (v *Invoker) CloseIdle() { v.transport.CloseIdleConnections() }

// unsent are headers a call never carries: the two that make net/http repeat a
// request, and the id by whose absence the gateway's own 404 is known.
var unsent = []string{"Idempotency-Key", "X-Idempotency-Key", "X-Call-Id"}

// Invoke posts body to a function, NAME or NAME.NAMESPACE, and returns what came
// back, whatever its status; a redirect is not followed. Only ctx limits its time.
//
// Without a whole answer the error is an *Error and one of ErrRefused (nothing
// was sent), ErrReset, ErrTimeout, ErrTooLarge, or context.Canceled.
func (v *Invoker) Invoke(ctx context.Context, function string, body []byte, header http.Header) (*Answer, error) {
	if _, _, err := Split(function, DefaultNamespace); err != nil {
		return nil, err
	}
	answer, err := v.post(ctx, v.base.JoinPath("function", function).String(), body, header)
	if err != nil {
		return nil, &Error{Op: "invoke " + function, Err: err}
	}
	return answer, nil
}

func (v *Invoker) post(ctx context.Context, to string, body []byte, header http.Header) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	for _, name := range unsent {
		req.Header.Del(name)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", userAgent)
	}
	resp, err := v.transport.RoundTrip(req) // no http.Client: it follows redirects
	if err != nil {
		return nil, ofFailure(ctx, err)
	}
	defer resp.Body.Close()
	a := &Answer{Status: resp.StatusCode, Header: resp.Header}
	limit, result := v.limit, a.Status >= 200 && a.Status <= 299
	if !result {
		limit = min(limit, maxReason)
	}
	a.Body, err = readAll(resp, limit)
	if errors.Is(err, ErrTooLarge) && !result {
		a.Truncated, err = true, nil
	}
	if err != nil {
		return nil, fmt.Errorf("after status %d: %w", a.Status, ofFailure(ctx, err))
	}
	return a, nil
}
