// Package probe is a worker that does as it is told, with a module name and a
// package of its own.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	handler "github.com/openfaas/templates-sdk/go-http"

	"example.com/probe/words"
)

func Handle(req handler.Request) (handler.Response, error) {
	q, err := url.ParseQuery(req.QueryString)
	if err != nil {
		return handler.Response{}, err
	}
	status, _ := strconv.Atoi(q.Get("status"))
	resp := handler.Response{StatusCode: status, Header: http.Header{"x-probe": {req.Method, req.Host}, "Content-Length": {"1"}}}
	switch d, _ := time.ParseDuration(q.Get("sleep")); {
	case q.Has("panic"):
		panic("boom")
	case q.Has("error"):
		return resp, errors.New(q.Get("error"))
	case q.Has("left"):
		end, ok := req.Context().Deadline()
		resp.Body = fmt.Appendf(nil, "%t %s", ok, time.Until(end).Round(time.Second))
	case d > 0:
		if err := sleep(req.Context(), d); err != nil {
			return resp, err
		}
		resp.Body = []byte(words.Whole)
	default:
		resp.Body = req.Body
	}
	return resp, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
