package controller_test

import (
	"strings"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/policy"
	"farmhand/policy/guard"
)

// A farm without a champion is scaled by the rule, and says so. What is promoted acts
// within one interval, whenever that is; what is rolled back ends as soon.
func TestPromotion(t *testing.T) {
	for _, every := range []time.Duration{time.Second, interval, 10 * time.Second} {
		for phase := every / 8; phase < every; phase += every / 4 {
			t.Run(every.String()+"/"+phase.String(), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					w.add("f", 1, "policy", "learned", "interval", every.String())
					c := w.teach("A")
					w.after(3*every + 500*time.Millisecond)
					r := w.last("f")
					if r.By != controller.DefaultPolicy || !strings.Contains(r.Why(), "no champion yet; the rule decides: ") {
						t.Errorf("%s by %s", r.Why(), r.By)
					}
					if f := farm(t, c, "f").Conditions[controller.Fallback]; !f.Status || f.Reason != "the farm has no champion yet" {
						t.Errorf("fallback %+v", f)
					}
					w.after(phase)
					w.platform.made()
					for _, p := range []*pupil{{name: "aaaa", n: 5}, {name: "bbbb", n: 7}} {
						promoted := time.Now()
						w.registry.promote("f", p)
						w.after(every)
						calls := w.platform.made()
						if len(calls) != 1 || calls[0].n != p.n || calls[0].at.Sub(promoted) > every {
							t.Fatalf("%s was promoted at %s: calls %v", p.name, promoted, calls)
						}
						w.after(every)
						if v := farm(t, c, "f"); v.Learned.Version != "learned:"+p.name || v.Learned.Origin != "champion" || v.Conditions[controller.Fallback].Status {
							t.Errorf("%+v, %+v", v.Learned, v.Conditions[controller.Fallback])
						}
						w.platform.made()
					}
					w.registry.set(func() { w.registry.champions["f"] = ""; w.registry.revision++ })
					w.after(every)
					if r := w.last("f"); r.By != controller.DefaultPolicy || r.Learned.Version != "" {
						t.Errorf("after the roll-back %s decides", r.By)
					}
				})
			})
		}
	}
}

// Where there is a default policy, it decides for farms without a champion.
func TestDefaultPolicy(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "policy", "learned")
		w.add("g", 1, "policy", "learned:aaaa")
		w.registry.set(func() { w.registry.pupils["eeee"] = &pupil{name: "eeee", n: 4} })
		cfg := w.learning("A")
		cfg.Default = []byte("eeee")
		c := w.create(cfg)
		c.Start()
		w.settle()
		for _, name := range []string{"f", "g"} {
			v := farm(t, c, name)
			if v.Desired != 4 || v.Learned.Version != "learned:eeee" || v.Learned.Origin != "default" || v.Learned.Note == "" {
				t.Errorf("%s: %d, %+v", name, v.Desired, v.Learned)
			}
		}
		w.registry.promote("f", &pupil{name: "bbbb", n: 6})
		w.registry.promote("h", &pupil{name: "aaaa", n: 2})
		w.settle()
		w.settle()
		for name, want := range map[string]string{"f": "champion", "g": "version"} {
			if v := farm(t, c, name); v.Learned.Origin != want {
				t.Errorf("%s: %d, %+v", name, v.Desired, v.Learned)
			}
		}
		cfg.Default = []byte("ffff")
		if _, err := controller.New(cfg); err == nil || !strings.Contains(err.Error(), "default policy") {
			t.Errorf("a default that is no policy: %v", err)
		}
	})
}

