package controller_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/policy"
)

// An override holds from the next tick on, which comes at once, until it is
// removed; what is below it shows again.
func TestPatch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "slots", "4", "target", "0.9")
		c := w.start("A")
		h := c.Handler()
		w.settle()
		code, body := ask(t, h, "PATCH", "/?farm=f", `{"slots": 6, "policy": "static:n=3", "farmhand.deadline": "2x", "service": "1s"}`)
		if code != 200 {
			t.Fatalf("%d %v", code, body)
		}
		w.after(300 * time.Millisecond)
		if calls := w.platform.made(); len(calls) != 1 || calls[0].n != 3 {
			t.Errorf("calls %v", calls)
		}
		if s := w.roster().Farms[0].Settings; s.Slots != 6 || s.DeadlineFactor != 2 || s.Target != 0.9 {
			t.Errorf("dispatchers read %+v", s)
		}
		if o := w.last("f").Observation; o.Slots != 6 || o.Deadline != 2 {
			t.Errorf("observed %+v", o)
		}
		code, body = ask(t, h, "PATCH", "/?farm=f", `{"slots": null, "target": "0.8", "max": null}`)
		shown := body["settings"].(map[string]any)
		for name, want := range map[string]string{"slots": "4 annotation", "target": "0.8 override", "policy": "static:n=3 override", "min": "1 default"} {
			s := shown[name].(map[string]any)
			if got := s["value"].(string) + " " + s["origin"].(string); code != 200 || got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	})
}

// What is wrong is named, with what would be right, and nothing at all of the
// request is done.
func TestPatchRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "timeout", "20s", "max", "8", "budget", "much").Env = map[string]string{"exec_timeout": "30s"}
		c := w.start("A")
		w.override(c, "f", "target", "0.8")
		before := w.keeper.peek("f").overrides
		for body, field := range map[string]string{
			`{"target": "0.7", "slots": "none"}`:              "slots",
			`{"target": "0.7", "slots": 0}`:                   "slots",
			`{"target": "0.7", "colour": "red"}`:              "colour",
			`{"target": "0.7", "worker": "true"}`:             "worker",
			`{"target": "0.7", "policy": "magic"}`:            "policy",
			`{"target": "0.7", "policy": "static:n=x"}`:       "policy",
			`{"target": "0.7", "mode": "off"}`:                "mode",
			`{"target": "0.7", "min": 9}`:                     "min",
			`{"target": "0.7", "timeout": "40s"}`:             "exec_timeout",
			`{"target": "0.7", "slots": {"n": 1}}`:            "slots",
			`{"target": "0.7", "slots": true}`:                "slots",
			`{"target": "0.7", "for": "-1h"}`:                 "for",
			`{"target": "0.7", "for": null}`:                  "for",
			`{"target": "0.7", "for": 5}`:                     "for",
			`{"target": "0.7"} {}`:                            "body",
			`{"budget": "much"}`:                              "budget",
			`{"budget": "more"}`:                              "budget",
			`{"for": "1h"}`:                                   "body",
			`{}`:                                              "body",
			`null`:                                            "body",
			`[]`:                                              "body",
			`{"target"`:                                       "body",
			``:                                                "body",
			`{"slots": "` + strings.Repeat("9", 1<<17) + `"}`: "body",
		} {
			code, answer := ask(t, c.Handler(), "PATCH", "/?farm=f", body)
			if code != 422 || answer["field"] != field || answer["detail"] == "" {
				t.Errorf("%.60s: %d %v", body, code, answer)
			}
			if now := w.keeper.peek("f").overrides; !bytes.Equal(now, before) {
				t.Fatalf("%.60s changed %s to %s", body, before, now)
			}
		}
		// What was wrong before does not stand in the way, nor does removing.
		if code, answer := ask(t, c.Handler(), "PATCH", "/?farm=f", `{"slots": 3, "timeout": "25s"}`); code != 200 {
			t.Errorf("%d %v", code, answer)
		}
		w.platform.set(func() { w.platform.by["f"].Annotations["farmhand.slots"] = "none" })
		w.after(interval)
		if code, answer := ask(t, c.Handler(), "PATCH", "/?farm=f", `{"slots": null, "timeout": null}`); code != 200 {
			t.Errorf("removing: %d %v", code, answer)
		}
	})
}

// Overrides that another controller wrote in between are not lost.
func TestPatchesAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		a, b := w.start("A"), w.start("B")
		w.keeper.set(func() {
			w.keeper.between = func() { w.override(b, "f", "slots", "3") }
		})
		w.override(a, "f", "target", "0.8")
		w.after(interval + 100*time.Millisecond)
		if o := w.last("f").Observation; o.Slots != 3 || o.Target != 0.8 {
			t.Errorf("%d slots, target %g", o.Slots, o.Target)
		}
	})
}

