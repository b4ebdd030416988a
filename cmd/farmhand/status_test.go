package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/types"

	"farmhand/platform"
)

func TestScheduleText(t *testing.T) {
	next := time.Date(2026, 3, 4, 12, 5, 0, 0, time.Local)
	last := next.Add(-5 * time.Minute)
	for want, s := range map[string]platform.Schedule{
		"*/5 * * * *; next run 2026-03-04 12:05:00":                                                                        {NextRun: next},
		"*/5 * * * *; queued; next run 2026-03-04 12:05:00; last run 2026-03-04 12:00:00 got 202":                          {NextRun: next, Async: true, LastRun: last, LastStatus: 202},
		"*/5 * * * *; next run 2026-03-04 12:05:00; last run 2026-03-04 12:00:00 got no answer":                            {NextRun: next, LastRun: last},
		"*/5 * * * *; no further run; running since 2026-03-04 12:00:00":                                                   {Running: true, LastRun: last},
		"*/5 * * * *; no further run; last run 2026-03-04 12:00:00 got 500; 2 left out, since the one before was not over": {LastRun: last, LastStatus: 500, Skipped: 2},
	} {
		s.Schedule = "*/5 * * * *"
		if got := scheduleText(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Calls that wait for one another, not for replicas, are told as such (P15).
func TestAsyncText(t *testing.T) {
	for _, c := range []struct {
		calls platform.AsyncCalls
		ce    bool
		want  string
	}{
		{platform.AsyncCalls{AtOnce: 10}, false, "0 calls wait, 0 run, at most 10 at once"},
		{platform.AsyncCalls{Waiting: 1, Running: 2, AtOnce: 10}, false, "1 calls wait, 2 run, at most 10 at once"},
		{platform.AsyncCalls{Waiting: 3, Running: 10, AtOnce: 10}, false, "3 calls wait, 10 run, at most 10 at once: more replicas do not help, --async-inflight does"},
		{platform.AsyncCalls{Waiting: 3, Running: 1, AtOnce: 1}, true, "3 calls wait, 1 run, at most 1 at once: plain CE makes one after the other, more replicas do not help; post them as tasks (farmhand submit)"},
	} {
		if got := asyncText(c.calls, c.ce); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestStatusText(t *testing.T) {
	var out bytes.Buffer
	status{
		Functions:  []platform.Detail{{FunctionStatus: types.FunctionStatus{Name: "f"}, Warnings: []string{"too slow"}}},
		Unrestored: []platform.Unrestored{{Function: "g", Reason: "no program"}},
		Problems:   map[string][]string{"f": {"farmhand.slots: no number"}},
	}.print(&out)
	for _, want := range []string{"function    f                    0 of 0 ready\n", "INVALID     f                    farmhand.slots: no number\n",
		"WARNING     f                    too slow\n", "NOT BACK    g                    no program\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "async") || strings.Contains(out.String(), "as CE") {
		t.Errorf("asynchronous calls without a broker, or CE:\n%s", out.String())
	}
	out.Reset()
	status{Info: platform.Info{CE: true}, Async: &platform.AsyncCalls{AtOnce: 1}}.print(&out)
	for _, want := range []string{"as CE       1 to 5 replicas", "async       0 calls wait, 0 run, at most 1 at once\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
