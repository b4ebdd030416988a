package main

import (
	"encoding/json"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/policy/learned"
	"farmhand/registry/registrytest"
	"farmhand/sim"
	"farmhand/sim/workload"
	"farmhand/telemetry"
)

// lived is what a farm under bursts observed in a quarter of an hour, decided by a law.
func lived(t testing.TB, spec string) (past []policy.Observation) {
	t.Helper()
	sc, err := workload.Find("burst-cron-150ms", workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sc.Horizon = 2 * guard.TrialPast.Seconds()
	law, err := policy.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	_, err = sim.Run(t.Context(), sim.Config{Scenario: sc, Tasks: sc.Draw(7), Seed: 7}, sim.Driver{Policy: law, Guard: &guard.Settings{},
		Step: func(s *sim.Step) {
			if s.At >= guard.TrialPast.Seconds() {
				o := *s.Observation
				o.Past = append([]policy.Level(nil), o.Past...)
				telemetry.Round(&o)
				past = append(past, o)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	return past
}

// The referee tells a policy that wastes workers from one that does not, and what was
// done is as costly as it was.
func TestReferee(t *testing.T) {
	past := lived(t, "static:n=40")
	actual, err := referee{}.Actual(t.Context(), past)
	if err != nil {
		t.Fatal(err)
	}
	if mean := actual.WorkerSeconds / actual.Seconds; mean < 39 || mean > 41 || actual.OnTime < 0.99 || actual.Tasks < 40_000 {
		t.Errorf("%+v", actual)
	}
	rule, err := policy.New(controller.DefaultPolicy)
	if err != nil {
		t.Fatal(err)
	}
	under, err := referee{}.Estimate(t.Context(), past, rule)
	if err != nil || under.WorkerSeconds > actual.WorkerSeconds/2 || under.OnTime < 0.8 || under.Tasks != actual.Tasks {
		t.Errorf("%v: %+v, and %+v under the rule", err, actual, under)
	}
	// What always does as its rule comes to what the rule comes to.
	p, err := learned.Load(registrytest.Always(t, learned.Rule))
	if err != nil {
		t.Fatal(err)
	}
	alike, err := referee{}.Estimate(t.Context(), past, p)
	if own, err2 := (referee{}).Estimate(t.Context(), past, p.Rule()); err != nil || err2 != nil || alike != own {
		t.Errorf("%v, %v: %+v, its rule %+v", err, err2, alike, own)
	}
	if _, err := (referee{}).Actual(t.Context(), past[:1]); err == nil {
		t.Error("nothing is known of one observation, and that is no error")
	}
}

// What a review of the busiest quarter of an hour takes: its receipts are read, and the
// past is played under the rule, under a learned shadow, and as it was. With a review a
// minute, 1.2 s are 2 % of a core; what is more is made up for by rest.
func BenchmarkReview(b *testing.B) {
	past := lived(b, controller.DefaultPolicy)
	var raws [][]byte
	for _, o := range past {
		in := controller.Inputs{Observation: o, Mode: controller.Act, Policy: controller.DefaultPolicy, Fallback: controller.DefaultPolicy}
		raw, err := json.Marshal(controller.Receipt{Inputs: in, Verdict: controller.Decide(in)})
		if err != nil {
			b.Fatal(err)
		}
		raws = append(raws, raw)
	}
	shadow, err := learned.Load(registrytest.File(b, 1))
	if err != nil {
		b.Fatal(err)
	}
	rule, err := policy.New(controller.DefaultPolicy)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	begun := time.Now()
	tasks := 0.0
	for b.Loop() {
		for _, raw := range raws {
			var r controller.Receipt
			if err := json.Unmarshal(raw, &r); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := (referee{}).Actual(b.Context(), past); err != nil {
			b.Fatal(err)
		}
		for _, p := range []policy.Policy{rule, shadow} {
			e, err := referee{}.Estimate(b.Context(), past, p)
			if err != nil {
				b.Fatal(err)
			}
			tasks = e.Tasks
		}
	}
	b.ReportMetric(100*time.Since(begun).Seconds()/float64(b.N)/guard.TrialEvery.Seconds(), "%core")
	b.ReportMetric(tasks, "tasks")
}
