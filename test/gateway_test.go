package test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"farmhand/skeleton"
)

// A gateway that refuses, loses answers and forgets the worker, call by call.
// What was not run is offered again without a charge, what may have run counts
// as lost (P71: no dead letters by refusals).
func TestFaultyGateway(t *testing.T) {
	t.Parallel()
	f := start(t, config{byHand: true})
	to, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	var calls, lost atomic.Int64
	faulty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch calls.Add(1) % 20 {
		case 3, 9:
			w.Header().Set("X-OpenFaaS-Internal", "faas-middleware")
			http.Error(w, "Concurrent request limit exceeded.", http.StatusTooManyRequests)
		case 5:
			http.Error(w, "error finding function", http.StatusNotFound)
		case 7: // never got there
			lost.Add(1)
			w.WriteHeader(http.StatusBadGateway)
		case 13: // was run, and the answer is gone
			lost.Add(1)
			forward.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusBadGateway)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(faulty.Close)
	base, _ := f.dispatch(faulty.URL)
	f.connect(base)
	f.ready(4)
	list := f.results(f.submit(300, light), 300)
	f.unharmed(list)
	f.answered(list)
	if n := losses(list); int64(n) != lost.Load() || n == 0 {
		t.Errorf("%d runs are counted as lost, want %d", n, lost.Load())
	}
}

// toxic puts a proxy between a dispatcher and the gateway.
func (f *farm) toxic() *toxiproxy.Proxy {
	f.t.Helper()
	p := f.proxy(strings.TrimPrefix(f.url, "http://"))
	base, _ := f.dispatch("http://" + p.Listen)
	f.connect(base)
	f.ready(f.cfg.workers)
	return p
}

// proxy puts a proxy before an address.
func (f *farm) proxy(address string) *toxiproxy.Proxy {
	f.t.Helper()
	quiet := zerolog.Nop()
	server := &toxiproxy.ApiServer{Metrics: toxiproxy.NewMetricsContainer(nil), Logger: &quiet}
	p := toxiproxy.NewProxy(server, f.t.Name(), "127.0.0.1:0", address)
	if err := p.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(p.Stop)
	return p
}

// with adds a toxic, calls fn, and takes it away again.
func (f *farm) with(p *toxiproxy.Proxy, toxic string, fn func()) {
	f.t.Helper()
	added, err := p.Toxics.AddToxicJson(strings.NewReader(toxic))
	if err != nil {
		f.t.Fatal(err)
	}
	fn()
	if err := p.Toxics.RemoveToxic(context.Background(), added.Name); err != nil {
		f.t.Fatal(err)
	}
}

// The network between dispatcher and gateway resets connections, becomes slow,
// hangs, and is gone for a while, under load. Nobody is charged.
func TestFaultyNetwork(t *testing.T) {
	t.Parallel()
	f := start(t, config{byHand: true})
	p := f.toxic()
	job := f.submit(600, light)
	f.reached(job, 50)
	f.with(p, `{"type":"reset_peer","stream":"downstream"}`, func() {
		until(t, patience, "answers are lost", func() bool { return f.gauges().Delayed > 0 })
	})
	f.reached(job, 200)
	f.with(p, `{"type":"latency","stream":"downstream","attributes":{"latency":100,"jitter":50}}`, func() { f.reached(job, 250) })
	f.with(p, `{"type":"timeout","stream":"downstream","attributes":{"timeout":0}}`, f.stalled) // its end closes the connections
	f.reached(job, 400)
	p.Stop()
	f.stalled()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	list := f.results(job, 600)
	f.unharmed(list)
	f.answered(list)
	t.Logf("%d runs were lost on the way", losses(list))
}

// stalled waits until no task was done for half a second.
func (f *farm) stalled() {
	f.t.Helper()
	done, since := -1, time.Now()
	until(f.t, patience, "no task is done any more", func() bool {
		if n := f.gauges().Done; n != done {
			done, since = n, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
}

// Calls hang past the attempt's timeout: the dispatcher ends them itself, and
// since a worker may have run the task, the attempt is charged.
func TestHangingNetwork(t *testing.T) {
	t.Parallel()
	f := start(t, config{byHand: true, timeout: "1s"})
	p := f.toxic()
	job := f.submit(300, light)
	f.reached(job, 50)
	f.with(p, `{"type":"timeout","stream":"downstream","attributes":{"timeout":0}}`, func() {
		until(t, patience, "attempts time out", func() bool { return f.gauges().Delayed > 0 })
	})
	list := f.results(job, 300)
	charged := 0
	for _, r := range list {
		if r.State != skeleton.Done || r.Attempt > 2 {
			t.Errorf("task %d: %s after %d attempts: %s", r.Index, r.State, r.Attempt, r.Reason)
		}
		charged += r.Attempt - 1
	}
	if charged == 0 || charged > 2*4 {
		t.Error(fmt.Sprint(charged, " attempts are charged"))
	}
	f.answered(list)
}
