package platform_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farmhand/platform"
)

type platformConfig = platform.Config

func TestScale(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	for _, n := range []uint64{3, 1, 0, 2} {
		b.scale("echo", n)
		if d := b.detail("echo"); d.Replicas != n { // read back at once
			t.Errorf("scaled to %d, reads back %d", n, d.Replicas)
		}
		b.ready("echo")
	}
}

// A scale call is bounded by the function's label, as a restored number is, and
// whoever made it reads back what came of it. Fewer than at first may be asked for.
func TestScaleBounds(t *testing.T) {
	b := start(t)
	d := function("echo")
	(*d.Labels)["com.openfaas.scale.min"], (*d.Labels)["com.openfaas.scale.max"] = "2", "3"
	b.deploy(d)
	for _, c := range [][2]uint64{{9, 3}, {1, 1}, {0, 0}, {1 << 30, 3}} {
		b.scale("echo", c[0])
		if n := b.detail("echo").Replicas; n != c[1] {
			t.Errorf("scaled to %d, reads back %d, want %d", c[0], n, c[1])
		}
	}
	for _, huge := range []string{"2147483648", "18446744073709551615", "1e30", "-1"} {
		if a := b.system("POST", "/system/scale-function/echo", `{"replicas":`+huge+`}`); a.status != 400 {
			t.Errorf("%s replicas: %+v", huge, a)
		}
	}
	if n := b.detail("echo").Replicas; n != 3 {
		t.Errorf("%d after what was refused", n)
	}
	b.ready("echo")
	b.stop()
	file := filepath.Join(b.config.State, "functions.json")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(raw, []byte(`"replicas": 3`), []byte(`"replicas": 9`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	again := start(t, func(c *platformConfig) { c.State = b.config.State })
	if n := again.detail("echo").Replicas; n != 3 {
		t.Errorf("restored as %d", n)
	}
}

// Ten calls of a function at zero make one start and ten answers.
func TestColdCalls(t *testing.T) {
	b := start(t, func(c *platformConfig) { c.ColdStart = "constant:100ms" })
	d := function("echo")
	(*d.Labels)["com.openfaas.scale.min"] = "0"
	b.deploy(d)
	if n := b.detail("echo").Replicas; n != 0 {
		t.Fatalf("%d replicas at first, want 0", n)
	}
	begun := time.Now()
	var calls []<-chan answer
	for range 10 {
		calls = append(calls, b.later("echo"))
	}
	pids := map[int]bool{}
	for _, c := range calls {
		a := <-c
		if a.status != 200 {
			t.Fatalf("%+v", a)
		}
		pids[b.echoed(a).Pid] = true
	}
	if d := time.Since(begun); d < 100*time.Millisecond {
		t.Errorf("a replica was ready after %s, before its injected cold start", d)
	}
	if s := b.detail("echo"); len(pids) != 1 || s.Replicas != 1 || len(s.Instances) != 1 {
		t.Errorf("answers of %d processes, status %+v", len(pids), s)
	}
}

// Calls in the moment of scaling to zero lose nothing.
func TestCallsAroundZero(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	for range 10 {
		var calls []<-chan answer
		for i := range 8 {
			calls = append(calls, b.later("echo"))
			if i == 4 {
				b.scale("echo", 0)
			}
		}
		for _, c := range calls {
			if a := <-c; a.status != 200 {
				t.Fatalf("%+v", a)
			}
		}
	}
}

// Under load and constant scaling every call is answered.
func TestScaleUnderLoad(t *testing.T) {
	b := start(t, quiet)
	b.deploy(function("echo"))
	stop, answered := make(chan struct{}), make(chan struct{}, 1)
	var calls, bad atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if a := b.call("echo/pid"); a.status != 200 && bad.Add(1) == 1 {
					t.Errorf("%+v", a)
				}
				calls.Add(1)
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		})
	}
	for _, n := range []uint64{4, 1, 3, 0, 2, 5, 1, 0, 4, 2} {
		b.scale("echo", n)
		for want := calls.Load() + 100; calls.Load() < want; {
			receive(t, "a hundred more calls were answered", answered)
		}
	}
	close(stop)
	wg.Wait()
	if bad.Load() > 0 {
		t.Errorf("%d of %d calls failed", bad.Load(), calls.Load())
	}
}

