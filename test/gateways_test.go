package test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"farmhand/controller"
)

// A gateway keeps to 1…5 replicas whatever it is asked for, as a plain OpenFaaS
// does. What it made of a call is read back and believed: the call is not repeated,
// and the farm says that it is limited (P38, P39: the count there is never becomes
// the wish; P66).
func TestClampingGateway(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{steered: true, farm: map[string]string{"farmhand.min": "0"}})
	defer f.explained("worker")
	g := f.front()
	g.do(func(_ http.ResponseWriter, _ *http.Request, a *asked) bool {
		a.mended = min(5, max(1, a.n))
		return false
	})
	s := f.control(g.URL)
	f.begun()
	bound := func(got int, beyond func(to int) bool) {
		t.Helper()
		var first *controller.Acted
		until(t, patience, fmt.Sprintf("two calls come to %d instead of what was asked for", got), func() bool {
			r := f.last()
			if r == nil || r.Acted == nil || r.Acted.Error != "" || r.Acted.ReadBack != got || !beyond(r.Acted.To) {
				return false
			}
			if first == nil {
				first = r.Acted
			}
			return !r.Acted.At.Equal(first.At)
		})
		calls := len(g.of("worker"))
		for _, r := range f.more(8, "", nil) {
			if r.Replicas != got || r.Foreign != nil {
				t.Errorf("receipt %d: %d replicas, foreign %+v: %s", r.Seq, r.Replicas, r.Foreign, r.Why())
			}
		}
		if n := len(g.of("worker")); n != calls {
			t.Errorf("%d calls in 8 decisions after the platform has clamped one", n-calls)
		}
		if c := s.view().Conditions[controller.Limited]; !c.Status || c.Reason == "" {
			t.Errorf("the condition is %+v", c)
		}
	}
	bound(1, func(to int) bool { return to < 1 })
	end := f.stream("worker", 100*time.Millisecond, "600ms")
	bound(5, func(to int) bool { return to > 5 })
	end()
	until(t, patience, "it has scaled down", func() bool { return f.desired("worker") == 1 })
	f.told("worker")
	t.Logf("%d scale calls", len(g.of("worker")))
}

// A gateway answers scale calls of one farm with 429, then with 502, then not at
// all, and then no call of anybody. The farm keeps its state and asks again within
// its tokens, the other farm is scaled meanwhile, no error ends a loop, and all
// recovers (P29, P62, P63, P66; minutes are seconds here).
func TestRefusedScaleCalls(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{steered: true})
	defer f.explained("worker")
	other := f.deployment()
	other.Service = "other"
	if err := f.gateway.Deploy(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	g := f.front()
	p := f.proxy(strings.TrimPrefix(g.URL, "http://"))
	s := f.control("http://" + p.Listen)
	f.begun()
	begun := time.Now()
	end := f.stream("worker", 100*time.Millisecond, "400ms")
	for _, fault := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
	}{
		{"429", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "slow down", http.StatusTooManyRequests) }},
		{"502", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }},
		{"hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	} {
		g.do(func(w http.ResponseWriter, r *http.Request, a *asked) bool {
			if a.worker == "worker" {
				fault.answer(w, r)
				return true
			}
			return false
		})
		var endOther func() int
		if fault.name == "hang" {
			endOther = f.stream("other", 150*time.Millisecond, "400ms")
		}
		for range 2 {
			f.more(1, "a failed call: "+fault.name, func(r *controller.Receipt) bool { return r.Acted != nil && r.Acted.Error != "" })
		}
		if c := s.view().Conditions[controller.Healthy]; c.Status || !strings.Contains(c.Reason, "scale call") {
			t.Errorf("%s: the condition is %+v", fault.name, c)
		}
		if n := f.desired("worker"); n != 1 {
			t.Errorf("%s: %d replicas", fault.name, n)
		}
		if endOther != nil {
			until(t, patience, "the other farm is scaled", func() bool { return f.desired("other") >= 3 })
			endOther()
		}
	}
	if n, most := len(g.of("worker")), bucket(time.Since(begun)); n > most {
		t.Errorf("%d calls, the tokens are for %d", n, most)
	}
	g.do(nil)
	until(t, patience, "the farm is scaled", func() bool { return f.desired("worker") >= 5 })

	seq := f.last().Seq
	f.with(p, `{"type":"timeout","stream":"downstream","attributes":{"timeout":0}}`, func() {
		until(t, patience, "the controller misses its gateway", func() bool {
			var v controller.Overview
			s.ask(http.MethodGet, "/", "", &v)
			return v.Error != ""
		})
	})
	list := f.more(5, "", nil)
	if list[0].Seq > seq+3 {
		t.Errorf("receipt %d follows %d while the gateway was away", list[0].Seq, seq)
	}
	if n := f.desired("worker"); n < 5 {
		t.Errorf("%d replicas after the gateway was away", n)
	}
	end()
	until(t, patience, "it has scaled down", func() bool { return f.desired("worker") == 1 })
	for _, worker := range []string{"worker", "other"} {
		list := f.told(worker)
		for i := 1; i < len(list); i++ {
			// The gateway was away for a pulse and its timeout at most.
			if d := list[i].At.Sub(list[i-1].At); d > 15*time.Second {
				t.Errorf("%s: nothing was decided for %s", worker, d)
			}
		}
	}
	t.Logf("%d scale calls of the farm, %d of the other", len(g.of("worker")), len(g.of("other")))
}

// A second scaler sets the count to one every second. The farm notices each change
// that is not its own, says that it is not healthy and why, and does not fight
// harder than its tokens allow; when the other is gone it is as before (P64, P66;
// P64 has 5 s).
func TestSecondScaler(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{steered: true})
	defer f.explained("worker")
	g := f.front()
	s := f.control(g.URL)
	f.begun()
	end := f.stream("worker", 100*time.Millisecond, "400ms")
	until(t, patience, "the farm is scaled", func() bool { return f.desired("worker") >= 5 })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	begun, calls := time.Now(), len(g.of("worker"))
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := f.gateway.Scale(ctx, "worker", 1); err != nil && ctx.Err() == nil {
				t.Errorf("the second scaler: %v", err)
			}
		}
	}()
	defer func() { stop(); <-ended }()
	foreign := 0
	list := f.more(20, "", func(r *controller.Receipt) bool {
		// Both look once a second: in step, the other is there before the call is read back.
		if r.Foreign != nil || r.Acted != nil && r.Acted.ReadBack != r.Acted.To {
			foreign++
		}
		return true
	})
	if n, most := len(g.of("worker"))-calls, bucket(time.Since(begun)); n > most {
		t.Errorf("%d calls, the tokens are for %d", n, most)
	}
	if foreign < 5 {
		t.Errorf("%d receipts of %d show a foreign change", foreign, len(list))
	}
	c := s.view().Conditions[controller.Healthy]
	if c.Status || !strings.Contains(c.Reason, "somebody else") {
		t.Errorf("the condition is %+v", c)
	}
	t.Logf("%d foreign changes, %d calls in %s: %s", foreign, len(g.of("worker"))-calls, time.Since(begun).Round(time.Second), c.Reason)
	stop()
	<-ended
	until(t, patience, "the farm is scaled again", func() bool { return f.desired("worker") >= 5 })
	end()
	f.told("worker")
}
