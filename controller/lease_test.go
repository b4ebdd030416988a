package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"farmhand/controller"
)

// owners are who decided for a farm, in order.
func (w *world) owners(farm string) (list []string) {
	for _, r := range w.log.of(w.t, farm) {
		list = append(list, r.Controller)
	}
	return slices.Compact(list)
}

// A controller that is stopped in the middle of a tick loses its lease: the other
// one takes over, reads back, and asserts what is to be. The first, when it goes
// on, neither acts nor saves.
func TestStoppedController(t *testing.T) {
	for name, places := range map[string][]string{
		"list": {"list"}, "observe": {"observe"}, "save": {"save"}, "receipt": {"receipt"}, "publish": {"publish"}, "call": {"call", "list"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.add("f", 5, "policy", "static:n=5")
				a, stops := w.stoppable("A")
				w.settle()
				stops.stop(places...)
				w.override(a, "f", "policy", "static:n=8")
				w.after(100 * time.Millisecond)
				b, began := w.start("B"), time.Now()
				w.after(controller.LeaseTime + interval)
				calls := w.platform.made()
				if len(calls) != 1 || calls[0].n != 8 {
					t.Fatalf("calls %v", calls)
				}
				if d := calls[0].at.Sub(began); d < controller.LeaseTime/2-time.Second {
					t.Errorf("taken over after %s, while the lease held", d)
				}
				w.override(b, "f", "policy", "static:n=6")
				w.after(interval)
				w.platform.made()
				w.ledgers.published()
				fence := w.keeper.peek("f").fence

				stops.let()
				w.after(time.Minute)
				for _, call := range w.platform.made() {
					t.Errorf("a call for %d by who has no lease", call.n)
				}
				for _, p := range w.ledgers.published() {
					if p.Target != 6 {
						t.Errorf("a window of %d by who has no lease", p.Target)
					}
				}
				if w.keeper.peek("f").fence != fence {
					t.Error("the lease moved back")
				}
				if got := w.owners("f"); !slices.Equal(got, []string{"A", "B"}) {
					t.Errorf("decided by %v", got)
				}
				if va, vb := farm(t, a, "f"), farm(t, b, "f"); va.Owner != "B" || va.Last.At != vb.Last.At {
					t.Errorf("shown by A: %+v, by B: %+v", va.Last, vb.Last)
				}
				if name == "save" && w.keeper.refusals() == 0 {
					t.Error("the first one's state was not refused")
				}
			})
		})
	}
}

// A call is made only if the lease outlives it. Else it is made after the next
// decision, under a lease that was renewed.
func TestLeaseOutlivesTheCall(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		c, stops := w.stoppable("A")
		w.settle()
		stops.stop("receipt")
		w.override(c, "f", "policy", "static:n=4")
		w.after(7 * time.Second)
		stops.let()
		w.after(2 * interval)
		if calls := w.platform.made(); len(calls) != 1 {
			t.Errorf("calls %v", calls)
		}
		if told := acted(w.log.of(t, "f")); len(told) == 0 || !strings.Contains(told[0].Error, "lease") {
			t.Errorf("told %+v", told)
		}
	})
}

// Whose state is refused has lost the farm: nothing is told the dispatchers, and
// nothing called.
func TestRefusedSave(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 5, "policy", "static:n=5")
		c, stops := w.stoppable("A")
		w.settle()
		stops.stop("save")
		w.override(c, "f", "policy", "static:n=9")
		w.after(300 * time.Millisecond)
		w.keeper.set(func() {
			f := w.keeper.of("f")
			f.owner, f.until, f.state = "B", w.now().Add(30*time.Second), nil
			f.fence++
		})
		receipts := len(w.log.of(t, "f"))
		w.ledgers.published()
		stops.let()
		w.after(20 * time.Second)
		if calls, n := w.platform.made(), len(w.log.of(t, "f"))-receipts; len(calls) > 0 || n > 0 {
			t.Errorf("calls %v, %d receipts", calls, n)
		}
		if list := w.ledgers.published(); len(list) > 0 {
			t.Errorf("windows %+v", list)
		}
		if n := w.keeper.refusals(); n != 1 || w.keeper.peek("f").state != nil {
			t.Errorf("%d saves were refused", n)
		}
	})
}

