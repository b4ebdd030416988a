package main

import (
	"strings"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/policy"
)

// graduate is a learned policy that wishes for six, and for what is no number at last.
type graduate struct {
	policy.Policy // that it falls back on
	adviser       policy.Policy
}

func (graduate) Name() string              { return "learned:0123456789ab" }
func (graduate) Made() int                 { return policy.ObservationVersion }
func (g graduate) Rule() policy.Policy     { return g.adviser }
func (g graduate) Fallback() policy.Policy { return g.Policy }
func (graduate) Judge(o *policy.Observation, _ policy.Memory) (policy.Decision, policy.Strange) {
	if o.At.After(noon.Add(3 * time.Second)) {
		return policy.Decision{Replicas: -1}, policy.Strange{}
	}
	return policy.Decision{Replicas: 6, Reason: "learned: +1, 5 to 6"}, policy.Strange{}
}

// taughtFarm has a champion that was handed back, and a shadow.
func taughtFarm() controller.FarmView {
	rule, err := policy.New("static:n=4")
	if err != nil {
		panic(err)
	}
	adviser, err := policy.New("static:n=2")
	if err != nil {
		panic(err)
	}
	p := graduate{rule, adviser}
	taught := func(seq, want, before int) controller.Receipt {
		r := receipt(seq, 9, before, nil)
		r.Policy, r.Fallback, r.Adviser = "learned", rule.Name(), adviser.Name()
		r.Learned = &controller.Choice{Spec: "learned", Version: p.Name(), Origin: "champion"}
		r.Beside = &controller.Choice{Spec: "static:n=7"}
		r.Verdict = controller.Decide(r.Inputs, p)
		if r.Replicas = r.Outcome.Replicas; r.Replicas != want {
			panic("the canned receipt is another one")
		}
		return r
	}
	list := []controller.Receipt{taught(2, 4, 6), taught(1, 6, 5)}
	list[0].Outcome.Limits = nil
	v := busyFarm()
	v.Name, v.Policy, v.Problems, v.Conditions = "taught", "learned", nil, map[string]controller.Condition{
		controller.Fallback: {Status: true, Reason: "learned:0123456789ab is handed back", Since: noon}}
	v.Learned, v.Shadow, v.Receipts = list[0].Learned, list[0].Beside, list
	v.Hand = &list[0].HandNext
	v.Last = &controller.Summary{At: list[0].At, Replicas: 4, Before: 6, Why: list[0].Why(), Waiting: 120, Running: 6, OldestWait: 2.13, Deadline: 5, Rate: 5, OnTime: 0.982}
	v.Review = &controller.Review{At: noon, Policy: p.Name(), Target: 0.95, OnTime: 0.971, Beside: "static:n=7",
		Actual: policy.Estimate{Seconds: 900, Tasks: 4500, OnTime: 0.97, WorkerSeconds: 5400}, Rule: &policy.Estimate{Seconds: 900, Tasks: 4500, OnTime: 0.981, WorkerSeconds: 3600},
		Shadow: &policy.Estimate{Seconds: 900, Tasks: 4500, OnTime: policy.Unknown, WorkerSeconds: 6300}}
	return v
}

// Where the policy decides, its receipt says what advised it and what would take its
// place; where it was handed back, what advised it has no say.
func TestWhyNamesAdviserAndFallback(t *testing.T) {
	list := taughtFarm().Receipts
	var back, taught strings.Builder
	writeReceipt(&back, list, 0)
	writeReceipt(&taught, list, 1)
	if s := taught.String(); !strings.Contains(s, "rule    4 by static:n=4: fixed at 4\n") || !strings.Contains(s, "advice  2 by static:n=2: fixed at 2\n") {
		t.Error(s)
	}
	if s := back.String(); strings.Contains(s, "advice") || !strings.Contains(s, "wish    4 by static:n=4") {
		t.Error(s)
	}
}

// A line of top says what others would have come to, and nothing where nobody knows.
func TestReviewText(t *testing.T) {
	v := taughtFarm()
	want := "in a model: learned:0123456789ab 97.0 % on time with 6.00 workers; its rule 98.1 % on time with 4.00 workers; shadow static:n=7 - on time with 7.00 workers"
	if got := reviewText(v.Review); got != want || !strings.HasSuffix(farmLine(v), "["+want+"]") {
		t.Errorf("%q", got)
	}
	v.Review.Problem = "redis is away"
	if got := reviewText(v.Review); got != "" || reviewText(nil) != "" {
		t.Errorf("%q of nothing", got)
	}
}

// Who lets a learned policy scale a farm without a deadline is told why that does not work.
func TestLearnedWithoutDeadline(t *testing.T) {
	v := taughtFarm()
	for value, want := range map[string]bool{"none": true, "150ms": false} {
		v.Settings = map[string]controller.Setting{"deadline": {Value: value}}
		var b strings.Builder
		writeLearned(&b, v)
		if got := strings.Contains(b.String(), "farmhand farm set taught deadline="); got != want {
			t.Errorf("deadline %s:\n%s", value, b.String())
		}
	}
}
