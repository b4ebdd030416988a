package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"farmhand/gateway"
	"farmhand/skeleton"
)

func call(t *testing.T, answer http.HandlerFunc, task skeleton.Task, limit int) skeleton.Call {
	t.Helper()
	srv := httptest.NewServer(answer)
	defer srv.Close()
	invoker, err := gateway.NewInvoker(srv.URL, gateway.InvokerOptions{MaxAnswer: int64(limit)})
	if err != nil {
		t.Fatal(err)
	}
	defer invoker.CloseIdle()
	c := &caller{invoker: invoker, limit: limit}
	return c.Call(context.Background(), task, []byte("body"), 30*time.Second)
}

// A worker is told what it runs, and nothing that would make a call repeatable.
func TestHeadersOfACall(t *testing.T) {
	task := skeleton.Task{NewTask: skeleton.NewTask{Type: "image/png", Due: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)}, Farm: "echo", Job: "echo~X", Index: 7, Attempt: 2}
	c := call(t, func(w http.ResponseWriter, r *http.Request) {
		for name, want := range map[string]string{"X-Farm-Job": "echo~X", "X-Farm-Task": "echo~X/7", "X-Farm-Attempt": "2", "Content-Type": "image/png",
			"X-Farm-Deadline": "2026-01-02T03:04:05.006Z", "X-Timeout": "30s", "X-Call-Id": "", "Idempotency-Key": ""} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if r.URL.Path != "/function/echo" || r.Method != http.MethodPost {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Call-Id", "1")
		fmt.Fprint(w, "ok")
	}, task, 100)
	if c.Status != 200 || string(c.Body) != "ok" || c.Type != "text/plain" || !c.CallID || c.Platform || c.Failure != skeleton.NoFailure {
		t.Errorf("%+v", c)
	}
}

func TestAnswersAreSeenAsTheyAre(t *testing.T) {
	busy := call(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-OpenFaaS-Internal", "faas-middleware")
		w.WriteHeader(429)
	}, skeleton.Task{Farm: "echo"}, 100)
	if !busy.Platform || busy.Status != 429 || !busy.Empty {
		t.Errorf("%+v", busy)
	}
	large := call(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "0123456789") }, skeleton.Task{Farm: "echo"}, 5)
	if large.Failure != skeleton.Oversize || large.Limit != 5 {
		t.Errorf("%+v", large)
	}
	broken := call(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "part")
		panic(http.ErrAbortHandler)
	}, skeleton.Task{Farm: "echo"}, 1000)
	if broken.Failure != skeleton.Reset {
		t.Errorf("%+v", broken)
	}
}

func TestFailures(t *testing.T) {
	for err, want := range map[error]skeleton.Failure{gateway.ErrRefused: skeleton.Refused, gateway.ErrReset: skeleton.Reset, gateway.ErrTimeout: skeleton.Overtime,
		gateway.ErrTooLarge: skeleton.Oversize, context.DeadlineExceeded: skeleton.Overtime, errors.New("no route"): skeleton.Unreachable} {
		if got := failure(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for v, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "-3": 0, "soon": 0,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second, "Thu, 01 Jan 2026 00:00:00 GMT": 0} {
		if got := retryAfter(v, now); got != want {
			t.Errorf("%q: %s, want %s", v, got, want)
		}
	}
}
