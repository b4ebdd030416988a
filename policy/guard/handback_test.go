package guard_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/policy/learned"
)

// pupil is a learned policy that answers what it is told to.
type pupil struct {
	name   string
	made   int
	answer guard.Answer
	asked  int
}

func (p *pupil) Name() string { return p.name }
func (p *pupil) Made() int    { return p.made }
func (p *pupil) Rule() policy.Policy {
	law, err := policy.New("static:n=3")
	if err != nil {
		panic(err)
	}
	return law
}

func (p *pupil) Fallback() policy.Policy { return p.Rule() }

func (p *pupil) Decide(*policy.Observation, policy.Memory) policy.Decision { return p.answer.Wish }

func (p *pupil) Judge(*policy.Observation, policy.Memory) (policy.Decision, policy.Strange) {
	return p.answer.Wish, p.answer.Strange
}

// lesson is a farm with a learned policy whose rule wishes 3.
type lesson struct {
	t    *testing.T
	obs  policy.Observation
	p    *pupil
	hand guard.Hand
	back *guard.HandBack
}

func teach(t *testing.T) *lesson {
	return &lesson{t: t, obs: quiet().obs, p: &pupil{name: "learned:a", made: policy.ObservationVersion, answer: guard.Answer{Wish: policy.Decision{Replicas: 7}}}}
}

var byRule = policy.Decision{Replicas: 3, Reason: "three"}

// after lets the farm decide some time later, by a state that went through JSON. It
// returns what is wished.
func (l *lesson) after(d time.Duration, trial *guard.Trial) int {
	l.t.Helper()
	l.obs.At = l.obs.At.Add(d)
	raw, err := json.Marshal(l.hand)
	if err != nil {
		l.t.Fatal(err)
	}
	var kept guard.Hand
	if err := json.Unmarshal(raw, &kept); err != nil || !cmp.Equal(kept, l.hand) {
		l.t.Fatalf("%v: %+v was kept as %s", err, l.hand, raw)
	}
	var wish policy.Decision
	wish, l.hand, l.back = kept.Consult(&l.obs, l.p, byRule, trial, func() guard.Answer { l.p.asked++; return l.p.answer })
	if (wish.Replicas == 3) != l.hand.Back() || l.back != nil && !l.hand.Back() {
		l.t.Fatalf("the wish is %+v, of %+v, %+v", wish, l.hand, l.back)
	}
	return wish.Replicas
}

// What calls for it at once is handed back in the same decision, and not before.
func TestHandBackAtOnce(t *testing.T) {
	for cause, spoil := range map[string]func(*lesson){
		guard.CauseNaN:     func(l *lesson) { l.p.answer.Wish.Replicas = learned.Invalid },
		guard.CauseSlow:    func(l *lesson) { l.p.answer.Seconds = 0.0051 },
		guard.CauseVersion: func(l *lesson) { l.p.made++ },
	} {
		l := teach(t)
		l.p.answer.Seconds = 0.005
		for range 5 {
			if n := l.after(tick, nil); n != 7 || l.back != nil {
				t.Fatalf("%s: handed back too soon: %+v", cause, l.back)
			}
		}
		spoil(l)
		if l.after(tick, nil); l.back == nil || l.back.Cause != cause || l.back.Pause != 1800 || l.back.Reason == "" {
			t.Fatalf("%s: %+v", cause, l.back)
		}
		if asked := 6; cause == guard.CauseVersion && l.p.asked != asked-1 || cause != guard.CauseVersion && l.p.asked != asked {
			t.Errorf("%s: it was asked %d times", cause, l.p.asked)
		}
	}
}

// Three strange decisions in a row are too many; stale signals neither count nor
// begin anew, nor does a farm that has no replica ready.
func TestHandBackOfTheStrange(t *testing.T) {
	l := teach(t)
	ready := max(1, l.obs.Ready)
	show := func(widths float64, stale, asleep bool) bool {
		l.p.answer.Strange = policy.Strange{Feature: "load_short", Widths: widths, Value: 4, Low: 1, High: 2}
		l.obs.Waiting, l.obs.Ready = 0, ready
		if asleep {
			l.obs.Ready = 0
		}
		if stale {
			l.obs.Waiting, l.p.answer.Strange = policy.Unknown, policy.Strange{}
		}
		l.after(tick, nil)
		return l.back != nil
	}
	for i, c := range []struct {
		widths float64
		stale  bool
		asleep bool
		back   bool
	}{{widths: 0.51}, {widths: 0.51}, {widths: 0.5}, {widths: 9}, {stale: true}, {widths: 17, asleep: true}, {widths: 9}, {stale: true}, {asleep: true}, {widths: 0.6, back: true}} {
		if back := show(c.widths, c.stale, c.asleep); back != c.back {
			t.Fatalf("decision %d: %+v", i, l.hand)
		}
	}
	if l.back.Cause != guard.CauseStrange || !strings.Contains(l.back.Reason, "load_short is 4 for 3 decisions, and was 1 to 2 in training") {
		t.Errorf("%+v", l.back)
	}
	// Asked for something else it is another farm.
	if show(0, false, false); !l.hand.Back() {
		t.Errorf("%+v", l.hand)
	}
	l.obs.Deadline++
	if show(0, false, false); l.hand.Back() || l.hand.Pause != 0 {
		t.Errorf("with another deadline: %+v", l.hand)
	}
}

