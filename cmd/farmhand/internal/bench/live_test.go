package bench

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"farmhand/controller"
	"farmhand/policy"
	"farmhand/registry/registrytest"
	"farmhand/sim/workload"
	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/telemetry"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// acted is a receipt that tells of a scale call.
func acted(at float64, from, to int, took float64) controller.Receipt {
	return controller.Receipt{Farm: "f", Before: to, At: began.Add(seconds(at + 2)),
		Acted: &controller.Acted{At: began.Add(seconds(at)), From: from, To: to, ReadBack: to, Seconds: took}}
}

// A worker is paid from the call that asks for it to the end of the one that does
// not any more.
func TestPaidFor(t *testing.T) {
	quiet := controller.Receipt{Farm: "f", Before: 1}
	for name, c := range map[string]struct {
		receipts []controller.Receipt
		want     paid
	}{
		"nothing happens":    {[]controller.Receipt{quiet, quiet}, paid{Mean: 1, Peak: 1}},
		"up":                 {[]controller.Receipt{quiet, acted(4, 1, 3, 1)}, paid{Mean: (4 + 3*6) / 10.0, Peak: 3, Actions: 1, Starts: 2}},
		"down":               {[]controller.Receipt{quiet, acted(4, 1, 3, 1), acted(6, 3, 1, 1)}, paid{Mean: (4 + 3*3 + 3) / 10.0, Peak: 3, Actions: 2, Starts: 2}},
		"before and after":   {[]controller.Receipt{quiet, acted(-9, 1, 9, 1), acted(-5, 9, 2, 1), acted(11, 2, 8, 1)}, paid{Mean: 2, Peak: 2}},
		"the same is no act": {[]controller.Receipt{quiet, acted(4, 1, 1, 1)}, paid{Mean: 1, Peak: 1}},
	} {
		got, err := paidFor(c.receipts, began, began.Add(10*time.Second))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	for want, receipts := range map[string][]controller.Receipt{
		"a call is missing":    {quiet, acted(4, 2, 3, 1)},
		"somebody else scaled": {{Farm: "f", Before: 1, Foreign: &controller.Foreign{From: 1, To: 2}}},
	} {
		if _, err := paidFor(receipts, began, began.Add(10*time.Second)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want an error that says %s", err, want)
		}
	}
}

func TestPlayable(t *testing.T) {
	scenario := func(change func(*workload.Scenario)) *workload.Scenario {
		s, err := workload.Find("burst-cron-150ms", workload.Options{})
		if err != nil {
			t.Fatal(err)
		}
		change(s)
		return s
	}
	for want, change := range map[string]func(*workload.Scenario){
		"lognormal:0.74,0.16": func(*workload.Scenario) {},
		"constant:1.5s":       func(s *workload.Scenario) { s.Platform.Startup = workload.Constant{Value: 1.5} },
		"none":                func(s *workload.Scenario) { s.Platform.Startup = nil },
	} {
		if got, err := playable(scenario(change)); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	for want, change := range map[string]func(*workload.Scenario){
		"farm.deadline_factor":   func(s *workload.Scenario) { s.Farm.DeadlineFactor = 2 },
		"platform.crashes":       func(s *workload.Scenario) { s.Platform.Crashes = 0.1 },
		"platform.victim random": func(s *workload.Scenario) { s.Platform.Victim = workload.RandomVictim },
		"injects lognormal":      func(s *workload.Scenario) { s.Platform.Startup = workload.Uniform{Max: 1} },
	} {
		if _, err := playable(scenario(change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want an error that says %s", err, want)
		}
	}
}

// Tasks that no worker would take, or none at all, are refused before anything starts.
func TestWork(t *testing.T) {
	sc := &workload.Scenario{Name: "s", Horizon: 10, Arrivals: workload.Poisson{Rate: 2}, Service: workload.Constant{Value: 0.25}}
	c := LiveConfig{Scenario: sc, Seed: 3}
	if work, err := c.work(); err != nil || len(work) < 5 || work[4].seconds != 0.25 || work[4].at <= work[3].at {
		t.Errorf("%v, %v", work, err)
	}
	sc.Service = workload.Constant{Value: 60}
	if _, err := c.work(); err == nil || !strings.Contains(err.Error(), "takes 60 s") {
		t.Error(err)
	}
	sc.Horizon = 1e-9
	if _, err := c.work(); err == nil || !strings.Contains(err.Error(), "nothing arrives") {
		t.Error(err)
	}
}

func TestStartLog(t *testing.T) {
	var l startLog
	log := slog.New(&l)
	log.Info("replica ready", "replica", "farm-01-abc", "took", 2*time.Second)
	log.Info("replica ready", "replica", "dispatcher-abc", "took", time.Second)
	log.Info("replica ended", "replica", "farm-01-abc")
	if got := l.seconds(); !cmp.Equal(got, []float64{2}) {
		t.Errorf("%v", got)
	}
}

// fed is a farm whose tasks each took 3 ms beyond the sleep, and 2 ms more to be
// accepted, and came a second late.
func fed(spec string, work []arrival) played {
	p := played{contender: contender{spec: spec}, receipts: []controller.Receipt{{Farm: "f", At: began.Add(-6 * time.Second), Before: 1}, acted(-4, 1, 2, 0.1)}}
	for i := range 8 {
		r := controller.Receipt{Farm: "f", At: began.Add(time.Duration(2*i+1) * time.Second), Before: 2}
		r.Observation.At, r.Observation.Age = r.At, 0.75
		p.receipts = append(p.receipts, r)
	}
	for i, a := range work {
		service := a.seconds + 0.003
		p.results = append(p.results, jobapi.Result{Index: i, State: skeleton.Done, Attempt: 1, Service: service, Sojourn: service + 0.002,
			Finished: began.Add(a.at + time.Second + seconds(service+0.002)), Late: i%2 == 0})
	}
	return p
}

// What was measured is what the simulator is given, and tasks come when they were
// accepted.
func TestCompare(t *testing.T) {
	sc := &workload.Scenario{Name: "s", Horizon: 15, Farm: workload.DefaultFarm()}
	var work []arrival
	for i := range 40 {
		work = append(work, arrival{seconds(float64(i) / 4), 0.04})
	}
	c := LiveConfig{Scenario: sc, Rest: 5 * time.Second, Sims: 3, Seed: 1}
	p := fed("static:n=2", work)
	m := measure([]played{p}, work, began, []float64{2, 2, 2, 2})
	if m.Calls != 1 || m.Starts != 4 || m.Again != 0 || math.Abs(m.LatenessP50-1) > 1e-6 || m.Startup[0] != 2 || m.Call[40] != 0.1 {
		t.Errorf("%+v", m)
	}
	row, err := c.compare(t.Context(), &p, work, began, &m)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what      string
		got, want float64
	}{
		{"call", row.Overhead.Call, 0.003}, {"settle", row.Overhead.Settle, 0.002},
		{"live on time", row.Live.OnTime, 0.5}, {"live workers", row.Live.MeanWorkers, 2}, {"live p50", row.Live.P50, 0.045},
		{"sim on time", row.Sim.OnTime, 1}, {"sim workers", row.Sim.MeanWorkers, 2}, {"sim actions", row.Sim.Actions, 0},
		{"signal age", row.Live.SignalAge, 0.75}, {"simulated age", row.Sim.SignalAge, 0.75},
		{"on time", row.OnTimeDifference, -50}, {"workers", row.WorkersDifference, 0},
	} {
		if math.Abs(x.got-x.want) > 1e-6 {
			t.Errorf("%s: %g, want %g", x.what, x.got, x.want)
		}
	}
	if math.Abs(row.Sim.P50-0.045) > 0.002 { // a histogram's
		t.Errorf("simulated p50: %g", row.Sim.P50)
	}
	first := row.SimRows[0]
	if n := len(row.SimRows); n != 8 || first.Arrivals != 0 || row.SimRows[1].Arrivals == 0 {
		t.Errorf("%d rows, %g and %g arrivals first", n, first.Arrivals, row.SimRows[1].Arrivals)
	}
}

func TestKeepAndRead(t *testing.T) {
	run := &LiveRun{Scenario: "s", Length: 600, Measured: Measured{Startup: []float64{1, 2}}}
	for _, spec := range []string{"a", "b"} {
		row := telemetry.RowOf(&policy.Observation{At: began, Desired: 3}, 4, 5)
		run.Rows = append(run.Rows, LiveRow{Policy: spec, Rows: []telemetry.Row{row}, SimRows: []telemetry.Row{row, row}})
	}
	folder := filepath.Join(t.TempDir(), "run")
	if err := run.Keep(folder); err != nil {
		t.Fatal(err)
	}
	got, err := ReadLive(folder)
	if err != nil {
		t.Fatal(err)
	}
	if got.Scenario != "s" || len(got.Rows) != 2 || len(got.Rows[1].SimRows) != 2 || got.Rows[0].Rows[0].Final != 5 {
		t.Errorf("%+v", got)
	}
}

// A law is a specification, a policy file is read; both decide in the simulator.
func TestContend(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.safetensors")
	if err := os.WriteFile(file, registrytest.File(t, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec, name string
		rule       bool
	}{{"static:n=2", "static:n=2", true}, {controller.DefaultPolicy, controller.DefaultPolicy, false}, {file, "p.safetensors", false}} {
		got, err := contend(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		d, err := got.driver()
		if err != nil || d.Policy == nil || (d.Rule != nil) != c.rule || got.name() != c.name {
			t.Errorf("%s: %q, %+v, %v", c.spec, got.name(), d, err)
		}
	}
	for _, bad := range []string{"nothing", filepath.Join(t.TempDir(), "none.safetensors")} {
		if _, err := contend(bad); err == nil || !strings.HasPrefix(err.Error(), "--policy") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
