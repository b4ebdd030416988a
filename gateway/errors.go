package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// What went wrong, for errors.Is. Of the first group one holds for a status the
// gateway answered; of the second one holds when there was no whole answer.
var (
	ErrNotFound     = errors.New("not found")                          // 404
	ErrUnauthorized = errors.New("not authorised")                     // 401, 403
	ErrRejected     = errors.New("the gateway refused the request")    // any other 4xx, and 3xx
	ErrUnavailable  = errors.New("the gateway is unavailable for now") // 429, 5xx; management calls: every failed connection too

	ErrRefused   = errors.New("no connection: nothing was sent")
	ErrReset     = errors.New("the connection broke before a whole answer")
	ErrTimeout   = errors.New("no whole answer in time")
	ErrTooLarge  = errors.New("the answer is too large")
	ErrBadAnswer = errors.New("the answer makes no sense")
)

// Error is a call to the gateway that failed.
type Error struct {
	Op     string // what was tried, e.g. "scale worker to 3"
	Status int    // what the gateway answered; 0 when there was no whole answer
	Body   string // the beginning of the answer, at most 300 bytes
	Err    error  // the cause: one of this package's errors, or one wrapped in it
}

// Error implements error.
func (e *Error) Error() string {
	s := "gateway: " + e.Op + ": " + e.Err.Error()
	if e.Status != 0 {
		s += fmt.Sprintf(" (status %d", e.Status)
		if e.Body != "" {
			s += ": " + e.Body
		}
		s += ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ofStatus tells the kind of a status that is not a success.
func ofStatus(status int) error {
	switch {
	case status == http.StatusNotFound:
		return ErrNotFound
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return ErrUnauthorized
	case status == http.StatusTooManyRequests, status >= 500:
		return ErrUnavailable
	default:
		return ErrRejected
	}
}

// ofFailure tells the kind of a failure without a whole answer. A context that
// was cancelled, not timed out, stays what it is. A connection that could not be
// made in the dialer's time is ErrRefused: the request's own time was not over.
func ofFailure(ctx context.Context, err error) error {
	var dial *net.OpError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrTimeout, context.DeadlineExceeded)
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case errors.Is(err, ErrRefused), errors.Is(err, ErrTooLarge):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrTimeout, context.DeadlineExceeded)
	default: // EOF, reset, broken pipe, not HTTP: the request may have run
		return fmt.Errorf("%w: %w", ErrReset, err)
	}
}

// excerpt is the beginning of a body on one line.
func excerpt(body []byte) string {
	s := strings.ToValidUTF8(string(body[:min(len(body), 300)]), "")
	return strings.Join(strings.Fields(s), " ")
}

// readAll reads a body of at most limit bytes; a longer one is ErrTooLarge with
// what fits.
func readAll(resp *http.Response, limit int64) ([]byte, error) {
	if n := resp.ContentLength; n > 0 && n <= limit {
		body := make([]byte, n)
		read, err := io.ReadFull(resp.Body, body)
		return body[:read], err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if int64(len(body)) > limit {
		return body[:limit], fmt.Errorf("%w: over %d bytes", ErrTooLarge, limit)
	}
	return body, err
}
