package controller_test

import (
	"strings"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/policy"
	"farmhand/policy/guard"
)

// handBack is the receipt of the first hand-back; nil = there was none.
func (w *world) handBack(farm string) *controller.Receipt {
	for _, r := range w.log.of(w.t, farm) {
		if r.HandedBack != nil {
			return &r
		}
	}
	return nil
}

// A policy that loses two reviews in a row is handed back in the decision after the
// second one: it began with a long window of its own decisions, and ends a minute later.
func TestCostlyPolicyIsHandedBack(t *testing.T) {
	for cause, c := range map[string]struct {
		back   string // its wish are hundreds of worker-seconds
		onTime policy.Maybe
	}{guard.CauseCostly: {"static:n=10", 1}, guard.CauseLate: {"static:n=14", 0.5}, "": {"static:n=12", 1}} {
		t.Run(cause, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.add("f", 1, "policy", "learned")
				w.registry.promote("f", &pupil{name: "aaaa", n: 5, rule: 11, back: c.back}) // whatever advises it
				w.referee.onTime, w.due = c.onTime, 50*time.Millisecond                     // every task is late
				began := time.Now()
				c, scrape := w.measured(w.learning("A"))
				c.Start()
				stop := w.stream("f", 1)
				w.after(10 * time.Minute)
				back := w.handBack("f")
				stop()
				if cause == "" {
					if v := farm(t, c, "f"); back != nil || v.Review == nil || v.Review.Rule.WorkerSeconds != 1200 || v.Review.Policy != "learned:aaaa" {
						t.Errorf("%+v, %+v", back, v.Review)
					}
					expect(t, scrape(), map[string]any{`estimated_on_time_ratio{farm="f",policy="rule"}`: 1, `estimated_on_time_ratio{farm="f",policy="shadow"}`: nil})
					return
				}
				if back == nil || back.HandedBack.Cause != cause || back.Trial == nil || back.By == "learned:aaaa" {
					t.Fatalf("%+v", back)
				}
				// The second review is the first that has two minutes to look at.
				within(t, "handed back", back.At.Sub(began), 3*time.Minute, interval+2*time.Second)
				w.referee.set(func() {
					for i, past := range w.referee.asked {
						if own := past[len(past)-1].At.Sub(past[0].At); own > guard.TrialPast || len(past) < 2 {
							t.Errorf("review %d was of %s", i, own)
						}
					}
				})
			})
		})
	}
}

// What others decided is not held against a policy: a new one is reviewed by its own
// decisions alone, and by none older than a quarter of an hour.
func TestReviewedPast(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "policy", "learned")
		w.teach("A")
		w.after(5 * time.Minute)
		w.registry.promote("f", &pupil{name: "aaaa", n: 12, rule: 12})
		promoted := w.now()
		w.after(30 * time.Minute)
		longest := time.Duration(0)
		w.referee.set(func() {
			for i, past := range w.referee.asked {
				if past[0].At.Before(promoted) {
					t.Errorf("review %d begins %s before the promotion", i, promoted.Sub(past[0].At))
				}
				longest = max(longest, past[len(past)-1].At.Sub(past[0].At))
				for j := range past[1:] {
					if !past[j].At.Before(past[j+1].At) {
						t.Fatal("the oldest does not come first")
					}
				}
			}
			if n := len(w.referee.asked); n < 28 || n > 30 {
				t.Errorf("%d reviews in half an hour", n)
			}
		})
		within(t, "the longest past", longest, guard.TrialPast, 2*interval)
	})
}

// However many farms there are and however long it takes, reviews take no more than
// their share of the time, one after the other, and keep no decision waiting.
func TestReviewsRest(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, name := range []string{"f", "g", "h"} {
			w.add(name, 1, "policy", "learned")
			w.registry.promote(name, &pupil{name: "aaaa", n: 2})
		}
		w.referee.takes = 3 * time.Second
		cfg := w.learning("A")
		var late time.Duration
		cfg.Ticked = func(_ string, by time.Duration) { w.set(func() { late = max(late, by) }) }
		c := w.create(cfg)
		c.Start()
		w.after(20 * time.Minute)
		w.referee.set(func() {
			farms := map[string]int{}
			for i, at := range w.referee.at {
				farms[w.referee.asked[i][0].Farm]++
				if i > 0 && at.Sub(w.referee.at[i-1]) < 150*time.Second-time.Millisecond {
					t.Errorf("a review came %s after the last", at.Sub(w.referee.at[i-1]))
				}
			}
			if n := len(w.referee.at); n < 7 || farms["f"] < 2 || farms["g"] < 2 || farms["h"] < 2 {
				t.Errorf("%d reviews: %v", n, farms)
			}
		})
		w.set(func() {
			if late > 10*time.Millisecond {
				t.Errorf("a decision was %s late", late)
			}
		})
	})
}

