package callback_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"farmhand/skeleton"
	"farmhand/skeleton/callback"
	"farmhand/skeleton/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sender(t *testing.T, allow ...string) *callback.Sender {
	t.Helper()
	s, err := callback.New(callback.Config{Allow: allow, Secret: "s3cret", Timeout: time.Second,
		Now: func() time.Time { return time.Unix(1_700_000_000, 0) }, Uniform: func() float64 { return 0.5 }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCheck(t *testing.T) {
	s := sender(t, "hooks.example.com", "*.team.example.com", "https://api.example.com/farm", "10.0.0.7:9000", "[::1]:9000")
	for raw, ok := range map[string]bool{
		"https://hooks.example.com/x?y=1":           true,
		"http://HOOKS.example.com.:8080/":           true,
		"https://a.team.example.com/":               true,
		"https://team.example.com/":                 false,
		"https://evilteam.example.com/":             false,
		"https://api.example.com/farm":              true,
		"https://api.example.com:443/farm/done":     true,
		"https://api.example.com/farmer":            false,
		"https://api.example.com/farm/../admin":     false,
		"https://api.example.com/farm/%2e%2e/admin": false,
		"https://api.example.com/farm/%2fadmin":     false,
		"http://api.example.com/farm":               false,
		"https://api.example.com:8443/farm":         false,
		"http://10.0.0.7:9000/":                     true,
		"http://10.0.0.7/":                          false,
		"http://[::1]:9000/":                        true,
		"https://hooks.example.com@evil.example/":   false,
		"https://user:pass@hooks.example.com/":      false,
		"https://hooks.example.com.evil.example/":   false,
		"ftp://hooks.example.com/":                  false,
		"//hooks.example.com/":                      false,
		"/function/x":                               false,
		"https:///x":                                false,
		"https://hooks.example.com/#part":           false,
		"https://hooks.example.com/" + long(3000):   false,
		"http://169.254.169.254/latest/meta-data":   false,
		"https://hooks.example.com\t/":              false,
		"javascript:alert(1)":                       false,
		"":                                          false,
	} {
		if err := s.Check(raw); (err == nil) != ok {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if err := sender(t).Check("https://hooks.example.com/"); err == nil || !strings.Contains(err.Error(), "off") {
		t.Errorf("nothing is allowed by default: %v", err)
	}
}

func long(n int) string { return strings.Repeat("x", n) }

func TestAllowListIsChecked(t *testing.T) {
	for _, bad := range []string{"", "*", "*.", "a*b.example", "ftp://x/", "https://", "host/path", "https://u:p@x/", "https://x/?q", "http://x y/"} {
		if _, err := callback.New(callback.Config{Allow: []string{bad}}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// receiver notes what it gets and answers with the statuses in turn.
type receiver struct {
	url      string
	statuses []int
	got      []*http.Request
	bodies   [][]byte
}

func newReceiver(t *testing.T, statuses ...int) *receiver {
	t.Helper()
	r := &receiver{statuses: statuses}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.got, r.bodies = append(r.got, req), append(r.bodies, body)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(r.statuses[min(len(r.got), len(r.statuses))-1])
	}))
	t.Cleanup(srv.Close)
	r.url = srv.URL
	return r
}

func ended(url string) skeleton.Job {
	return skeleton.Job{ID: "echo~01J", Farm: "echo", Callback: url, Total: 5, Done: 3, Dead: 1, Cancelled: 1, Late: 2,
		Created: time.Unix(1_699_999_000, 0).UTC(), Ended: time.Unix(1_699_999_999, 0).UTC()}
}

func TestDelivery(t *testing.T) {
	r := newReceiver(t, 204)
	again, err := sender(t, "127.0.0.1").Notify(t.Context(), ledger.CallbackDue{Job: ended(r.url + "/done?x=1"), Try: 1})
	if again != 0 || err != nil || len(r.got) != 1 {
		t.Fatal(again, err, len(r.got))
	}
	h := r.got[0].Header
	if r.got[0].Method != "POST" || r.got[0].URL.String() != "/done?x=1" || h.Get("X-Farm-Job") != "echo~01J" || h.Get("X-Farm-Delivery") == "" || h.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %v", r.got[0].Method, r.got[0].URL, h)
	}
	now := time.Unix(1_700_000_100, 0)
	stamp, sig := h.Get("X-Farm-Timestamp"), h.Get("X-Farm-Signature")
	if err := callback.Verify("s3cret", stamp, sig, r.bodies[0], now, 5*time.Minute); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]error{
		"another secret": callback.Verify("guess", stamp, sig, r.bodies[0], now, time.Hour),
		"another body":   callback.Verify("s3cret", stamp, sig, []byte("{}"), now, time.Hour),
		"another time":   callback.Verify("s3cret", "1700000001", sig, r.bodies[0], now, time.Hour),
		"too old":        callback.Verify("s3cret", stamp, sig, r.bodies[0], now, time.Second),
	} {
		if bad == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	var got map[string]any
	if err := json.Unmarshal(r.bodies[0], &got); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]any{"id": "echo~01J", "farm": "echo", "total": 5.0, "done": 3.0, "dead": 1.0, "cancelled": 1.0, "late": 2.0} {
		if got[k] != want {
			t.Errorf("%s: %v", k, got[k])
		}
	}
	if got["created"] == nil || got["ended"] == nil {
		t.Errorf("%v", got)
	}
}

// Tries are bounded, share one delivery id, and take about ten minutes in all.
func TestRetries(t *testing.T) {
	r := newReceiver(t, 500)
	s := sender(t, "127.0.0.1")
	var total time.Duration
	for try := 1; ; try++ {
		again, err := s.Notify(t.Context(), ledger.CallbackDue{Job: ended(r.url), Try: try})
		if err == nil {
			t.Fatal("500 is no success")
		}
		if again == 0 {
			if try != callback.MaxTries {
				t.Errorf("given up after %d tries", try)
			}
			break
		}
		total += again
	}
	if total < 8*time.Minute || total > 12*time.Minute {
		t.Errorf("%s in all", total)
	}
	for _, req := range r.got {
		if req.Header.Get("X-Farm-Delivery") != r.got[0].Header.Get("X-Farm-Delivery") {
			t.Error("a retry has another delivery id")
		}
	}
	job := ended(r.url)
	job.Ended = job.Ended.Add(time.Minute) // redriven
	_, _ = s.Notify(t.Context(), ledger.CallbackDue{Job: job, Try: 1})
	if last := r.got[len(r.got)-1]; last.Header.Get("X-Farm-Delivery") == r.got[0].Header.Get("X-Farm-Delivery") {
		t.Error("another end has the same delivery id")
	}
}

func TestAnswers(t *testing.T) {
	for status, retried := range map[int]bool{302: true, 307: true, 404: true, 410: false, 503: true} {
		r := newReceiver(t, status, 200)
		again, err := sender(t, "127.0.0.1").Notify(t.Context(), ledger.CallbackDue{Job: ended(r.url), Try: 1})
		if err == nil || (again > 0) != retried || len(r.got) != 1 {
			t.Errorf("%d: again %s, %v, %d requests: redirects are not followed", status, again, err, len(r.got))
		}
	}
}

// What goes wrong is told with host and path; the query may hold a secret.
func TestErrorsDoNotTellTheQuery(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err := sender(t, "127.0.0.1").Notify(t.Context(), ledger.CallbackDue{Job: ended(gone.URL + "/done/7?token=hush"), Try: 1})
	if err == nil || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), strings.TrimPrefix(gone.URL, "http://")+"/done/7: ") {
		t.Errorf("nobody there: %v", err)
	}
	for _, status := range []int{302, 410, 500} {
		r := newReceiver(t, status)
		if _, err := sender(t, "127.0.0.1").Notify(t.Context(), ledger.CallbackDue{Job: ended(r.url + "/?token=hush"), Try: 1}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// A list that was changed since the submission holds.
func TestListIsCheckedAgain(t *testing.T) {
	r := newReceiver(t, 200)
	again, err := sender(t, "elsewhere.example").Notify(t.Context(), ledger.CallbackDue{Job: ended(r.url), Try: 1})
	if err == nil || again != 0 || len(r.got) != 0 {
		t.Error(again, err)
	}
}

// A listed port is the only one; a receiver that does not answer is given up. What
// names may lead to is tested beside the dialer.
func TestLimits(t *testing.T) {
	r := newReceiver(t, 200)
	u, _ := url.Parse(r.url)
	again, err := sender(t, "http://localhost").Notify(t.Context(), ledger.CallbackDue{Job: ended("http://localhost:" + u.Port()), Try: 1})
	if err == nil || again != 0 {
		t.Errorf("another port than the listed one: %s %v", again, err)
	}
	if _, err := sender(t, "localhost").Notify(t.Context(), ledger.CallbackDue{Job: ended("http://localhost:" + u.Port()), Try: 1}); err != nil {
		t.Errorf("the operator named it: %v", err)
	}
	stuck, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		<-req.Context().Done()
	}))
	defer slow.Close()
	if again, err := sender(t, "127.0.0.1").Notify(stuck, ledger.CallbackDue{Job: ended(slow.URL), Try: 1}); err == nil || again == 0 {
		t.Error("a stuck receiver", again, err)
	}
}
