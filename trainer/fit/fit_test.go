package fit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"farmhand/gate/gatetest"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim"
	"farmhand/sim/workload"
	"farmhand/skeleton"
	"farmhand/trainer"
)

func find(t testing.TB, name string) *workload.Scenario {
	t.Helper()
	s, err := workload.Find(name, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// telemetryOf is that of a farm which served a scenario under a rule.
func telemetryOf(t testing.TB, s *workload.Scenario, seconds float64) (k Known) {
	t.Helper()
	k.Farm = s.Farm
	k.Rows, k.Periods = gatetest.Telemetry(t, s, seconds, "staffing")
	return k
}

func model(t testing.TB, k Known) *Model {
	t.Helper()
	m, err := Of("web", k)
	if err == nil {
		err = m.Compare(context.Background(), k)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Fit.Distances {
		t.Logf("%-40s KS %.4f  simulated %.4f  measured %.4f  n %d", d.Of, float64(d.KS), float64(d.Simulated), float64(d.Measured), d.N)
	}
	for _, n := range m.Fit.Notes {
		t.Log(n)
	}
	return m
}

// The model of a simulated farm is that farm, as far as its distributions tell.
func TestFindsTheFarmAgain(t *testing.T) {
	s := find(t, "burst-cron-150ms")
	m := model(t, telemetryOf(t, s, 4*3600))
	if !m.Fit.Telemetry || m.Fit.Seconds < 3*3600 || len(m.Traffic) == 0 || m.Scenario.Farm.Deadline != 0.15 || m.Scenario.Farm.Target != 0.97 {
		t.Errorf("%+v, %d stretches of traffic, %+v", m.Fit, len(m.Traffic), m.Scenario.Farm)
	}
	for i, most := range []float64{0.05, 0.03} { // arrivals, services
		if d := m.Fit.Distances[i]; !(float64(d.KS) < most) {
			t.Errorf("%s: %+v", d.Of, d)
		}
	}
	if d := m.Fit.Distances[2]; !(d.Measured > d.Simulated*0.8 && d.Measured < d.Simulated*1.2) {
		t.Errorf("%+v", d)
	}
	if d := m.Fit.Distances[3]; !(d.Measured-d.Simulated < 0.03 && d.Simulated-d.Measured < 0.03) {
		t.Errorf("%+v", d)
	}
	// A law costs there what it costs in the farm it was made of.
	rule, _ := policy.New("staffing")
	workers := func(s *workload.Scenario) (sum float64) {
		for seed := range uint64(6) {
			r, err := sim.Run(context.Background(), sim.Config{Scenario: s, Seed: seed}, sim.Driver{Policy: rule, Guard: &guard.Settings{}})
			if err != nil {
				t.Fatal(err)
			}
			sum += r.MeanWorkers / 6
		}
		return sum
	}
	if have, want := workers(m.Scenario), workers(s); have < 0.93*want || have > 1.07*want {
		t.Errorf("staffing needs %.2f workers in the model, %.2f in the farm", have, want)
	}
}

// A model that is not as the telemetry says is told by its distances.
func TestDistancesTell(t *testing.T) {
	k := telemetryOf(t, find(t, "burst-cron-150ms"), 3600)
	m := model(t, k)
	m.Scenario.Service = workload.LogNormalOf(0.08, 0.6)
	m.Scenario.Arrivals = workload.Poisson{Rate: 60}
	if err := m.Compare(context.Background(), k); err != nil {
		t.Fatal(err)
	}
	if list := m.Fit.Distances; !(list[0].KS > 0.3 && list[1].KS > 0.3) {
		t.Errorf("%+v", list[:2])
	}
}

func TestTooLittle(t *testing.T) {
	k := telemetryOf(t, find(t, "burst-cron-150ms"), 1500)
	if m := model(t, k); m.Traffic != nil || !slices.ContainsFunc(m.Fit.Notes, func(n string) bool { return strings.Contains(n, "unseen seeds alone") }) {
		t.Errorf("traffic of 25 minutes: %d stretches, notes %q", len(m.Traffic), m.Fit.Notes)
	}
	for name, cut := range map[string]Known{"none": {Farm: k.Farm}, "ten minutes": {Rows: k.Rows[:320], Periods: k.Periods, Farm: k.Farm}} {
		if _, err := Of("web", cut); !errors.Is(err, ErrLittle) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Garbage, a gap and a clock that jumps are left out, told, and change the model little.
func TestPoisonIsLeftOut(t *testing.T) {
	k := telemetryOf(t, find(t, "burst-cron-150ms"), 3*3600)
	clean := model(t, k)
	bad := Known{Rows: slices.Clone(k.Rows), Periods: k.Periods, Farm: k.Farm}
	for i := range 300 {
		bad.Rows[1000+i].Arrivals = 1e9
	}
	bad.Rows = slices.Delete(bad.Rows, 2500, 3000)
	for i := range bad.Rows[4000:] {
		bad.Rows[4000+i].At = bad.Rows[4000+i].At.Add(-2 * time.Hour)
	}
	m := model(t, bad)
	rate := func(m *Model) float64 { return m.Fit.Tasks / m.Fit.Seconds }
	if r := rate(m) / rate(clean); r < 0.9 || r > 1.1 {
		t.Errorf("%.1f tasks/s of %.1f are left", rate(m), rate(clean))
	}
	if !slices.ContainsFunc(m.Fit.Notes, func(n string) bool { return strings.Contains(n, "300 of") }) {
		t.Errorf("notes %q", m.Fit.Notes)
	}
}

// The same telemetry makes the same model; other seeds make other hours.
func TestDrawsDependOnSeedAlone(t *testing.T) {
	k := telemetryOf(t, find(t, "bursty"), 3600)
	a, b := model(t, k).Scenario, model(t, k).Scenario
	if x, y := a.Draw(5), b.Draw(5); !slices.Equal(x.At, y.At) || !slices.Equal(x.Service, y.Service) || string(a.YAML()) != string(b.YAML()) {
		t.Error("two models of the same differ")
	}
	if x, y := a.Draw(5), a.Draw(6); slices.Equal(x.At, y.At) {
		t.Error("two seeds draw the same")
	}
	x := a.Draw(5)
	if !slices.IsSorted(x.At) || x.At[len(x.At)-1] >= a.Horizon {
		t.Error("tasks out of order, or after the end")
	}
}

// The deadline is the farm's of now, whatever it was when telemetry was kept. Without one
// there is nothing to learn.
func TestDeadlineOfNow(t *testing.T) {
	k := telemetryOf(t, find(t, "bursty"), 2*3600)
	for i := range k.Rows {
		k.Rows[i].Deadline = 0
	}
	k.Farm.Deadline = 0.3
	if m := model(t, k); m.Scenario.Farm.Deadline != 0.3 || m.Traffic[0].Farm.Deadline != 0.3 {
		t.Errorf("deadlines %g and %g", m.Scenario.Farm.Deadline, m.Traffic[0].Farm.Deadline)
	}
	k.Farm.Deadline = 0
	if _, err := Of("web", k); !errors.Is(err, trainer.ErrNoDeadline) {
		t.Errorf("without a deadline: %v", err)
	}
}

func TestFarmOf(t *testing.T) {
	s := skeleton.DefaultSettings()
	s.Max, s.Min, s.Target, s.DeadlineFactor, s.Service = 0, 0, 1, 2, 100*time.Millisecond
	f := FarmOf(s)
	if f.Max != replicas || f.Start != 1 || f.Target >= 1 || f.Deadline != 0.2 || f.Interval != 2 {
		t.Errorf("%+v", f)
	}
}
