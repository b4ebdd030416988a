package evaluate

import (
	"context"
	"strings"
	"testing"
	"time"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim"
	"farmhand/sim/workload"
	"farmhand/skeleton/signal"
	"farmhand/telemetry"
)

// live is a quarter of an hour of a farm under a policy, as its controller sees it:
// the observations, the rows, and what it really came to in that time.
func live(t *testing.T, s *workload.Scenario, spec string) (past []policy.Observation, rows []telemetry.Row, truth policy.Estimate) {
	t.Helper()
	p, err := policy.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	farm, err := sim.New(sim.Config{Scenario: s, Seed: 77})
	if err != nil {
		t.Fatal(err)
	}
	from, to := 600.0, 1500.0
	var before, after sim.Totals
	pilot := sim.NewPilot(sim.Driver{Policy: p, Guard: &guard.Settings{}})
	for more := true; more && farm.Now() <= to; more = farm.Advance() {
		var o policy.Observation
		farm.Observe(&o)
		step := pilot.Decide(&o, farm.Calling())
		if farm.Now() >= from {
			if before.At == 0 {
				before = farm.Totals()
			}
			after = farm.Totals()
			past = append(past, o)
			rows = append(rows, telemetry.RowOf(&o, step.Wish.Replicas, step.Outcome.Replicas))
		}
		if !step.Outcome.Hold {
			farm.Scale(step.Outcome.Replicas)
		}
	}
	truth.Seconds, truth.Tasks, truth.WorkerSeconds = to-from, float64(after.Tasks-before.Tasks), after.WorkerSeconds-before.WorkerSeconds
	truth.OnTime = policy.Maybe(1 - float64(after.Late-before.Late)/float64(after.Decided-before.Decided))
	return past, rows, truth
}

func scenario(t *testing.T, name string) *workload.Scenario {
	t.Helper()
	s, err := workload.Find(name, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What another law would have cost is what it does cost on the same work.
func TestEstimate(t *testing.T) {
	s := scenario(t, "burst-cron-150ms")
	past, rows, _ := live(t, s, "static:n=9")
	r := Replay{Guard: &guard.Settings{}}
	for _, spec := range []string{"static:n=9", "static:n=6", "staffing", "reactive-maximum"} {
		_, _, truth := live(t, s, spec)
		p, err := policy.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Estimate(t.Context(), past, p)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v, truth %+v", spec, got, truth)
		near(t, spec+": on time", got.OnTime, float64(truth.OnTime), 0.03)
		near(t, spec+": cost, relative", policy.Maybe(got.WorkerSeconds/truth.WorkerSeconds), 1, 0.05)
		near(t, spec+": tasks, relative", policy.Maybe(got.Tasks/truth.Tasks), 1, 0.02)

		again, err := PastOfRows(rows, nil, s.Farm)
		if err != nil {
			t.Fatal(err)
		}
		same, err := r.Play(t.Context(), again, p)
		if err != nil {
			t.Fatal(err)
		}
		near(t, spec+": from rows, on time", same.OnTime, float64(got.OnTime), 0.02)
	}
}

// The counterpart of what the live farm did is what it did.
func TestActual(t *testing.T) {
	past, _, truth := live(t, scenario(t, "bursty"), "staffing:down=15")
	known, err := PastOf(past)
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&Replay{}).Actual(t.Context(), known)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "on time", got.OnTime, float64(truth.OnTime), 0.05)
	near(t, "cost, relative", policy.Maybe(got.WorkerSeconds/truth.WorkerSeconds), 1, 0.03)
	if got.Seconds != 900 {
		t.Errorf("%g s of past", got.Seconds)
	}
}

