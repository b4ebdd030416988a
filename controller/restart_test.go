package controller_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"farmhand/controller"
)

// crash ends a controller that cannot even give back its leases.
func (w *world) crash(c *controller.Controller) {
	w.keeper.set(func() { w.keeper.err = errAway })
	c.Stop()
	w.keeper.set(func() { w.keeper.err = nil })
}

// What a controller remembers of a farm outlives it: tokens, budget, windows,
// levels, the lag, what the policies know, what the platform did. (That the
// guard and the policies go on exactly where they were, sound shows.)
func TestCrash(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 1, "min", "0", "max", "20", "budget", "10", "policy", "threshold:cooldown=300", "service", "400ms")
		f.most = 5
		a := w.start("A")
		w.settle()
		stop := w.stream("f", 1)
		w.after(30 * time.Second)
		for n := range 3 { // somebody else
			w.platform.set(func() { f.resize(1 + n%2) })
			w.after(interval)
		}
		w.override(a, "f", "policy", "static:n=12") // is clamped, and remembered
		w.after(2 * interval)
		w.override(a, "f", "policy", "")
		w.after(30 * time.Second)
		w.platform.made()
		before := w.last("f")
		w.crash(a)
		w.after(500 * time.Millisecond)
		b := w.start("B")
		w.after(controller.LeaseTime + interval)
		stop()

		var after controller.Receipt
		for _, r := range w.log.of(t, "f") {
			if r.Controller == "B" {
				after = r
				break
			}
		}
		if gap := after.At.Sub(before.At); gap < controller.LeaseTime-interval || gap > controller.LeaseTime+2*interval {
			t.Errorf("taken over after %s", gap)
		}
		v := controller.Decide(before.Inputs)
		if after.Seq != before.Seq+1 || !cmp.Equal(after.State, v.Next) || !cmp.Equal(after.Memory, v.After) {
			t.Errorf("receipt %d after %d; guard %+v after %+v; memory %v after %v", after.Seq, before.Seq, after.State, v.Next, after.Memory, v.After)
		}
		if s := after.State; s.Used < 60 || s.Steady < 60 || s.Spent == 0 && after.Memory.Policy["stepped"] == 0 {
			t.Errorf("there was nothing to remember: %+v, %v", s, after.Memory)
		}
		o := after.Observation
		if o.Long.Covered < 100 || o.StartupLag != before.Observation.StartupLag || !o.StartupLag.Known() || o.Level.Age < before.Observation.Level.Age || o.Level.Rate < 5 {
			t.Errorf("observed %+v", o)
		}
		if o.Max != 5 {
			t.Error("it was forgotten that the platform keeps to 5")
		}
		if h := farm(t, b, "f").Conditions["Healthy"]; h.Status {
			t.Error("the changes by somebody else are forgotten")
		}
	})
}

// A scale-down under way is ended by the next controller.
func TestCrashDuringScaleDown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 5, "policy", "static:n=5")
		a := w.start("A")
		w.settle()
		w.set(func() { w.service = time.Hour })
		w.submit("f", 5)
		w.after(time.Second)
		w.override(a, "f", "policy", "static:n=1")
		w.after(500 * time.Millisecond)
		w.crash(a)
		if calls := w.platform.made(); len(calls) > 0 {
			t.Fatalf("called already: %v", calls)
		}
		spent := w.last("f").Outcome.Hold
		w.start("B")
		w.after(controller.LeaseTime + interval)
		if calls := w.platform.made(); len(calls) != 1 || calls[0].n != 1 {
			t.Errorf("calls %v", calls)
		}
		if r := w.last("f"); r.Foreign != nil || r.State.Spent > 1 || spent {
			t.Errorf("paid twice: %+v", r.State)
		}
	})
}

// A call that a controller made before it crashed is no change by somebody else
// to the next one, and one that it did not come to make is made.
func TestCrashAroundACall(t *testing.T) {
	for name, arrives := range map[string]bool{"made": true, "not made": false} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				f := w.add("f", 1)
				a := w.start("A")
				w.settle()
				w.platform.set(func() { f.hang = true })
				w.override(a, "f", "policy", "static:n=4")
				w.after(300 * time.Millisecond)
				w.crash(a)
				w.platform.set(func() {
					f.hang = false
					if arrives {
						f.resize(4)
					}
				})
				if calls := w.platform.made(); len(calls) != 1 {
					t.Fatalf("calls %v", calls)
				}
				b := w.start("B")
				w.after(controller.LeaseTime + interval)
				if calls := w.platform.made(); len(calls) == 0 == !arrives {
					t.Errorf("calls %v", calls)
				}
				if v := farm(t, b, "f"); v.Desired != 4 || len(foreign(w.log.of(t, "f"))) > 0 {
					t.Errorf("%+v", v)
				}
			})
		})
	}
}

// A state that cannot be read is that of a new farm.
func TestUnreadableState(t *testing.T) {
	for _, raw := range []string{"{", "null", `{"version":99,"seq":7}`, `{"version":1,"memory":{"policy":{"wish0":1e9}}}`, "[]"} {
		t.Run(raw, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.add("f", 2, "policy", "static:n=3")
				w.keeper.of("f").state = []byte(raw)
				w.start("A")
				w.settle()
				if r := w.last("f"); r.Seq < 2 || r.Seq > 4 || r.Replicas != 3 {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}
