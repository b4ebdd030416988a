package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"farmhand/gateway"
	"farmhand/skeleton"
)

// caller hands tasks to workers over the gateway's synchronous route.
type caller struct {
	invoker *gateway.Invoker
	limit   int // bytes of a result
}

// Call implements dispatch.Caller.
func (c *caller) Call(ctx context.Context, t skeleton.Task, body []byte, timeout time.Duration) skeleton.Call {
	answer, err := c.invoker.Invoke(ctx, t.Farm, body, header(t, timeout))
	if err != nil {
		return skeleton.Call{Failure: failure(err), Limit: c.limit}
	}
	return skeleton.Call{
		Status:    answer.Status,
		Empty:     len(answer.Body) == 0,
		Platform:  answer.Header.Get("X-OpenFaaS-Internal") != "",
		CallID:    answer.Header.Get("X-Call-Id") != "",
		RetryWait: retryAfter(answer.Header.Get("Retry-After"), time.Now()),
		Type:      answer.Header.Get("Content-Type"),
		Body:      answer.Body,
	}
}

// header tells the worker what it runs.
func header(t skeleton.Task, timeout time.Duration) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/octet-stream")
	if t.Type != "" {
		h.Set("Content-Type", t.Type)
	}
	h.Set("X-Farm-Job", t.Job)
	h.Set("X-Farm-Task", t.Job+"/"+strconv.Itoa(t.Index))
	h.Set("X-Farm-Attempt", strconv.Itoa(t.Attempt))
	if !t.Due.IsZero() {
		h.Set("X-Farm-Deadline", t.Due.Format(time.RFC3339Nano))
	}
	h.Set("X-Timeout", timeout.String())
	return h
}

// failure says how a call ended that brought no full answer.
func failure(err error) skeleton.Failure {
	switch {
	case errors.Is(err, gateway.ErrRefused):
		return skeleton.Refused
	case errors.Is(err, gateway.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return skeleton.Overtime
	case errors.Is(err, gateway.ErrTooLarge):
		return skeleton.Oversize
	case errors.Is(err, gateway.ErrReset):
		return skeleton.Reset
	default:
		return skeleton.Unreachable
	}
}

// retryAfter reads seconds or a date; 0 where there is none or it has passed.
func retryAfter(v string, now time.Time) time.Duration {
	if v == "" {
		return 0
	}
	if n, err := strconv.Atoi(v); err == nil {
		return max(0, time.Duration(min(n, 1<<30))*time.Second)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
