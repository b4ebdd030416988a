package platform_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"farmhand/internal/proc"
	"farmhand/platform"
)

// patience bounds every wait of a test.
const patience = 20 * time.Second

// receive waits for a signal.
func receive[T any](t testing.TB, what string, signal <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-signal:
	case <-time.After(patience):
		t.Fatalf("in vain waited until %s", what)
	}
	return v
}

// await waits until a function's replicas are as wanted. It looks once, and
// again each time the platform says that they have changed.
func (b *bench) await(name, what string, ok func(platform.Detail) bool) {
	b.t.Helper()
	if b.Platform == nil { // in a process of its own: it tells only when asked
		until(b.t, what, func() bool { return ok(b.detail(name)) })
		return
	}
	for {
		changed := b.Changed(name) // before looking, so that no change is missed
		if ok(b.detail(name)) {
			return
		}
		receive(b.t, what, changed)
	}
}

// gone waits until a process has ended.
func gone(t testing.TB, pid int) {
	t.Helper()
	if id, err := proc.Identify(pid); err == nil && !id.Await(patience) {
		t.Fatalf("process %d still runs", pid)
	}
}

// until polls, and is only for what tells nobody that it changes: another
// process's files, a server that is away, the clock of the embedded Redis.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("in vain waited until %s", what)
		}
	}
}

// gate holds calls of the test function. The function asks it over HTTP, so both
// sides are told and neither has to look again and again.
type gate struct {
	t         *testing.T
	url       string
	held      chan struct{} // a call has come to the gate
	cancelled chan struct{} // the function saw that its caller went away
	term      chan struct{} // the function got SIGTERM
	let       chan struct{}
	once      sync.Once
}

func newGate(t *testing.T) *gate {
	g := &gate{t: t, held: make(chan struct{}, 64), cancelled: make(chan struct{}, 64), term: make(chan struct{}, 64), let: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) {
		g.held <- struct{}{}
		select {
		case <-g.let:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/cancelled", func(http.ResponseWriter, *http.Request) { g.cancelled <- struct{}{} })
	mux.HandleFunc("/term", func(http.ResponseWriter, *http.Request) { g.term <- struct{}{} })
	s := httptest.NewServer(mux)
	g.url = s.URL
	t.Cleanup(func() {
		g.open() // Close waits for the calls
		s.Close()
	})
	return g
}

// path makes the test function hold its answer until the gate opens.
func (g *gate) path() string { return "hold?gate=" + url.QueryEscape(g.url) }

// open lets everybody go, for good.
func (g *gate) open() { g.once.Do(func() { close(g.let) }) }

// pass lets one go.
func (g *gate) pass() {
	g.t.Helper()
	select {
	case g.let <- struct{}{}:
	case <-time.After(patience):
		g.t.Fatal("nobody came to the gate")
	}
}

// begun waits until n more calls are held.
func (g *gate) begun(n int) {
	g.t.Helper()
	for range n {
		receive(g.t, "a call has begun", g.held)
	}
}
