package bench

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"farmhand/policy"
	"farmhand/sim"
	"farmhand/sim/workload"
	"farmhand/telemetry"
)

// kept are the runs of docs/live.md.
func kept(t *testing.T) (folders []string) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join("testdata", "live", "*", runFile))
	if err != nil || len(folders) < 2 {
		t.Fatalf("%v, %v", folders, err)
	}
	for i := range folders {
		folders[i] = filepath.Dir(folders[i])
	}
	return folders
}

// The telemetry that is kept of live runs can be read, is small, and tells what the
// table says: workers, tasks, and how many were late.
func TestKeptTelemetry(t *testing.T) {
	size := int64(0)
	for _, folder := range kept(t) {
		run, err := ReadLive(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range run.Rows {
			workers, arrived, decided, late := 0.0, 0.0, 0.0, 0.0
			for _, r := range row.Rows {
				workers += float64(r.Desired) / float64(len(row.Rows))
				arrived += r.Arrivals.Or(0)
				decided += r.Decided.Or(0)
				late += r.Late.Or(0)
			}
			if len(row.Rows) < int(run.Length/2)-2 || math.Abs(workers-row.Live.MeanWorkers) > 0.03*row.Live.MeanWorkers {
				t.Errorf("%s: %s: %d rows with %.2f workers, the table says %.2f", folder, row.Policy, len(row.Rows), workers, row.Live.MeanWorkers)
			}
			if math.Abs(arrived-float64(row.Tasks)) > 0.02*float64(row.Tasks) || math.Abs(1-late/decided-row.Live.OnTime) > 0.005 {
				t.Errorf("%s: %s: %g tasks, %g of %g late; the table says %d, %.4f on time", folder, row.Policy, arrived, late, decided, row.Tasks, row.Live.OnTime)
			}
		}
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size()
		}
	}
	if size > 300_000 {
		t.Errorf("%d bytes are kept, want 300,000 at most", size)
	}
}

// followed wants what the live controller wanted, decision by decision.
type followed struct {
	rows []telemetry.Row
	next int
}

func (f *followed) Name() string { return "followed" }

func (f *followed) Decide(o *policy.Observation, _ policy.Memory) policy.Decision {
	n := f.rows[min(f.next, len(f.rows)-1)].Final
	f.next++
	return policy.Decision{Replicas: n}
}

// A simulated farm that is scaled as the live one was, and has the platform that was
// measured, comes as near to it as the table: 3 points on time, 5 % of the workers.
// Policies may become other ones since; what a farm does with a count may not.
func TestSimulatorIsAsTheLiveFarm(t *testing.T) {
	for _, folder := range kept(t) {
		run, err := ReadLive(folder)
		if err != nil {
			t.Fatal(err)
		}
		sc, err := workload.Find(run.Scenario, workload.Options{Mean: run.Mean, Length: run.Length})
		if err != nil {
			t.Logf("%s: %v", folder, err) // the traces are not part of the project
			continue
		}
		sc.Horizon = run.Length
		drawn := sc.Draw(run.Seed)
		for _, row := range run.Rows {
			// The simulated farm decides at 0 as the live one did first.
			begin := row.Rows[0].At.Sub(run.Began).Seconds()
			tasks := &workload.Tasks{Horizon: run.Length - begin}
			for i, at := range drawn.At {
				if at >= begin {
					tasks.At, tasks.Service = append(tasks.At, at-begin), append(tasks.Service, drawn.Service[i])
				}
			}
			if sc.Platform, err = run.Measured.platform(row.Overhead); err != nil {
				t.Fatal(err)
			}
			sc.Farm.Start = row.Rows[0].Desired
			r, err := sim.Run(t.Context(), sim.Config{Scenario: sc, Tasks: tasks, Seed: run.Seed}, sim.Driver{Policy: &followed{rows: row.Rows}})
			if err != nil {
				t.Fatal(err)
			}
			points, percent := 100*(row.Live.OnTime-float64(r.OnTime())), 100*(row.Live.MeanWorkers/r.MeanWorkers-1)
			t.Logf("%s: %-30.30s on time %.2f %% live, %+.2f points; %.2f workers live, %+.1f %%", run.Scenario, row.Policy, 100*row.Live.OnTime, points, row.Live.MeanWorkers, percent)
			if math.Abs(points) > 3 || math.Abs(percent) > 5 {
				t.Errorf("%s: %s: too far", run.Scenario, row.Policy)
			}
		}
	}
}
