package controller_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"farmhand/controller"
)

// foreign are the receipts that tell of a change by somebody else.
func foreign(list []controller.Receipt) (found []controller.Receipt) {
	for _, r := range list {
		if r.Foreign != nil {
			found = append(found, r)
		}
	}
	return found
}

// acted are the scale calls that the receipts tell of.
func acted(list []controller.Receipt) (calls []controller.Acted) {
	for _, r := range list {
		if r.Acted != nil {
			calls = append(calls, *r.Acted)
		}
	}
	return calls
}

// A scale call that fails is told, and made again at the next tick, until the
// platform works again.
func TestFailedScaleUp(t *testing.T) {
	for _, say := range []string{"429 Too Many Requests", "502 Bad Gateway"} {
		t.Run(say, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.add("f", 1).err = errors.New(say)
				c := w.start("A")
				w.after(2*interval + 500*time.Millisecond)
				w.override(c, "f", "policy", "static:n=4")
				w.after(5*interval + time.Millisecond)
				calls := w.platform.made()
				if len(calls) != 6 {
					t.Errorf("%d calls in six ticks: %v", len(calls), calls)
				}
				f := farm(t, c, "f")
				if h := f.Conditions["Healthy"]; h.Status || !strings.Contains(h.Reason, say) || f.Desired != 1 {
					t.Errorf("%+v", f)
				}
				told := acted(w.log.of(t, "f"))
				if len(told) != 5 || told[0].Error == "" || told[0].To != 4 || told[0].ReadBack != 1 {
					t.Errorf("told %+v", told)
				}
				w.platform.set(func() { w.platform.by["f"].err = nil })
				w.after(2 * interval)
				if f := farm(t, c, "f"); f.Desired != 4 || !f.Conditions["Healthy"].Status {
					t.Errorf("once the platform works: %+v", f)
				}
				if n := len(foreign(w.log.of(t, "f"))); n > 0 {
					t.Errorf("%d foreign changes", n)
				}
			})
		})
	}
}

// A call that hangs is ended after its time. Neither the loop nor other farms
// wait for it; its own farm decides nothing meanwhile.
func TestHangingScaleCall(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("hangs", 1).hang = true
		w.add("other", 1)
		c := w.start("A")
		w.after(2*interval + 500*time.Millisecond)
		w.override(c, "hangs", "policy", "static:n=3")
		w.override(c, "other", "policy", "static:n=3")
		began := time.Now()
		w.after(time.Minute)
		var hung []time.Duration
		for _, call := range w.platform.made() {
			if call.farm == "hangs" {
				hung = append(hung, call.at.Sub(began))
			} else {
				within(t, "the call for the other farm", call.at.Sub(began), 0, 10*time.Millisecond)
			}
		}
		if len(hung) < 9 || len(hung) > 16 {
			t.Errorf("calls after %s", hung)
		}
		for i := 1; i < len(hung); i++ {
			if gap := hung[i] - hung[i-1]; gap < controller.CallTimeout {
				t.Errorf("two calls at once: after %s", hung)
			}
		}
		for _, r := range w.log.of(t, "hangs") {
			if r.Busy && r.Replicas != r.Before {
				t.Errorf("decided during a call: %+v", r)
			}
		}
		list := w.log.of(t, "other")
		for i := 1; i < len(list); i++ {
			if gap := list[i].At.Sub(list[i-1].At); gap > interval+10*time.Millisecond {
				t.Errorf("the other farm's tick came %s late", gap-interval)
			}
		}
	})
}

// The platform works on what a call asked for although its answer never came:
// that is no change by somebody else.
func TestCallWhoseAnswerWasLost(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 1)
		f.hang = true
		c := w.start("A")
		w.after(2 * interval)
		w.override(c, "f", "policy", "static:n=3")
		w.after(3 * time.Second)
		w.platform.set(func() { f.resize(3); f.hang = false })
		w.after(5 * interval)
		if n := len(foreign(w.log.of(t, "f"))); n > 0 || farm(t, c, "f").Desired != 3 {
			t.Errorf("%d foreign changes; %+v", n, farm(t, c, "f"))
		}
	})
}

// A gateway that keeps to 1…5 is asked twice, since one answer may be somebody
// else's doing, then believed, and asked again after ten minutes.
func TestClampingGateway(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 1, "min", "0", "policy", "static:n=1", "interval", "10s")
		f.least, f.most = 1, 5
		w.set(func() { w.pace = time.Second })
		c := w.start("A")
		w.settle()
		w.override(c, "f", "policy", "static:n=20")
		w.after(9 * time.Minute)
		if calls := w.platform.made(); len(calls) != 2 || calls[0].n != 20 || calls[1].n != 20 {
			t.Errorf("calls up: %v", calls)
		}
		v := farm(t, c, "f")
		if v.Desired != 5 || !v.Conditions["Limited"].Status || !v.Conditions["Healthy"].Status {
			t.Errorf("%+v", v)
		}
		if told := acted(w.log.of(t, "f")); len(told) != 2 || told[0].To != 20 || told[0].ReadBack != 5 {
			t.Errorf("told %+v", told)
		}
		w.after(2 * time.Minute)
		if calls := w.platform.made(); len(calls) != 1 || calls[0].n != 20 {
			t.Errorf("after ten minutes: %v", calls)
		}

		w.override(c, "f", "policy", "threshold:down=0.5,step=9,cooldown=0") // down to 0
		w.after(time.Minute)
		calls := w.platform.made()
		if len(calls) != 2 || calls[0].n != 0 {
			t.Errorf("calls down: %v", calls)
		}
		if v := farm(t, c, "f"); v.Desired != 1 || !strings.Contains(v.Conditions["Limited"].Reason, "bounds of its own") {
			t.Errorf("%+v", v)
		}
		if n := len(foreign(w.log.of(t, "f"))); n > 0 {
			t.Errorf("%d foreign changes", n)
		}
	})
}

