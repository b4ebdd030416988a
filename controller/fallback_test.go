package controller_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/policy"
	"farmhand/policy/guard"
)

// Where a policy's file names an adviser and a fallback, the adviser's wish is the least
// in a crisis, and the fallback decides after a hand-back, alone.
func TestFallbackIsNotTheAdviser(t *testing.T) {
	p := &pupil{name: "aaaa", n: 3, rule: 5, back: "static:n=8"}
	in := controller.Inputs{Mode: controller.Act, Policy: "learned", Fallback: p.back, Adviser: p.Rule().Name(), Learned: &controller.Choice{Spec: "learned", Version: p.Name()},
		Observation: policy.Observation{Version: policy.ObservationVersion, At: time.Unix(1e9, 0).UTC(), Age: 1, Interval: 2, Desired: 4, Max: 20, Overdue: 2, Long: policy.Window{Covered: 120}}}
	v := controller.Decide(in, p)
	if v.By != p.Name() || v.Wish.Replicas != 3 || v.Advice.Replicas != 5 || v.Rule.Replicas != 8 || v.Outcome.Replicas != 5 || !v.Outcome.Bound(guard.LimitRule) {
		t.Errorf("in a crisis: %+v", v)
	}
	p.n = -1                                                                   // no number
	for back, want := range map[string]int{"static:n=8": 8, "static:n=2": 2} { // the adviser is no limit to it
		in.Fallback = back
		v = controller.Decide(in, p)
		if v.HandedBack == nil || v.By != back || v.Wish.Replicas != v.Rule.Replicas || v.Outcome.Replicas != want || v.Outcome.Bound(guard.LimitRule) {
			t.Errorf("handed back to %s: %+v", back, v)
		}
		if r := (controller.Receipt{Inputs: in, Verdict: v}); !strings.HasPrefix(r.Why(), back+": ") || r.Replay(p) != nil {
			t.Errorf("%s; %v", r.Why(), r.Replay(p))
		}
	}
	other := controller.Receipt{Inputs: in, Verdict: v}
	other.Adviser = "static:n=6"
	if err := other.Replay(p); err == nil || !strings.Contains(err.Error(), "advice") {
		t.Errorf("advised otherwise: %v", err)
	}
}

// Adviser and fallback remember apart from each other, and what they do outlives a
// controller; a policy with another adviser leaves the fallback its memory.
func TestAdviserRemembers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "policy", "learned")
		p := pupil{name: "aaaa", n: 5, law: "staffing:down=20", back: "step-scaling"}
		w.registry.promote("f", &p)
		a := w.teach("A")
		stop := w.stream("f", 5)
		defer stop()
		w.after(time.Minute)
		r := w.last("f")
		if r.Adviser != p.law || r.Fallback != p.back || r.Advice == nil || len(r.Memory.Adviser) == 0 || len(r.Memory.Rule) == 0 || maps.Equal(r.Memory.Adviser, r.Memory.Rule) {
			t.Fatalf("%s advises and %s stands in: %+v", r.Adviser, r.Fallback, r.Memory)
		}
		compared := false
		w.crash(a)
		w.teach("B")
		w.after(controller.LeaseTime + 2*interval)
		for _, b := range w.log.of(t, "f") {
			if b.Controller == "B" && b.Seq == r.Seq+1 {
				v := controller.Decide(r.Inputs, &p)
				if !maps.Equal(b.Memory.Adviser, v.After.Adviser) || !maps.Equal(b.Memory.Rule, v.After.Rule) {
					t.Errorf("%+v after %+v", b.Memory, v.After)
				}
				compared = true
			}
		}
		if !compared {
			t.Error("no decision followed the last of A")
		}
		rule := w.last("f").Memory.Rule
		q := p
		q.name, q.law = "bbbb", "static:n=5"
		w.registry.promote("f", &q)
		w.settle()
		if r := w.last("f"); r.By != q.Name() || r.Adviser != q.law || len(r.Memory.Adviser) > 0 || len(rule) == 0 || len(r.Memory.Rule) == 0 {
			t.Errorf("%s: advised by %s, %+v", r.By, r.Adviser, r.Memory)
		}
	})
}