// An update replaces the processes without losing a call; the same again does
// nothing.
func TestUpdate(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	before := b.detail("echo").Instances[0].Pid
	b.deploy(function("echo"))
	if b.detail("echo").Instances[0].Pid != before {
		t.Error("the same deployment starts other processes")
	}
	if a := b.system("PUT", "/system/functions", deployment(function("echo", "colour", "blue"))); a.status != 202 {
		t.Fatal(a)
	}
	for end, pid := time.Now().Add(patience), before; pid == before; {
		a := b.call("echo")
		if a.status != 200 || time.Now().After(end) {
			t.Fatalf("a call during the update: %+v", a)
		}
		pid = b.echoed(a).Pid
	}
	gone(t, before)
}

// Only a replica that is ready gets calls, also later in its life.
func TestReadiness(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: readiness later in a replica's life, which takes several probes of 2 s; make test runs it")
	}
	b := start(t)
	var ready atomic.Bool
	asked := make(chan struct{}, 1)
	probe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		select {
		case asked <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(probe.Close)
	if a := b.system("POST", "/system/functions", deployment(function("echo", "ready_url", probe.URL))); a.status != 202 {
		t.Fatal(a)
	}
	held := b.later("echo")
	receive(t, "it runs", asked)
	if in := b.detail("echo").Instances[0]; in.Pid == 0 || in.State != "starting" {
		t.Errorf("%+v", in)
	}
	ready.Store(true)
	if a := <-held; a.status != 200 {
		t.Errorf("%+v", a)
	}
	ready.Store(false)
	b.await("echo", "it is out of the routing", func(d platform.Detail) bool { return d.AvailableReplicas == 0 })
	ready.Store(true)
	if a := b.call("echo"); a.status != 200 {
		t.Errorf("%+v", a)
	}
}

func TestCE(t *testing.T) {
	b := start(t, func(c *platformConfig) { c.CE = true })
	d := function("echo", "max_inflight", "1")
	(*d.Labels)["com.openfaas.scale.min"], (*d.Labels)["com.openfaas.scale.max"] = "0", "3" // no bound for the scale call
	b.deploy(d)
	for asked, want := range map[uint64]uint64{0: 1, 7: 5, 2: 2} {
		b.scale("echo", asked)
		if n := b.detail("echo").Replicas; n != want {
			t.Errorf("scale %d: %d, want %d", asked, n, want)
		}
	}
	b.scale("echo", 2)
	b.ready("echo")
	// Random balancing meets the busy one of two now and then.
	g := newGate(t)
	held := b.later("echo/" + g.path())
	g.begun(1)
	count := map[int]int{}
	for range 60 {
		count[b.call("echo").status]++
	}
	if count[200] == 0 || count[429] == 0 || count[200]+count[429] != 60 {
		t.Errorf("answers: %v", count)
	}
	g.open()
	if a := <-held; a.status != 200 {
		t.Errorf("%+v", a)
	}
}

func TestUsage(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	b.scale("echo", 2)
	b.ready("echo")
	b.call("echo/burn?d=300ms")
	d := b.detail("echo")
	if d.Usage == nil || d.Usage.TotalMemoryBytes < 1<<20 || len(d.Instances) != 2 {
		t.Fatalf("%+v", d)
	}
	busy := 0
	for _, in := range d.Instances {
		if in.MemoryBytes < 1<<19 || in.StartedAt.IsZero() || in.State != "ready" {
			t.Errorf("%+v", in)
		}
		if in.CPU > 50 {
			busy++
		}
	}
	if busy == 0 || d.Usage.CPU > 4000 {
		t.Errorf("millicores: %+v", d)
	}
}
