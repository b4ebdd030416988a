package controller_test

import (
	"testing"
	"time"

	"farmhand/controller"
)

const interval = 2 * time.Second // of a farm that says nothing

// phases are moments between two ticks.
func phases(t *testing.T, test func(t *testing.T, phase time.Duration)) {
	for phase := 50 * time.Millisecond; phase < interval; phase += 270 * time.Millisecond {
		t.Run(phase.String(), func(t *testing.T) { test(t, phase) })
	}
}

// From a burst's first task to the scale call it takes one interval at most.
func TestBurst(t *testing.T) {
	phases(t, func(t *testing.T, phase time.Duration) {
		in(t, func(t *testing.T, w *world) {
			w.add("f", 1, "deadline", "2s", "service", "400ms", "max", "20")
			w.start("A")
			w.after(5*interval + phase)
			w.platform.made()
			began := time.Now()
			w.submit("f", 1000)
			w.after(interval + 300*time.Millisecond)
			calls := w.platform.made()
			if len(calls) != 1 || calls[0].n != 20 {
				t.Fatalf("calls %v", calls)
			}
			t.Logf("scaled after %s", calls[0].at.Sub(began))
		})
	})
}

// At zero nobody waits for a tick: the ledger's event wakes the controller.
func TestBurstFromZero(t *testing.T) {
	phases(t, func(t *testing.T, phase time.Duration) {
		in(t, func(t *testing.T, w *world) {
			w.add("f", 0, "min", "0", "max", "20")
			w.start("A")
			w.after(5*interval + phase)
			began := time.Now()
			w.submit("f", 10)
			w.after(300 * time.Millisecond)
			calls := w.platform.made()
			if len(calls) == 0 || calls[0].n == 0 {
				t.Fatalf("calls %v", calls)
			}
			t.Logf("scaled after %s", calls[0].at.Sub(began))
		})
	})
}

// However often a farm is woken, its next tick comes within an interval of the
// last, and it is not decided more often than every quarter of a second.
func TestWakesPutNoTickOff(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 0, "min", "0", "max", "3").startup = 4 * time.Second
		c := w.start("A")
		w.after(5 * interval)
		stop := w.stream("f", 1)
		w.after(6 * time.Second) // woken again and again while the replica starts
		stop()
		w.override(c, "f", "target", "0.9") // wakes as well
		w.after(8 * interval)
		list := w.log.of(t, "f")
		for i := 1; i < len(list); i++ {
			if gap := list[i].At.Sub(list[i-1].At); gap > interval+10*time.Millisecond || gap < 250*time.Millisecond {
				t.Errorf("%s between two ticks", gap)
			}
		}
		last := list[len(list)-1]
		if gap := w.now().Sub(last.At); gap > interval {
			t.Errorf("the last tick was %s ago", gap)
		}
		if last.Observation.Target != 0.9 {
			t.Error("the override did not take")
		}
	})
}

// A farm whose lag is long is looked at every second, so that what is ready is
// published soon; ticks stay as they are.
func TestReadyIsPublishedWithinASecond(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 1, "interval", "30s", "policy", "static:n=3")
		f.startup = 7500 * time.Millisecond
		w.start("A")
		w.after(50 * time.Second)
		ready := w.platform.made()[0].at.Add(f.startup)
		for _, p := range w.ledgers.published() {
			if p.Ready == 3 {
				within(t, "the count of ready replicas was published", p.at.Sub(ready), 500*time.Millisecond, 510*time.Millisecond)
				return
			}
		}
		t.Error("it was never published that three are ready")
	})
}

// Nobody lives in this farm, and the loop does next to nothing.
func TestQuietFarmIsCheap(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		w.start("A")
		w.after(time.Minute)
		w.platform.listed()
		w.after(time.Minute)
		if n := w.platform.listed(); n < 30 || n > 33 {
			t.Errorf("%d lists in 30 intervals", n)
		}
	})
}

// A whole run, with all that may happen in it, is told by its receipts: sound
// replays every one as it was kept.
func TestRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 1, "min", "0", "max", "12", "deadline", "3s", "budget", "1", "slots", "2")
		f.most = 9
		w.set(func() { w.pace = 200 * time.Millisecond })
		c := w.start("A")
		modes := map[controller.Mode]bool{}
		laws := map[string]bool{}
		for i, law := range []string{"", "reactive-maximum", "threshold:step=3", "staffing:down=10", "reactive-average", "static:n=3"} {
			w.override(c, "f", "policy", law, "mode", []string{"", "shadow", "", "", "dry-run", "paused"}[i])
			w.after(10 * time.Second)
			stop := w.stream("f", 1+i%3)
			w.after(20 * time.Second)
			w.submit("f", 200)
			w.after(10 * time.Second)
			stop()
			w.platform.set(func() { f.resize((f.Desired + i%2) % 10) })
			w.after(20 * time.Second)
		}
		up, down := 0, 0
		list := w.log.of(t, "f")
		for _, r := range list {
			modes[r.Mode], laws[r.Policy] = true, true
			if r.Replicas > r.Before {
				up++
			} else if r.Replicas < r.Before {
				down++
			}
		}
		if len(list) < 180 || len(modes) != 4 || len(laws) != 6 || up < 3 || down < 3 || len(foreign(list)) < 3 {
			t.Errorf("%d receipts in modes %v by %v, %d up and %d down", len(list), modes, laws, up, down)
		}
	})
}
