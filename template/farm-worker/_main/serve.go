package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"

	handler "github.com/openfaas/templates-sdk/go-http"
)

// server answers what the platform asks of a function, and gives the rest to
// Handle.
type server struct {
	handle   func(handler.Request) (handler.Response, error)
	config   config
	log      *slog.Logger
	draining atomic.Bool
}

// ServeHTTP implements http.Handler. It is no ServeMux: that would redirect
// paths such as //x to where the function is not.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	switch r.URL.Path {
	case "/_/health":
		_, _ = io.WriteString(w, "OK\n")
	case "/_/ready":
		if s.draining.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "OK\n")
	default:
		s.task(w, r)
	}
}

// task runs Handle, within the time that the caller gives it, and writes its
// answer.
func (s *server) task(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.config.maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) { // final
			http.Error(w, fmt.Sprintf("the task is longer than %d bytes (farmhand_max_body)", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		} else { // tried again
			http.Error(w, "the task did not arrive as a whole", http.StatusRequestTimeout)
		}
		return
	}
	ctx, cancel := s.limit(r)
	defer cancel()
	req := handler.Request{Body: body, Header: r.Header, QueryString: r.URL.RawQuery, Method: r.Method, Host: r.Host}
	req.WithContext(ctx)
	resp, err := s.call(req)
	if err == nil && resp.StatusCode != 0 && (resp.StatusCode < 200 || resp.StatusCode > 599) {
		err = fmt.Errorf("%d is no status that Handle may answer with", resp.StatusCode)
	}
	if err != nil {
		s.log.Warn("a task failed", "task", r.Header.Get("X-Farm-Task"), "attempt", r.Header.Get("X-Farm-Attempt"), "error", err)
	}
	answer(w, resp, err, ctx.Err())
}

// limit is the context of a call: it ends when the caller goes away, and after
// X-Timeout or exec_timeout, whichever is shorter. X-Farm-Deadline does not end
// it: a late result is late, but still wanted.
func (s *server) limit(r *http.Request) (context.Context, context.CancelFunc) {
	limit := s.config.execTimeout
	if d, err := duration(r.Header.Get("X-Timeout")); err == nil && d > 0 && (limit == 0 || d < limit) {
		limit = d
	}
	if limit == 0 {
		return context.WithCancel(r.Context())
	}
	return context.WithTimeout(r.Context(), limit)
}

// call runs Handle; a panic fails this task and no other.
func (s *server) call(req handler.Request) (resp handler.Response, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("panic in Handle", "panic", v, "stack", string(debug.Stack()))
			resp, err = handler.Response{}, errors.New("a panic; the worker's log has it")
		}
	}()
	return s.handle(req)
}

// answer writes what Handle returned. An error makes the answer a 504 when the
// time was over, and else Handle's own status, if that is one of failure, or
// 500: all of them are tried again, but not a 4xx.
func answer(w http.ResponseWriter, resp handler.Response, err, over error) {
	for name, values := range resp.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	w.Header().Del("Content-Length") // the server counts
	status, body := resp.StatusCode, resp.Body
	switch {
	case err == nil && status == 0:
		status = http.StatusOK
	case err == nil:
	case errors.Is(over, context.DeadlineExceeded):
		status = http.StatusGatewayTimeout
	case status < 400 || status > 599:
		status = http.StatusInternalServerError
	}
	if err != nil && len(body) == 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		body = []byte(err.Error() + "\n")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that went away needs no answer
}