// While the registry is away, hangs or has damaged a version, the last good policy
// stays, what is wrong is said, and no decision waits (P86: corrupt weights).
func TestBadRegistry(t *testing.T) {
	bad := &pupil{name: "bbbb", n: 9}
	for name, spoil := range map[string]func(*registry){
		"away":    func(r *registry) { r.err = errAway; r.champions["f"] = "bbbb"; r.revision++ },
		"hangs":   func(r *registry) { r.hang = true },
		"damaged": func(r *registry) { r.damaged, r.champions["f"] = "bbbb", "bbbb"; r.revision++ },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.add("f", 1, "policy", "learned")
				w.registry.promote("g", bad)
				w.registry.promote("f", &pupil{name: "aaaa", n: 5})
				cfg := w.learning("A")
				var late time.Duration
				ticks := 0
				cfg.Ticked = func(_ string, by time.Duration) { w.set(func() { late = max(late, by); ticks++ }) }
				c := w.create(cfg)
				c.Start()
				w.settle()
				w.set(func() { ticks = 0 })
				w.registry.set(func() { spoil(w.registry); w.registry.reads = 0 })
				w.after(time.Minute)
				v := farm(t, c, "f")
				if v.Desired != 5 || v.Learned.Version != "learned:aaaa" || !strings.Contains(v.Learned.Note, "cannot be had") {
					t.Errorf("%d, %+v", v.Desired, v.Learned)
				}
				w.set(func() {
					if late > 10*time.Millisecond || ticks < 29 || ticks > 31 {
						t.Errorf("%d decisions in a minute, up to %s late", ticks, late)
					}
				})
				w.registry.set(func() {
					if n := w.registry.reads; n > 15 {
						t.Errorf("a file was read %d times", n)
					}
				})
				w.registry.set(func() { w.registry.err, w.registry.hang = nil, false })
				w.registry.promote("f", &pupil{name: "cccc", n: 7}) // as soon as ever
				w.after(interval + 2*time.Second)                   // a call that hangs takes so long
				if v := farm(t, c, "f"); v.Desired != 7 || v.Learned.Note != "" {
					t.Errorf("afterwards %d, %+v", v.Desired, v.Learned)
				}
			})
		})
	}
}

// A controller that begins waits for the champion, but not for a registry that does
// not answer.
func TestChampionIsAwaited(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 6, "policy", "learned")
		w.registry.promote("f", &pupil{name: "aaaa", n: 6})
		w.registry.set(func() { w.registry.hang = true })
		w.teach("A")
		if r := w.last("f"); !r.Learned.Loading || r.Replicas != 6 {
			t.Errorf("%s: %d", r.Why(), r.Replicas)
		}
		w.after(3 * interval)
		if r := w.last("f"); r.By != controller.DefaultPolicy || !strings.Contains(r.Why(), "cannot be had") {
			t.Errorf("%s", r.Why())
		}
		w.registry.set(func() { w.registry.hang = false })
		w.after(3 * interval)
		if r := w.last("f"); r.By != "learned:aaaa" {
			t.Errorf("%s", r.Why())
		}
	})
}

// What calls for a hand-back at once is handed back in the decision that shows it, and
// strange observations in the third; the rule decides in the same decision (P86: no
// numbers, an inference that takes too long).
func TestHandBack(t *testing.T) {
	for cause, p := range map[string]pupil{
		guard.CauseNaN:     {n: -1},
		guard.CauseSlow:    {n: 5, takes: 6 * time.Millisecond},
		guard.CauseVersion: {n: 5, made: 99},
		guard.CauseStrange: {n: 5},
	} {
		t.Run(cause, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				p, strange := p, time.Now().Add(20*time.Second)
				p.name = "aaaa"
				if cause == guard.CauseStrange {
					p.judge = func(o *policy.Observation) (int, float64) {
						if o.At.Before(strange) {
							return 5, guard.StrangeAfter
						}
						return 5, 1
					}
				}
				w.add("f", 1, "policy", "learned")
				w.registry.promote("f", &p)
				c, scrape := w.measured(w.learning("A"))
				c.Start()
				w.after(30 * time.Second)
				var back *controller.Receipt
				spoilt := 0 // decisions of the policy that called for a hand-back
				for _, r := range w.log.of(t, "f") {
					switch {
					case back != nil && (r.By != "static:n=3" || r.HandedBack != nil):
						t.Errorf("afterwards %s", r.Why())
					case back == nil && r.HandedBack != nil:
						back = &r
					case r.By == "learned:aaaa" && (cause != guard.CauseStrange || !r.At.Before(strange)):
						spoilt++
					}
				}
				if back == nil || back.HandedBack.Cause != cause || back.By != "static:n=3" || back.Wish.Replicas != 3 || !strings.Contains(back.Why(), "handed back for 30m0s") {
					t.Fatalf("%+v", back)
				}
				if want := map[string]int{guard.CauseStrange: guard.StrangeTicks - 1}[cause]; spoilt != want {
					t.Errorf("it decided %d times before it was handed back, want %d", spoilt, want)
				}
				v := farm(t, c, "f")
				if f := v.Conditions[controller.Fallback]; v.Desired != 3 || !f.Status || !strings.Contains(f.Reason, "handed back") || !v.Hand.Back() {
					t.Errorf("%d, %+v, %+v", v.Desired, f, v.Hand)
				}
				expect(t, scrape(), map[string]any{`hand_backs_total{farm="f",reason="` + cause + `"}`: 1, `hand_backs_total{farm="f",reason="late"}`: 0, `conditions{farm="f",state="fallback"}`: 1})
			})
		})
	}
}

