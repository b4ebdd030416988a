package skeleton_test

import (
	"testing"
	"time"

	"farmhand/skeleton"
)

// Every row of the answer table (design, section 3; contract, section 4).
func TestClassify(t *testing.T) {
	const full = 10 * time.Second
	for name, c := range map[string]struct {
		call skeleton.Call
		want skeleton.Meaning
		wait time.Duration
	}{
		"200":                            {skeleton.Call{Status: 200, CallID: true}, skeleton.IsResult, 0},
		"204 without a body":             {skeleton.Call{Status: 204, Empty: true, CallID: true}, skeleton.IsResult, 0},
		"429 by the platform":            {skeleton.Call{Status: 429, Platform: true, CallID: true}, skeleton.IsBusy, 0},
		"503 by the platform":            {skeleton.Call{Status: 503, Platform: true}, skeleton.IsBusy, 0},
		"refused connection":             {skeleton.Call{Failure: skeleton.Refused}, skeleton.IsBusy, 0},
		"404 of the gateway itself":      {skeleton.Call{Status: 404}, skeleton.IsBusy, 0},
		"404 of the worker":              {skeleton.Call{Status: 404, CallID: true}, skeleton.IsRejected, 0},
		"500 by the platform":            {skeleton.Call{Status: 500, Platform: true, Elapsed: time.Second, Timeout: full}, skeleton.IsLost, 0},
		"502 with an empty body":         {skeleton.Call{Status: 502, Empty: true, Elapsed: time.Second, Timeout: full}, skeleton.IsLost, 0},
		"502 of the worker, with a body": {skeleton.Call{Status: 502, CallID: true, Elapsed: time.Second, Timeout: full}, skeleton.IsFailed, 0},
		"reset before a full answer":     {skeleton.Call{Failure: skeleton.Reset, Status: 200}, skeleton.IsLost, 0},
		"502 just before the timeout":    {skeleton.Call{Status: 502, Empty: true, Elapsed: full * 98 / 100, Timeout: full}, skeleton.IsLost, 0},
		"500 by the platform, overtime":  {skeleton.Call{Status: 500, Platform: true, Elapsed: full, Timeout: full}, skeleton.IsTimedOut, 0},
		"reset, overtime":                {skeleton.Call{Failure: skeleton.Reset, Elapsed: full + time.Second, Timeout: full}, skeleton.IsTimedOut, 0},
		"502 with the platform's mark":   {skeleton.Call{Status: 502, Platform: true, CallID: true, Elapsed: time.Second, Timeout: full}, skeleton.IsLost, 0},
		"500 of the worker, overtime":    {skeleton.Call{Status: 500, CallID: true, Elapsed: full, Timeout: full}, skeleton.IsFailed, 0},
		"no route to the gateway":        {skeleton.Call{Failure: skeleton.Unreachable}, skeleton.IsBusy, 0},
		"425, Retry-After is bounded":    {skeleton.Call{Status: 425, CallID: true, RetryWait: time.Hour}, skeleton.IsFailed, 5 * time.Minute},
		"500 with Retry-After":           {skeleton.Call{Status: 500, CallID: true, RetryWait: time.Minute}, skeleton.IsFailed, 0},
		"413 on the way":                 {skeleton.Call{Status: 413}, skeleton.IsRejected, 0},
		"no HTTP at all":                 {skeleton.Call{Status: 101}, skeleton.IsRejected, 0},
		"502 at upstream_timeout":        {skeleton.Call{Status: 502, Empty: true, Elapsed: full, Timeout: full}, skeleton.IsTimedOut, 0},
		"504":                            {skeleton.Call{Status: 504, Platform: true}, skeleton.IsTimedOut, 0},
		"408":                            {skeleton.Call{Status: 408, CallID: true}, skeleton.IsTimedOut, 0},
		"the dispatcher's own timeout":   {skeleton.Call{Failure: skeleton.Overtime}, skeleton.IsTimedOut, 0},
		"425":                            {skeleton.Call{Status: 425, CallID: true}, skeleton.IsFailed, 0},
		"429 of the worker":              {skeleton.Call{Status: 429, CallID: true, RetryWait: 7 * time.Second}, skeleton.IsFailed, 7 * time.Second},
		"503 of the worker, for a year":  {skeleton.Call{Status: 503, CallID: true, RetryWait: 8760 * time.Hour}, skeleton.IsFailed, 5 * time.Minute},
		"500 of the worker":              {skeleton.Call{Status: 500, CallID: true}, skeleton.IsFailed, 0},
		"422":                            {skeleton.Call{Status: 422, CallID: true}, skeleton.IsRejected, 0},
		"3xx is a bad task":              {skeleton.Call{Status: 302, CallID: true}, skeleton.IsRejected, 0},
		"a result over the limit":        {skeleton.Call{Failure: skeleton.Oversize, Status: 200, Limit: 10}, skeleton.IsRejected, 0},
	} {
		got, reason, wait := skeleton.Classify(c.call)
		if got != c.want || wait != c.wait {
			t.Errorf("%s: %s, wait %s; want %s, %s", name, got, wait, c.want, c.wait)
		}
		if (reason == "") != (got == skeleton.IsResult) {
			t.Errorf("%s: reason %q", name, reason)
		}
	}
}

func TestBackoffIsFullJitterWithinBounds(t *testing.T) {
	for n := 1; n < 80; n++ {
		if d := skeleton.Backoff(n, func() float64 { return 0.999999 }); d > skeleton.BackoffCap || d <= 0 {
			t.Errorf("attempt %d: %s", n, d)
		}
		if d := skeleton.Backoff(n, func() float64 { return 0 }); d < time.Millisecond {
			t.Errorf("attempt %d: %s is no back-off", n, d)
		}
	}
	half := func() float64 { return 0.5 }
	if a, b := skeleton.Backoff(1, half), skeleton.Backoff(2, half); b != 2*a {
		t.Errorf("not exponential: %s then %s", a, b)
	}
	for _, u := range []float64{0, 0.5, 0.9999} {
		if d := skeleton.BusyWait(func() float64 { return u }); d < 2*time.Millisecond || d > 20*time.Millisecond {
			t.Errorf("busy wait %s", d)
		}
	}
}