// What cannot be reviewed says why, and hands nothing back.
func TestReviewWithoutAPast(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "policy", "learned")
		w.registry.promote("f", &pupil{name: "aaaa", n: 2})
		w.referee.err = errAway
		c := w.teach("A")
		w.after(5 * time.Minute)
		if v := farm(t, c, "f"); v.Review == nil || v.Review.Problem != errAway.Error() || v.Review.Rule != nil || w.handBack("f") != nil {
			t.Errorf("%+v", v.Review)
		}
	})
}

// A shadow is asked beside the farm's policy and scales nothing; what it would have
// come to is told. It may be a law, a champion, or, in the mode shadow, the farm's own
// policy.
func TestPolicyBeside(t *testing.T) {
	for name, c := range map[string]struct {
		annotations []string
		mode        controller.Mode
		shadow      string // as it is named in reviews
		count       int    // of the farm
		wish        int    // of the shadow; 0: none beside the policy's
	}{
		"law beside a law":         {[]string{"policy", "static:n=2", "shadow", "static:n=7"}, "", "static:n=7", 2, 7},
		"champion beside a law":    {[]string{"policy", "static:n=2", "shadow", "learned"}, "", "learned:aaaa", 2, 5},
		"law beside the champion":  {[]string{"policy", "learned", "shadow", "static:n=7"}, "", "static:n=7", 5, 7},
		"version beside a law":     {[]string{"policy", "static:n=2", "shadow", "learned:aaaa"}, "", "learned:aaaa", 2, 5},
		"champion in mode shadow":  {[]string{"policy", "learned"}, controller.Shadow, "learned:aaaa", 3, 0},
		"none":                     {[]string{"policy", "static:n=2", "shadow", "none"}, "", "", 2, 0},
		"champion that is not yet": {[]string{"policy", "static:n=2", "shadow", "learned:bbbb"}, "", "", 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.add("f", 1, c.annotations...)
				w.registry.promote("f", &pupil{name: "aaaa", n: 5})
				k, scrape := w.measured(w.learning("A"))
				k.Start()
				w.after(10 * time.Millisecond)
				if c.mode != "" {
					w.override(k, "f", "mode", string(c.mode))
				}
				w.after(3 * time.Minute)
				v, r := farm(t, k, "f"), w.last("f")
				if v.Desired != c.count || (r.ShadowWish != nil) != (c.wish > 0) || c.wish > 0 && r.ShadowWish.Replicas != c.wish {
					t.Errorf("%d replicas; the shadow wishes %+v", v.Desired, r.ShadowWish)
				}
				if c.shadow == "" {
					if v.Review != nil {
						t.Errorf("reviewed %+v", v.Review)
					}
					return
				}
				if v.Review == nil || v.Review.Beside != c.shadow || v.Review.Shadow == nil || (v.Review.Rule != nil) != strings.HasPrefix(r.By, "learned") {
					t.Fatalf("%+v", v.Review)
				}
				wish := max(c.wish, 5)
				if cost := v.Review.Shadow.WorkerSeconds; c.mode == "" && cost != 100*float64(wish) {
					t.Errorf("the shadow costs %g", cost)
				}
				if x := scrape()[`estimated_workers{farm="f",policy="shadow"}`]; x <= 0 {
					t.Errorf("%g estimated workers", x)
				}
			})
		})
	}
}

// Bad names of policies are refused, and say what would be right.
func TestNamesOfPolicies(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "shadow", "learned:a/b")
		c := w.teach("A")
		if v := farm(t, c, "f"); len(v.Problems) != 1 || !strings.Contains(v.Problems[0], "farmhand.shadow: ") {
			t.Errorf("problems %q", v.Problems)
		}
		for _, bad := range []string{"learned:", "learned:xyz", "learned:ab", "learnt", "nothing"} {
			for _, name := range []string{"policy", "shadow"} {
				if err := c.Override(background, "f", map[string]*string{name: &bad}, 0); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("%s=%s: %v", name, bad, err)
				}
			}
		}
		w.override(c, "f", "policy", "learned:0a1b", "shadow", " learned ")
		w.after(interval)
		v := farm(t, c, "f")
		if v.Policy != "learned:0a1b" || v.Shadow.Spec != "learned" {
			t.Errorf("%s, %+v", v.Policy, v.Shadow)
		}
	})
}