// Two controllers share the farms: each farm has one owner as long as that one
// lives, and its own share of the ticks is not disturbed. Who is stopped properly
// hands over at once.
func TestTwoControllers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		names := []string{}
		for i := range 6 {
			names = append(names, fmt.Sprint("f", i))
		}
		for _, name := range names[:3] {
			w.add(name, 1)
		}
		w.add("rare", 1, "interval", "30s")
		a := w.start("A")
		cfg := w.config("B")
		own := &ledgers{Store: w.ledgers.Store}
		cfg.Ledgers = own
		b := w.create(cfg)
		b.Start()
		w.after(10 * time.Millisecond)
		for _, name := range names[3:] {
			w.add(name, 1)
		}
		w.after(20 * time.Second)
		for _, name := range names {
			if got := w.owners(name); len(got) != 1 {
				t.Errorf("%s was decided for by %v", name, got)
			}
			list := w.log.of(t, name)
			for i := 1; i < len(list); i++ {
				within(t, "the next tick of "+name, list[i].At.Sub(list[i-1].At), interval, 10*time.Millisecond)
			}
			if va, vb := farm(t, a, name), farm(t, b, name); va.Owner != vb.Owner || va.Last.At != vb.Last.At || va.Conditions["Healthy"] != vb.Conditions["Healthy"] {
				t.Errorf("shown by A: %+v, by B: %+v", va, vb)
			}
		}
		if na, nb := w.ledgers.lists(), own.lists(); na < 3 || nb > 0 {
			t.Errorf("%d rosters by A and %d by B", na, nb)
		}
		w.after(20 * time.Second)
		if got := w.owners("rare"); len(got) != 1 {
			t.Errorf("the farm with long intervals was decided for by %v", got)
		}
		a.Stop()
		stopped := w.now()
		w.after(interval + 10*time.Millisecond)
		for _, name := range names {
			if last := w.log.of(t, name); last[len(last)-1].Controller != "B" || last[len(last)-1].At.Before(stopped) {
				t.Errorf("%s was not handed over", name)
			}
		}
		if err := a.Step(background); err == nil {
			t.Error("a stopped controller stepped")
		}
		w.after(20 * time.Second)
		if got := w.owners(names[0]); !slices.Equal(got, []string{"A", "B"}) {
			t.Errorf("decided by %v", got)
		}
	})
}

// Redis TIME alone counts for what is kept, however far the clocks of controllers
// are from it.
func TestClocksApart(t *testing.T) {
	for _, shift := range []time.Duration{-30 * time.Second, 30 * time.Second} {
		t.Run(shift.String(), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.shift = shift
				w.add("f", 0, "min", "0", "max", "3")
				a := w.start("A")
				w.start("B")
				if err := a.Override(background, "f", map[string]*string{"target": ptr("0.8")}, 20*time.Second); err != nil {
					t.Fatal(err)
				}
				w.after(11 * time.Second)
				w.submit("f", 1)
				w.after(300 * time.Millisecond)
				if calls := w.platform.made(); len(calls) != 1 {
					t.Errorf("calls %v", calls)
				}
				w.after(5 * time.Second)
				if o := w.last("f").Observation; o.Target != 0.8 || o.At.Sub(w.now()).Abs() > interval || !o.StartupLag.Known() || o.StartupLag > 2 {
					t.Errorf("observation %+v", o)
				}
				w.after(5 * time.Second)
				if o := w.last("f").Observation; o.Target != 0.95 {
					t.Errorf("the override holds still: %+v", o)
				}
				if got := w.owners("f"); len(got) != 1 {
					t.Errorf("decided by %v", got)
				}
			})
		})
	}
}

// Redis TIME that is set, or runs a little behind, delays nothing for long, loses
// nothing and scales nothing down that should stay.
func TestRedisTimeJumps(t *testing.T) {
	for _, jump := range []time.Duration{-30 * time.Second, -20 * time.Millisecond, 20 * time.Millisecond, 30 * time.Second} {
		t.Run(jump.String(), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.jumps = true
				w.set(func() { w.pace = 500 * time.Millisecond })
				w.add("f", 5, "policy", "static:n=5")
				c := w.start("A")
				w.settle()
				w.set(func() { w.service = time.Hour })
				w.submit("f", 5)
				w.after(time.Second)
				w.override(c, "f", "policy", "static:n=1")
				w.after(time.Second)
				w.set(func() { w.shift += jump })
				w.after(interval - 700*time.Millisecond)
				calls := w.platform.made()
				if jump.Abs() < time.Second && (len(calls) != 1 || calls[0].n != 1) {
					t.Errorf("calls %v", calls)
				}
				w.after(time.Minute)
				w.override(c, "f", "policy", "static:n=7")
				w.after(300 * time.Millisecond)
				if calls := w.platform.made(); len(calls) == 0 || calls[len(calls)-1].n != 7 {
					t.Errorf("a minute later: %v", calls)
				}
				if v := farm(t, c, "f"); !v.Conditions["Healthy"].Status || v.Owner != "A" {
					t.Errorf("%+v", v)
				}
			})
		})
	}
}

func ptr(s string) *string { return &s }

// last is the newest receipt of a farm.
func (w *world) last(farm string) controller.Receipt {
	list := w.log.of(w.t, farm)
	return list[len(list)-1]
}