// A farm that no limit binds is not called limited because it is at zero.
func TestNotLimitedAtZero(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 0, "min", "0").most = 5
		c := w.start("A")
		w.after(2 * interval)
		w.override(c, "f", "policy", "static:n=20")
		w.settle()
		w.override(c, "f", "policy", "threshold:down=0.5,step=9,cooldown=0")
		w.after(2 * interval)
		if v := farm(t, c, "f"); v.Desired != 0 || v.Conditions["Limited"].Status {
			t.Errorf("%+v", v)
		}
	})
}

// What somebody else scales is adopted and told; from three times in ten minutes
// on it is an alarm that names the likely culprit.
func TestForeignChanges(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 3, "policy", "static:n=3", "interval", "5s")
		w.set(func() { w.pace = time.Second })
		c := w.start("A")
		w.after(2 * interval)
		for i := range 3 {
			w.platform.set(func() { f.resize(7 + i) })
			w.after(5*time.Second + 10*time.Millisecond)
			told := foreign(w.log.of(t, "f"))
			if len(told) != i+1 || *told[i].Foreign != (controller.Foreign{From: told[i].Foreign.From, To: 7 + i}) {
				t.Fatalf("told %+v", told)
			}
			healthy := farm(t, c, "f").Conditions["Healthy"]
			if healthy.Status != (i < 2) {
				t.Errorf("after %d changes: %+v", i+1, healthy)
			}
			if i == 2 && !strings.Contains(healthy.Reason, "com.openfaas.scale.factor") {
				t.Errorf("reason %q", healthy.Reason)
			}
			w.after(time.Minute)
		}
		w.settle()
		if f := farm(t, c, "f"); f.Desired != 3 {
			t.Errorf("its own count was not set again: %+v", f)
		}
		w.after(9 * time.Minute)
		if h := farm(t, c, "f").Conditions["Healthy"]; !h.Status {
			t.Errorf("ten minutes later: %+v", h)
		}
	})
}

// A change by somebody else is told before the next tick, and ends a scale-down.
func TestForeignChangeBetweenTicks(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 5, "policy", "static:n=5", "interval", "10s")
		c := w.start("A")
		w.settle()
		w.set(func() { w.service = time.Hour })
		w.submit("f", 5)
		w.after(time.Second)
		w.override(c, "f", "policy", "static:n=1")
		w.after(time.Second)
		if r := w.last("f"); r.Replicas != 1 {
			t.Fatalf("no scale-down is under way: %+v", r)
		}
		w.platform.set(func() { f.resize(9) })
		w.after(controller.LeaseTime / 2)
		told := foreign(w.log.of(t, "f"))
		if len(told) != 1 || told[0].Foreign.To != 9 || told[0].Before != 9 {
			t.Errorf("told %+v", told)
		}
	})
}

// What a call has done already, while its answer is on the way, is not somebody
// else's doing; and replicas that get ready meanwhile are seen.
func TestLateAnswer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 1)
		f.most, f.late = 5, 3500*time.Millisecond
		c := w.start("A")
		w.settle()
		w.override(c, "f", "policy", "static:n=20")
		w.after(2500 * time.Millisecond)
		if r := w.roster().Farms[0]; r.Ready != 5 {
			t.Errorf("%d replicas seen", r.Ready)
		}
		w.after(3 * interval)
		if n := len(foreign(w.log.of(t, "f"))); n > 0 || farm(t, c, "f").Desired != 5 {
			t.Errorf("%d foreign changes", n)
		}
	})
}

// A list that was begun before a scale call ended is older than that call's
// read-back: it must not be taken for a change by somebody else.
func TestSlowLists(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1).lag = 200 * time.Millisecond
		w.add("g", 1)
		c := w.start("A")
		w.settle()
		w.platform.set(func() { w.platform.slow = 300 * time.Millisecond })
		for n := 2; n < 8; n++ {
			w.override(c, "f", "policy", fmt.Sprint("static:n=", n)) // list, and call after 300 ms
			w.after(400 * time.Millisecond)
			w.override(c, "g", "target", "0.9") // list, during the call
			w.after(1400 * time.Millisecond)
		}
		w.platform.set(func() { w.platform.slow = 0 })
		w.after(time.Second)
		if told := foreign(w.log.of(t, "f")); len(told) > 0 {
			t.Errorf("%d foreign changes, the first %+v", len(told), told[0].Foreign)
		}
		if f := farm(t, c, "f"); f.Desired != 7 {
			t.Errorf("%+v", f)
		}
	})
}

// A platform whose read-back comes out of a cache seems to keep to what was
// before, for a moment. That is believed only until it shows the new count.
func TestCachedReadBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1).cached = 100 * time.Millisecond
		c := w.start("A")
		w.after(2 * interval)
		w.override(c, "f", "policy", "static:n=4")
		w.settle()
		if f := farm(t, c, "f"); f.Desired != 4 || f.Conditions["Limited"].Status {
			t.Errorf("%+v", f)
		}
		if n := len(foreign(w.log.of(t, "f"))); n > 0 {
			t.Errorf("%d foreign changes", n)
		}
	})
}
