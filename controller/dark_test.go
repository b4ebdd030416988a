package controller_test

import (
	"math"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/skeleton/signal"
)

// A farm at zero gets a worker for what waits, though no signal was ever heard of
// it (P18).
func TestWakesInTheDark(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set(func() { w.silent = true })
		w.platform.add("f", 0, "min", "0")
		w.start("A")
		w.after(2 * interval)
		w.submit("f", 3)
		w.after(interval)
		if calls := w.platform.made(); len(calls) != 1 || calls[0].n != 1 {
			t.Errorf("calls %v", calls)
		}
	})
}

// However signals go missing, nothing is scaled down, for as long as it takes,
// and it is told. Once they are back the farm goes on.
func TestDarkness(t *testing.T) {
	nan := func(_ string, s *signal.Second) {
		s.Wait, s.Service = signal.Hist{N: 1, Sum: math.NaN()}, signal.Hist{N: 1, Sum: 1, Squares: math.Inf(1)}
	}
	for name, dark := range map[string]struct {
		begin, end func(w *world)
		lasts      time.Duration
	}{
		"no dispatcher": {
			func(w *world) { w.set(func() { w.silent = true }) },
			func(w *world) { w.set(func() { w.silent = false }) },
			11 * time.Minute,
		},
		"unreadable": {
			func(w *world) { w.signals.set(func() { w.signals.err = errAway }) },
			func(w *world) { w.signals.set(func() { w.signals.err = nil }) },
			time.Minute,
		},
		"frozen": {
			func(w *world) { w.signals.set(func() { w.signals.frozen = true }) },
			func(w *world) { w.signals.set(func() { w.signals.frozen = false }) },
			11 * time.Minute,
		},
		"no numbers": {
			func(w *world) { w.signals.set(func() { w.signals.mangle = nan }) },
			func(w *world) { w.signals.set(func() { w.signals.mangle = nil }) },
			time.Minute,
		},
		"no gauges": {
			func(w *world) { w.ledgers.set(func() { w.ledgers.gaugeErr = errAway }) },
			func(w *world) { w.ledgers.set(func() { w.ledgers.gaugeErr = nil }) },
			time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.add("f", 5, "policy", "static:n=5", "interval", "10s")
				w.set(func() { w.pace = time.Second })
				c := w.start("A")
				w.settle()
				dark.begin(w)
				w.after(35 * time.Second)
				w.override(c, "f", "policy", "static:n=1") // a policy that does not look
				w.after(dark.lasts)
				if calls := w.platform.made(); len(calls) > 0 {
					t.Errorf("in the dark: %v", calls)
				}
				if h := farm(t, c, "f").Conditions["Healthy"]; h.Status || h.Reason == "" {
					t.Errorf("%+v", h)
				}
				dark.end(w)
				w.after(220 * time.Second)
				if calls := w.platform.made(); len(calls) != 1 || calls[0].n != 1 {
					t.Errorf("with signals: %v", calls)
				}
			})
		})
	}
}

// One second that holds no numbers is passed over, and not the end of anything.
func TestSecondWithoutNumbers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		spoilt := time.Now().Unix() + 20
		w.signals.mangle = func(_ string, s *signal.Second) {
			if s.Unix == spoilt {
				s.Sojourn = signal.Hist{N: 1, Sum: math.NaN(), Max: math.Inf(1)}
			}
		}
		c := w.start("A")
		stop := w.stream("f", 1)
		w.after(time.Minute)
		stop()
		if f := farm(t, c, "f"); !f.Conditions["Healthy"].Status {
			t.Errorf("%+v", f)
		}
	})
}

// A scale-down that was begun is not ended ten minutes later by another
// controller that knows nothing of these ten minutes.
func TestOldScaleDownIsNotEndedInTheDark(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 5, "policy", "static:n=5")
		a := w.start("A")
		w.settle()
		w.set(func() { w.service = time.Hour })
		w.submit("f", 5)
		w.after(time.Second)
		w.override(a, "f", "policy", "static:n=1")
		w.after(500 * time.Millisecond)
		if f := farm(t, a, "f"); f.Last.Replicas != 1 || f.Desired != 5 {
			t.Fatalf("the scale-down has not begun: %+v", f)
		}
		a.Stop()
		w.set(func() { w.silent = true })
		w.after(10 * time.Minute)
		w.start("B")
		w.after(time.Minute)
		if calls := w.platform.made(); len(calls) > 0 {
			t.Errorf("calls %v", calls)
		}
		for _, p := range w.ledgers.published() {
			if p.at.After(time.Now().Add(-time.Minute)) && p.Target != 5 {
				t.Fatalf("window of %d", p.Target)
			}
		}
	})
}

// Nor is a farm scaled down in the dark because others want its share.
func TestCapacityTakesNothingInTheDark(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("dark", 6, "policy", "static:n=6")
		w.add("f", 2, "policy", "static:n=2")
		cfg := w.config("A")
		cfg.Allocator = controller.Capacity(10)
		c := w.create(cfg)
		c.Start()
		w.settle()
		w.signals.set(func() {
			w.signals.mangle = func(farm string, s *signal.Second) {
				if farm == "dark" {
					s.Sojourn.Sum = math.NaN()
				}
			}
		})
		w.after(10 * time.Second)
		w.override(c, "f", "policy", "static:n=20")
		w.after(10 * time.Second)
		w.override(c, "f", "min", "4", "max", "20")
		w.after(10 * time.Second)
		if f := farm(t, c, "f"); f.Desired != 4 {
			t.Errorf("beside the dark one: %+v", f)
		}
		w.override(c, "f", "min", "8") // not even the minima fit
		w.after(10 * time.Second)
		for _, call := range w.platform.made() {
			if call.farm == "dark" || call.n > 8 {
				t.Errorf("%s was scaled to %d", call.farm, call.n)
			}
		}
	})
}
