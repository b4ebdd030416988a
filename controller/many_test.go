package controller_test

import (
	"fmt"
	"testing"
	"time"

	"farmhand/controller"
)

// The capacity holds for good, whatever the farms' intervals are, and no farm is
// left with nothing: what a farm that is not decided for now wanted counts, not
// what it was cut to.
func TestCapacityHolds(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const n, capacity = 10, 100
		for i := range n {
			w.add(fmt.Sprintf("farm%d", i), 1, "policy", "static:n=100", "max", "100", "interval", fmt.Sprintf("%dms", 2000+130*i))
		}
		cfg := w.config("A")
		cfg.Allocator = controller.Capacity(capacity)
		w.create(cfg).Start()
		for range 60 {
			w.after(time.Second)
			sum := 0
			for _, name := range w.platform.names() {
				d, _, err := w.platform.Replicas(background, name)
				if err != nil {
					t.Fatal(err)
				}
				sum += d
			}
			if sum > capacity {
				t.Fatalf("%d replicas", sum)
			}
		}
		for _, name := range w.platform.names() {
			if d, _, _ := w.platform.Replicas(background, name); d != capacity/n {
				t.Errorf("%s has %d", name, d)
			}
		}
	})
}

// People's farms keep what people gave them, however full it is.
func TestCapacityLeavesFarmsScaledByHand(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("hand", 9, "policy", "manual")
		w.add("other", 1, "policy", "static:n=9")
		cfg := w.config("A")
		cfg.Allocator = controller.Capacity(10)
		w.create(cfg).Start()
		w.after(5 * time.Minute)
		if calls := w.platform.made(); len(calls) > 0 {
			t.Errorf("calls %v", calls)
		}
	})
}

// A pulse that fails takes no farm its turn: it is tried again at once, not an
// interval later.
func TestFailedPulseKeepsTheTurn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "policy", "static:n=1", "interval", "60s")
		c := w.start("A")
		w.settle()
		w.ledgers.set(func() { w.ledgers.publishErr = errAway })
		w.override(c, "f", "policy", "static:n=5")
		w.after(1500 * time.Millisecond)
		w.ledgers.set(func() { w.ledgers.publishErr = nil })
		w.after(3 * time.Second)
		if calls := w.platform.made(); len(calls) != 1 || calls[0].n != 5 {
			t.Errorf("calls %v", calls)
		}
	})
}

// A platform that is away is asked once a second, however much work comes.
func TestPlatformAwayIsNotHammered(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 0, "min", "0")
		w.start("A")
		w.settle()
		w.platform.set(func() { w.platform.listErr = errAway })
		w.platform.listed()
		for range 100 {
			w.submit("f", 1)
			w.after(40 * time.Millisecond)
		}
		if n := w.platform.listed(); n < 2 || n > 6 {
			t.Errorf("asked %d times in 4 s", n)
		}
	})
}

// Where results are not collected nothing is handed out, and workers are of no
// use.
func TestBlockedFarmGetsNoWorkers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		w.ledgers.set(func() { w.ledgers.blocked = "results not collected" })
		c := w.start("A")
		w.submit("f", 500)
		w.after(4 * interval)
		if calls := w.platform.made(); len(calls) > 0 {
			t.Errorf("calls %v", calls)
		}
		if v := farm(t, c, "f"); v.Conditions["Healthy"].Status {
			t.Errorf("%+v", v.Conditions)
		}
	})
}