// A hand-back outlives its controller; its pause ends, and a promotion ends it.
func TestHandBackOutlivesAController(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "policy", "learned")
		w.registry.promote("f", &pupil{name: "aaaa", n: -1})
		a := w.teach("A")
		w.settle()
		began := time.Now()
		w.crash(a)
		w.after(10 * time.Minute)
		w.teach("B")
		w.after(19 * time.Minute)
		if r := w.last("f"); r.Controller != "B" || r.By != "static:n=3" || r.Hand.Pause != 1800 {
			t.Errorf("%s: %s, %+v", r.Controller, r.Why(), r.Hand)
		}
		w.after(2 * time.Minute)
		if r := w.last("f"); r.Hand.Pause != 3600 || r.By != "static:n=3" { // it came back, and was handed back again
			t.Errorf("after %s: %s, %+v", time.Since(began), r.Why(), r.Hand)
		}
		w.registry.promote("f", &pupil{name: "bbbb", n: 5})
		w.settle()
		if r := w.last("f"); r.By != "learned:bbbb" || r.Hand.Pause != 0 {
			t.Errorf("after a promotion: %s, %+v", r.Why(), r.Hand)
		}
	})
}

// Whoever promotes a policy again that was handed back wants to see it act: it does
// within one interval, and the next hand-back is as short as the first.
func TestPromotedAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		mended := time.Now().Add(time.Minute)
		p := &pupil{name: "aaaa", judge: func(o *policy.Observation) (int, float64) {
			if o.At.Before(mended) {
				return -1, 0
			}
			return 5, 0
		}}
		w.add("f", 1, "policy", "learned")
		w.registry.promote("f", p)
		w.teach("A")
		w.after(5 * interval)
		if r := w.last("f"); r.By != "static:n=3" || !r.Hand.Back() {
			t.Fatalf("%s: %+v", r.Why(), r.Hand)
		}
		w.registry.promote("f", p)
		w.after(interval)
		if r := w.last("f"); r.HandedBack == nil || r.HandedBack.Pause != guard.FirstPause.Seconds() {
			t.Errorf("promoted again, and spoilt still: %s: %+v", r.Why(), r.HandedBack)
		}
		w.after(10 * time.Minute)
		if r := w.last("f"); r.By != "static:n=3" {
			t.Errorf("before it is promoted again: %s", r.Why())
		}
		w.registry.promote("f", p)
		w.after(interval)
		if r := w.last("f"); r.By != "learned:aaaa" || r.Hand.Back() {
			t.Errorf("promoted again: %s: %+v", r.Why(), r.HandNext)
		}
	})
}

// The steps by which a learned policy is trusted (P87): in mode shadow and in a dry run it
// is asked and never acts, then it acts, and a pause ends that within one interval. Each
// decision says why (P81), and can be made again, as w checks of all.
func TestTrustedByAndBy(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 2, "policy", "learned")
		w.registry.promote("f", &pupil{name: "aaaa", back: "static:n=12", judge: func(o *policy.Observation) (int, float64) { return 4 + o.At.Minute()%2, 0 }})
		c := w.teach("A")
		w.override(c, "f", "mode", string(controller.Shadow))
		w.after(5 * interval)
		if r := w.last("f"); r.Wish.Replicas > 5 || r.Replicas != 12 || r.By != "static:n=12" {
			t.Errorf("in shadow: %d, wished %d: %s", r.Replicas, r.Wish.Replicas, r.Why())
		}
		w.override(c, "f", "mode", string(controller.DryRun))
		w.after(interval)
		w.platform.made()
		w.after(2 * time.Minute)
		if r := w.last("f"); len(w.platform.made()) > 0 || r.By != "learned:aaaa" || r.Wish.Replicas > 5 || r.Replicas != 12 {
			t.Errorf("in a dry run: %d, wished %d: %s", r.Replicas, r.Wish.Replicas, r.Why())
		}
		w.override(c, "f", "mode", string(controller.Act))
		w.after(4 * time.Minute)
		if r := w.last("f"); len(w.platform.made()) < 3 || r.By != "learned:aaaa" || r.Replicas > 5 {
			t.Errorf("it does not act: %d: %s", r.Replicas, r.Why())
		}
		w.override(c, "f", "mode", string(controller.Paused))
		w.after(interval)
		w.platform.made()
		w.after(5 * time.Minute)
		if calls := w.platform.made(); len(calls) > 0 {
			t.Errorf("paused, it calls %v", calls)
		}
		for _, r := range w.log.of(t, "f") {
			if r.Why() == "" {
				t.Errorf("receipt %d says nothing", r.Seq)
			}
		}
	})
}
