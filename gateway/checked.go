package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// exchange is what one management call adds to its request and learns from the
// answer. It travels in the context, since go-sdk loses errors on the way up.
type exchange struct {
	query  url.Values // added to the request's
	status int
	body   []byte
	err    error // the answer's or the connection's failure
}

type exchangeKey struct{}

// call runs one call of go-sdk and returns its failure as an *Error.
func (c *Client) call(ctx context.Context, op string, query url.Values, do func(context.Context) error) error {
	x := &exchange{query: query}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, exchangeKey{}, x), c.timeout)
	defer cancel()
	err := do(ctx)
	switch {
	case x.err != nil:
		err = x.err
	case err != nil: // the status was fine and the body was not
		err = fmt.Errorf("%w: %w", ErrBadAnswer, err)
	default:
		return nil
	}
	return &Error{Op: op, Status: x.status, Body: excerpt(x.body), Err: err}
}

// checked is the transport below go-sdk: it hands on an answer only when its
// status is a success and its whole body has been read.
type checked struct{ next http.RoundTripper }

func (t *checked) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errors.New("gateway: a call outside Client.call")
	}
	resp, err := t.send(x, req)
	if err != nil {
		x.err = err
		return nil, err
	}
	return resp, nil
}

func (t *checked) send(x *exchange, req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	req = req.Clone(ctx)
	req.Header.Set("User-Agent", userAgent)
	if req.GetBody != nil { // with FAAS_DEBUG=1 go-sdk has read the body
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		req.Body = body
	}
	if x.query != nil {
		q := req.URL.Query()
		for name, values := range x.query {
			q[name] = values
		}
		req.URL.RawQuery = q.Encode()
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, unavailable(ofFailure(ctx, err))
	}
	defer resp.Body.Close()
	body, err := readAll(resp, maxBody)
	if err != nil {
		return nil, unavailable(ofFailure(ctx, err))
	}
	x.status, x.body = resp.StatusCode, body
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, ofStatus(resp.StatusCode)
	}
	// go-sdk takes 200, 201 and 202 for a success, and some gateways answer 204.
	resp.StatusCode = http.StatusOK
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// unavailable marks a connection's failure as ErrUnavailable too, so that the
// callers of the management API need not tell the two apart.
func unavailable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrTooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
