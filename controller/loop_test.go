package controller_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/policy"
	"farmhand/skeleton/signal"
)

func TestNewNeedsAll(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for name, spoil := range map[string]func(*controller.Config){
			"platform": func(c *controller.Config) { c.Platform = nil },
			"ledgers":  func(c *controller.Config) { c.Ledgers = nil },
			"signals":  func(c *controller.Config) { c.Signals = nil },
			"keeper":   func(c *controller.Config) { c.Keeper = nil },
			"log":      func(c *controller.Config) { c.Receipts = nil },
		} {
			cfg := w.config("A")
			spoil(&cfg)
			if _, err := controller.New(cfg); err == nil {
				t.Errorf("a controller without %s", name)
			}
		}
		a, b := w.create(w.config("")), w.create(w.config(""))
		w.after(time.Second)
		if c := w.create(w.config("")); a.Status().Owner == "" || c.Status().Owner == b.Status().Owner {
			t.Errorf("owner %q", c.Status().Owner)
		}
		if err := a.Override(background, "f", map[string]*string{"slots": ptr("1")}, 0); !errors.Is(err, controller.ErrNoFarm) {
			t.Error(err)
		}
		a.Stop()
		a.Stop()
	})
}

// Ticked tells of each decision how late it came.
func TestTicked(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		var mu sync.Mutex
		var late []time.Duration
		cfg := w.config("A")
		cfg.Ticked = func(_ string, d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			late = append(late, d)
		}
		w.create(cfg).Start()
		w.after(4*interval + time.Millisecond)
		w.away(errAway)
		w.after(2*interval + 500*time.Millisecond)
		w.away(nil)
		w.after(2 * interval)
		mu.Lock()
		defer mu.Unlock()
		if n := len(w.log.of(t, "f")); n != len(late) {
			t.Errorf("told of %d of %d decisions", len(late), n)
		}
		for i, d := range late {
			switch {
			case i == 5: // the first one after Redis was away: due at 10 s, tried every second since
				within(t, "that tick", d, 3*time.Second, time.Second)
			case d > 10*time.Millisecond:
				t.Errorf("tick %d was %s late", i, d)
			}
		}
	})
}

// What replicas use is asked now and then, beside the loop, and unknown where the
// platform does not tell.
func TestUsage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		w.platform.usage = controller.Usage{CPU: 1.5, Memory: 64}
		w.start("A")
		observed := func() policy.Observation { w.after(12 * time.Second); return w.last("f").Observation }
		if o := observed(); o.CPU != 1.5 || o.Memory != 64 {
			t.Errorf("CPU %g, memory %g", o.CPU, o.Memory)
		}
		w.platform.set(func() { w.platform.usageErr = errors.New("away") })
		if o := observed(); o.CPU.Known() || o.Memory.Known() {
			t.Errorf("CPU %g, memory %g", o.CPU, o.Memory)
		}
		w.platform.set(func() { w.platform.usageErr, w.platform.usage.CPU = nil, 2 })
		if o := observed(); o.CPU != 2 {
			t.Errorf("CPU %g", o.CPU)
		}
		w.platform.set(func() { w.platform.usageHangs = true })
		w.platform.asked()
		before := len(w.log.of(t, "f"))
		if o := observed(); o.CPU.Known() {
			t.Errorf("CPU %g", o.CPU)
		}
		if n, asked := len(w.log.of(t, "f"))-before, w.platform.asked(); n < 5 || asked > 2 {
			t.Errorf("%d ticks beside %d questions that hang", n, asked)
		}
	})
}

// A farm whose new work cannot be watched for is found at its ticks; the watch is
// tried again. A farm that comes back is watched as before.
func TestWatchAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 0, "min", "0", "max", "3")
		w.ledgers.watchErr = errAway
		w.start("A")
		w.settle()
		w.submit("f", 1)
		w.after(interval)
		if calls := w.platform.made(); len(calls) != 1 {
			t.Errorf("at the tick: %v", calls)
		}
		w.ledgers.set(func() { w.ledgers.watchErr = nil })
		w.platform.remove("f")
		w.after(3 * time.Second)
		w.platform.set(func() { f.resize(0); w.platform.by["f"] = f })
		w.after(100 * time.Second) // the task is done, and the farm at zero again
		if calls := w.platform.made(); len(calls) != 2 || calls[1].n != 0 {
			t.Fatalf("calls %v", calls)
		}
		w.submit("f", 1)
		w.after(300 * time.Millisecond)
		if calls := w.platform.made(); len(calls) != 1 {
			t.Errorf("woken: %v", calls)
		}
	})
}

// A watch that failed is tried again while the farm sleeps.
func TestWatchIsTriedAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 0, "min", "0", "max", "3")
		w.ledgers.watchErr = errAway
		w.start("A")
		w.settle()
		w.ledgers.set(func() { w.ledgers.watchErr = nil })
		w.after(2 * interval)
		w.submit("f", 1)
		w.after(300 * time.Millisecond)
		if calls := w.platform.made(); len(calls) != 1 {
			t.Errorf("woken: %v", calls)
		}
	})
}

// Each service time goes into the log once, however the seconds are read: the
// newest one grows still when it is read first.
func TestServiceTimesAreToldOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		w.set(func() { w.silent = true })
		w.after(500 * time.Millisecond)
		a := w.start("A")
		w.after(690 * time.Millisecond) // ticks fall between the halves of a second
		const n = 20
		for i := range n {
			if i == n/2 { // another one goes on
				a.Stop()
				w.start("B")
				w.after(990 * time.Millisecond)
			}
			for half := range 2 {
				at := w.now()
				sec := signal.Second{Unix: at.Unix(), Snapshot: signal.Snapshot{At: at}}
				for range half + 1 {
					sec.Service.Add(0.1)
				}
				w.signals.set(func() { w.signals.put("f", sec) })
				w.after(500 * time.Millisecond)
			}
		}
		w.after(2 * interval)
		w.log.set(func() {
			if w.log.served != 2*n {
				t.Errorf("%d of %d service times", w.log.served, 2*n)
			}
		})
	})
}

// What a policy remembers is its own: another one begins with nothing.
func TestMemoryBelongsToAPolicy(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 5, "policy", "threshold:cooldown=0", "min", "3")
		c := w.start("A")
		w.settle()
		if r := w.last("f"); r.Memory.Policy["stepped"] == 0 || r.Memory.Rule["at0"] == 0 {
			t.Errorf("%v", r.Memory)
		}
		for range 2 {
			w.override(c, "f", "policy", "threshold:cooldown=1000")
			w.after(300 * time.Millisecond)
			if r := w.last("f"); len(r.Memory.Policy) > 0 || r.Memory.Rule["at0"] == 0 {
				t.Errorf("%v", r.Memory)
			}
			w.override(c, "f", "policy", "")
			w.after(interval)
		}
	})
}