// A pause ends by itself. Until then nothing is decided, whatever comes; the
// dispatchers go on (P87).
func TestPaused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "max", "9", "service", "400ms")
		c := w.start("A")
		w.settle()
		if code, body := ask(t, c.Handler(), "PATCH", "/?farm=f", `{"mode": "paused", "for": "30s"}`); code != 200 {
			t.Fatalf("%d %v", code, body)
		}
		w.after(300 * time.Millisecond)
		w.submit("f", 500)
		w.after(29 * time.Second)
		if calls := w.platform.made(); len(calls) > 0 {
			t.Errorf("calls %v", calls)
		}
		v := farm(t, c, "f")
		if p := v.Conditions["Paused"]; v.Mode != controller.Paused || !p.Status || !strings.Contains(p.Reason, "paused") {
			t.Errorf("%+v", v)
		}
		if r := w.last("f"); !r.Wish.Hold || r.Replicas != 1 {
			t.Errorf("%+v", r)
		}
		w.after(interval + time.Second)
		if calls := w.platform.made(); len(calls) != 1 {
			t.Errorf("after the pause: %v", calls)
		}
		if v := farm(t, c, "f"); v.Mode != controller.Act || v.Conditions["Paused"].Status || v.BudgetUsed < 30./3600 {
			t.Errorf("%+v", v)
		}
		w.override(c, "f", "target", "0.9")
		if raw := w.keeper.peek("f").overrides; bytes.Contains(raw, []byte("paused")) {
			t.Errorf("what is over is kept: %s", raw)
		}
	})
}

// A scale-down that waits for its leases is given up by a pause, also by one that
// another controller took note of.
func TestPauseEndsAScaleDown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 5, "policy", "static:n=5", "interval", "4s")
		a, b := w.start("A"), w.start("B")
		w.settle()
		w.set(func() { w.service = 2500 * time.Millisecond })
		w.submit("f", 5)
		w.after(200 * time.Millisecond)
		w.override(a, "f", "policy", "static:n=1")
		w.after(300 * time.Millisecond)
		w.override(b, "f", "mode", "paused")
		w.after(10 * time.Second)
		if calls := w.platform.made(); len(calls) > 0 {
			t.Errorf("calls %v", calls)
		}
		if f := w.roster().Farms[0]; f.Target != 5 {
			t.Errorf("the window stays at %d replicas", f.Target)
		}
	})
}

// In a dry run all is decided and told, and nothing done or spent (P87).
func TestDryRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 5, "min", "7", "max", "9", "budget", "0.001", "service", "400ms")
		c := w.start("A")
		w.override(c, "f", "mode", "dry-run")
		w.after(time.Second)
		w.platform.made()
		w.submit("f", 500)
		w.platform.set(func() { w.platform.by["f"].resize(5) }) // outside of its bounds
		w.after(20 * interval)
		if calls := w.platform.made(); len(calls) > 0 {
			t.Errorf("calls %v", calls)
		}
		r := w.last("f")
		if r.Wish.Replicas < 5 || r.Outcome.Hold || r.Replicas != 5 || r.State.Spent > 0 {
			t.Errorf("wish %+v, outcome %+v, %d replicas, guard %+v", r.Wish, r.Outcome, r.Replicas, r.State)
		}
	})
}

// In the shadow the rule scales, and what the farm's policy wishes is told (P87).
func TestShadow(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 2, "min", "2", "policy", "static:n=9")
		c := w.create(w.config("A"))
		step(t, c)
		w.override(c, "f", "mode", "shadow")
		w.settle()
		w.platform.set(func() { w.platform.by["f"].resize(3) })
		w.after(interval)
		step(t, c)
		w.after(time.Second)
		r := w.last("f")
		if calls := w.platform.made(); len(calls) != 1 || calls[0].n != 2 || r.Wish.Replicas != 9 || r.Rule.Replicas != 2 || !strings.HasPrefix(r.Why(), controller.DefaultPolicy) {
			t.Errorf("calls %v; %s; %+v", calls, r.Why(), r.Verdict)
		}
		if p := farm(t, c, "f").Conditions; !p["Fallback"].Status || p["Paused"].Status {
			t.Errorf("%+v", p)
		}
		if _, err := policy.New(r.Fallback); err != nil {
			t.Error(err)
		}
	})
}