func trial(measured, onTime, rule policy.Maybe, cost float64) *guard.Trial {
	return &guard.Trial{Policy: "learned:a", Target: 0.95, OnTime: measured,
		Actual: policy.Estimate{Tasks: 500, OnTime: onTime, WorkerSeconds: cost}, Rule: policy.Estimate{Tasks: 500, OnTime: rule, WorkerSeconds: 1000}}
}

// Two lost trials in a row are too many.
func TestHandBackByTrial(t *testing.T) {
	none := policy.Unknown
	for name, c := range map[string]struct {
		trial *guard.Trial
		cause string // "": it is not lost
	}{
		"late":                   {trial(0.94, 0.93, 0.95, 900), guard.CauseLate},
		"late by a point":        {trial(0.94, 0.93, 0.94, 900), ""},
		"late, on target":        {trial(0.95, 0.93, 0.99, 900), ""},
		"late by nobody knows":   {trial(none, none, 0.99, 900), ""},
		"costly":                 {trial(0.99, 0.97, 0.97, 1101), guard.CauseCostly},
		"costly by a tenth":      {trial(0.99, 0.97, 0.97, 1100), ""},
		"costly and better":      {trial(0.99, 0.98, 0.97, 1500), ""},
		"costly, hardly better":  {trial(0.99, 0.9705, 0.97, 1500), guard.CauseCostly},
		"costly, no due":         {trial(none, none, none, 1101), guard.CauseCostly},
		"costly of nothing":      {&guard.Trial{Policy: "learned:a", Actual: policy.Estimate{Tasks: 600}}, ""},
		"worse, of few tasks":    {&guard.Trial{Policy: "learned:a", Actual: policy.Estimate{Tasks: 499, OnTime: 0.1, WorkerSeconds: 9e9}, Rule: policy.Estimate{OnTime: 1, WorkerSeconds: 1}}, ""},
		"worse, of another time": {&guard.Trial{Policy: "learned:b", Actual: policy.Estimate{Tasks: 500, WorkerSeconds: 9e9}, Rule: policy.Estimate{WorkerSeconds: 1}}, ""},
	} {
		l := teach(t)
		good := trial(0.99, 0.99, 0.97, 900)
		for i, tr := range []*guard.Trial{c.trial, nil, good, nil, c.trial, nil} { // never twice running
			if l.after(tick, tr); l.back != nil {
				t.Fatalf("%s: handed back after trial %d: %+v", name, i, l.back)
			}
		}
		l.after(time.Minute, c.trial)
		if lost := c.cause != ""; (l.back != nil) != lost || lost && l.back.Cause != c.cause {
			t.Errorf("%s: %+v", name, l.back)
		}
	}
}

// A policy comes back after half an hour, and after twice as long each further time,
// to a day at most; another one at once. While it is away it is not asked.
func TestComingBack(t *testing.T) {
	l := teach(t)
	l.p.answer.Wish.Replicas = learned.Invalid
	for _, pause := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 16 * time.Hour, 24 * time.Hour, 24 * time.Hour} {
		if l.after(tick, nil); l.back == nil || l.back.Pause != pause.Seconds() {
			t.Fatalf("want a pause of %s: %+v", pause, l.back)
		}
		asked := l.p.asked
		for range 9 {
			l.after(pause/10, trial(0, 0, 1, 9e9))
		}
		l.after(-time.Hour, nil) // a clock that steps back ends nothing
		if l.after(pause/10-tick, nil); l.p.asked != asked {
			t.Fatalf("asked during a pause of %s", pause)
		}
	}
	l.p.name, l.p.answer.Wish.Replicas = "learned:b", 7
	if n := l.after(tick, nil); n != 7 {
		t.Errorf("a new policy is handed back: %+v", l.hand)
	}
	l.p.answer.Wish.Replicas = learned.Invalid
	if l.after(tick, nil); l.back == nil || l.back.Pause != 1800 {
		t.Errorf("a new policy begins with a pause of %+v", l.back)
	}
}

// Whatever comes, the state is finite, goes through JSON, and either the policy was
// asked or the rule decides.
func TestHandProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := teach(t)
		for range rapid.IntRange(1, 30).Draw(rt, "decisions") {
			l.p.name = rapid.SampledFrom([]string{"learned:a", "learned:a", "learned:a", "learned:b"}).Draw(rt, "policy")
			l.p.made = policy.ObservationVersion + rapid.IntRange(0, 9).Draw(rt, "version")/9
			l.p.answer = guard.Answer{Wish: policy.Decision{Replicas: rapid.SampledFrom([]int{7, 7, 7, -1}).Draw(rt, "wish")},
				Seconds: rapid.Float64Range(0, 0.006).Draw(rt, "seconds"), Strange: policy.Strange{Widths: rapid.Float64Range(0, 1).Draw(rt, "widths")}}
			asked := l.p.asked
			l.after(time.Duration(rapid.Int64Range(-1e12, 1e13).Draw(rt, "later")), trial(maybe(rt, "measured", 1), maybe(rt, "on time", 1), maybe(rt, "rule", 1), rapid.Float64Range(0, 3000).Draw(rt, "cost")))
			if h := l.hand; h.Left < 0 || h.Left > h.Pause || h.Pause > 86400 || math.IsNaN(h.Left) || !h.Back() && l.p.asked != asked+1 || (h.Cause != "") != h.Back() {
				rt.Fatalf("asked %d times before, %d now: %+v", asked, l.p.asked, h)
			}
		}
	})
}
