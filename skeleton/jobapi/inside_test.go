package jobapi

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/memledger"
)

// inside makes an API on a ledger in memory, with farm "echo": nothing of it
// blocks a test that owns the clock.
func inside(t *testing.T, cfg Config) (*API, *memledger.Store) {
	t.Helper()
	store := memledger.New(memledger.Options{})
	farm := skeleton.Farm{Name: "echo", Settings: skeleton.DefaultSettings(), Ready: 100, Target: 100}
	if err := ledger.Publish(t.Context(), store, skeleton.Roster{Farms: []skeleton.Farm{farm}}); err != nil {
		t.Fatal(err)
	}
	if cfg.Store == nil {
		cfg.Store = store
	}
	a := New(cfg)
	t.Cleanup(a.Close)
	return a, store
}

// work answers up to n waiting tasks.
func work(t *testing.T, store *memledger.Store, n int, body []byte) {
	t.Helper()
	l := store.Farm("echo")
	taken, err := l.Take(t.Context(), "test", n)
	if err != nil || len(taken.Leases) == 0 {
		t.Fatalf("%d leases, %v", len(taken.Leases), err)
	}
	outcomes := make([]ledger.Outcome, len(taken.Leases))
	for i, lease := range taken.Leases {
		outcomes[i] = ledger.Outcome{Lease: lease, Kind: ledger.Success, Status: 200, Type: "image/png", Body: body}
	}
	if _, err := l.Settle(t.Context(), outcomes, 0); err != nil {
		t.Fatal(err)
	}
}

// finished makes a job of n tasks, all of which have the answer.
func finished(t *testing.T, a *API, store *memledger.Store, n int, answer []byte) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/jobs?worker=echo", strings.NewReader(strings.Repeat("1\n", n)))
	r.Header.Set("Content-Type", "application/x-ndjson")
	a.ServeHTTP(w, r)
	var s Submitted
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s.Tasks != n {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	work(t, store, n, answer)
	return s.Job.ID
}