func TestPastNamesWhatIsUnknown(t *testing.T) {
	at := time.Unix(1e9, 0)
	see := func(n int, change func(i int, o *policy.Observation)) []policy.Observation {
		list := make([]policy.Observation, n)
		for i := range list {
			o := &list[i]
			o.At, o.Interval, o.Service, o.StartupLag = at.Add(time.Duration(2*i)*time.Second), 2, 0.1, policy.Unknown
			o.Last.Covered, o.Last.Arrivals, o.Last.Service = 2, 10, policy.Stats{N: 10, Mean: 0.1, SD: 0.05}
			o.Max = 5
			change(i, o)
		}
		return list
	}
	none := func(int, *policy.Observation) {}
	for want, past := range map[string][]policy.Observation{
		"1 observations":  see(1, none),
		"is not later":    see(5, func(i int, o *policy.Observation) { o.At = at }),
		"only 0 s were":   see(5, func(i int, o *policy.Observation) { o.Last.Covered = 0 }),
		"no service time": see(5, func(i int, o *policy.Observation) { o.Last.Service, o.Service = policy.Stats{}, policy.Unknown }),
		"":                see(50, func(i int, o *policy.Observation) { o.Last.Covered = min(2, float64(i%20)) }),
	} {
		_, err := PastOf(past)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	p, err := PastOf(see(11, none))
	if err != nil || p.Seconds() != 20 || p.Bins[3] != (Bin{2, 10, 0}) {
		t.Fatalf("%+v %v", p, err)
	}
	if n := len(p.draw(120, 1).At); n != 100 {
		t.Errorf("%d tasks, want 100: there were none before", n)
	}
	near(t, "service", policy.Maybe(p.Service.Mean()), 0.1, 1e-9)
	// Of more than the farm may have today, as many as it may.
	p, err = PastOf(see(11, func(i int, o *policy.Observation) { o.Desired = 9 - i/2 }))
	if err != nil || p.Farm.Start != 5 {
		t.Fatalf("%+v %v", p, err)
	}
	if _, err := (&Replay{}).Actual(t.Context(), p); err != nil {
		t.Error(err)
	}
}

// Services drawn from histograms have their mean and their tail.
func TestHistogram(t *testing.T) {
	var period telemetry.Period
	law := workload.LogNormalOf(0.04, 0.6)
	r := workload.Stream(1, 1)
	for range 20_000 {
		period.Service.Add(law.Draw(r))
	}
	got := histogram([]telemetry.Period{period})
	near(t, "mean", policy.Maybe(got.Mean()), period.Service.Sum/float64(period.Service.N), 1e-9)
	var again signal.Hist
	for range 20_000 {
		again.Add(got.Draw(r))
	}
	near(t, "squares, relative", policy.Maybe(again.Squares/period.Service.Squares), 1, 0.05)
	if histogram(nil) != nil {
		t.Error("a law of nothing")
	}
}

func TestReplayEnds(t *testing.T) {
	past, _, _ := live(t, scenario(t, "constant"), "static:n=6")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	p, _ := policy.New("staffing")
	if _, err := (&Replay{}).Estimate(ctx, past, p); err == nil {
		t.Error("played on after the end")
	}
}

// Draws are numbered, so that two policies can be compared draw by draw; together
// they are what Seeds of them come to.
func TestReplayDrawsBySeed(t *testing.T) {
	past, _, _ := live(t, scenario(t, "burst-cron-150ms"), "staffing")
	known, err := PastOf(past)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New("staffing")
	if err != nil {
		t.Fatal(err)
	}
	play := func(first uint64, n int) policy.Estimate {
		e, err := (&Replay{First: first, Seeds: n}).Play(t.Context(), known, p)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	one, two, both := play(2001, 1), play(2002, 1), play(2001, 2)
	if one == two {
		t.Error("two seeds gave the same draw")
	}
	if mean := (one.WorkerSeconds + two.WorkerSeconds) / 2; mean != both.WorkerSeconds {
		t.Errorf("%g worker-seconds each, %g together", mean, both.WorkerSeconds)
	}
	same, other := *known, *known
	other.Lead++
	if known.Fingerprint() != same.Fingerprint() || known.Fingerprint() == other.Fingerprint() {
		t.Error("fingerprints do not tell pasts apart")
	}
}
