package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/policy/guard"
)

// At 80 % of the day's budget there is an alarm; when it is used up the farm
// drains to its minimum, until midnight UTC by Redis TIME.
func TestBudget(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.shift = 23*time.Hour + 57*time.Minute // of New Year's Day
		w.add("f", 5, "policy", "static:n=5", "budget", "0.1")
		c := w.start("A")
		w.after(50 * time.Second)
		if v := farm(t, c, "f"); !v.Conditions["Healthy"].Status || v.BudgetUsed < 0.06 {
			t.Errorf("at %.2f h: %+v", v.BudgetUsed, v.Conditions)
		}
		w.after(12 * time.Second)
		if v := farm(t, c, "f"); v.Conditions["Healthy"].Status || !strings.Contains(v.Conditions["Healthy"].Reason, "budget") || v.Desired != 5 {
			t.Errorf("at %.2f h: %+v", v.BudgetUsed, v)
		}
		w.after(12 * time.Second)
		v := farm(t, c, "f")
		if v.Desired != 1 || !v.Conditions["Limited"].Status || !strings.Contains(v.Conditions["Limited"].Reason, "budget") || !w.last("f").Outcome.Bound(guard.LimitBudget) {
			t.Errorf("at %.2f h: %+v", v.BudgetUsed, v)
		}
		w.submit("f", 100)
		w.after(time.Minute)
		if calls := w.platform.made(); len(calls) != 1 {
			t.Errorf("calls %v", calls)
		}
		w.after(46 * time.Second) // a new day
		if v := farm(t, c, "f"); v.Desired != 5 || v.BudgetUsed > 0.01 || !v.Conditions["Healthy"].Status || v.Conditions["Limited"].Status {
			t.Errorf("after midnight, at %.2f h: %+v", v.BudgetUsed, v)
		}
	})
}

// Ordinary actions are paid with tokens: a farm that would swing forever makes a
// bucket of them, and from then on as many as come back.
func TestTokens(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 4, "policy", "static:n=4", "interval", "1s")
		c := w.start("A")
		w.settle()
		for i := range 60 {
			w.override(c, "f", "policy", fmt.Sprint("static:n=", 3+i%2))
			w.after(time.Second)
		}
		if calls := w.platform.made(); len(calls) < guard.DefaultBurst || len(calls) > guard.DefaultBurst+60*guard.DefaultActionsPerHour/3600+1 {
			t.Errorf("%d calls in a minute", len(calls))
		}
		if v := farm(t, c, "f"); !v.Conditions["Limited"].Status || !strings.Contains(v.Conditions["Limited"].Reason, guard.LimitActions) {
			t.Errorf("%+v", v.Conditions["Limited"])
		}
	})
}

// Conditions tell since when they are as they are.
func TestConditions(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 1, "max", "3")
		f.startup = 5 * time.Second
		c := w.start("A")
		w.settle()
		since := w.now()
		w.override(c, "f", "policy", "static:n=9")
		w.after(interval)
		v := farm(t, c, "f")
		if s := v.Conditions["Scaling"]; !s.Status || s.Since.Sub(since) > 300*time.Millisecond || s.Since.Before(since) {
			t.Errorf("scaling %+v", s)
		}
		if l := v.Conditions["Limited"]; !l.Status || !strings.HasPrefix(l.Reason, "max") || !l.Since.Equal(v.Conditions["Scaling"].Since) {
			t.Errorf("limited %+v", l)
		}
		w.after(3 * interval)
		v = farm(t, c, "f")
		if s := v.Conditions["Scaling"]; s.Status || w.now().Sub(s.Since) > 2*interval {
			t.Errorf("scaling %+v", s)
		}
		w.override(c, "f", "policy", "static:n=2")
		w.after(interval)
		if l := farm(t, c, "f").Conditions["Limited"]; l.Status || l.Reason != "" {
			t.Errorf("limited %+v", l)
		}
		if h := farm(t, c, "f").Conditions["Healthy"]; !h.Status || h.Since.After(since) {
			t.Errorf("healthy %+v", h)
		}
	})
}

// All farms share what there is. A farm that wants more than its share is cut,
// and told so; what others leave it gets.
func TestCapacity(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("a", 2, "policy", "static:n=2")
		w.add("b", 2, "policy", "static:n=2", "min", "2")
		cfg := w.config("A")
		cfg.Allocator = controller.Capacity(10)
		c := w.create(cfg)
		c.Start()
		w.settle()
		w.override(c, "a", "policy", "static:n=20")
		w.after(2 * interval)
		if a := farm(t, c, "a"); a.Desired != 8 || !strings.Contains(a.Conditions["Limited"].Reason, "capacity") {
			t.Errorf("a beside a small b: %+v", a)
		}
		if r := w.last("a"); r.Capacity == nil || *r.Capacity != (controller.Cut{From: 20, To: 8, Capacity: 10}) || !strings.Contains(r.Why(), "capacity 20→8") {
			t.Errorf("%+v: %s", r.Capacity, r.Why())
		}
		w.override(c, "b", "policy", "static:n=20", "max", "20")
		w.after(3 * interval)
		a, b := farm(t, c, "a"), farm(t, c, "b")
		if a.Desired+b.Desired != 10 || a.Desired < 4 || b.Desired < 5 {
			t.Errorf("both greedy: %d and %d", a.Desired, b.Desired)
		}
		w.override(c, "a", "policy", "static:n=1")
		w.after(2 * interval)
		if b := farm(t, c, "b"); b.Desired != 9 {
			t.Errorf("b gets what a leaves: %+v", b)
		}
	})
}
