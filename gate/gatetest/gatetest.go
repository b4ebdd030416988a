// Package gatetest makes telemetry for tests.
package gatetest

import (
	"testing"
	"time"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim"
	"farmhand/sim/workload"
	"farmhand/telemetry"
)

// seed of what farms meet.
const seed = 77

// Telemetry is that of a simulated farm which served a scenario for so many seconds under
// a policy: the rows as a controller keeps them, and the service times.
func Telemetry(t testing.TB, s *workload.Scenario, seconds float64, spec string) (rows []telemetry.Row, periods []telemetry.Period) {
	t.Helper()
	p, err := policy.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	long := *s
	long.Horizon = seconds
	tasks := long.Draw(seed)
	farm, err := sim.New(sim.Config{Scenario: &long, Tasks: tasks, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	pilot := sim.NewPilot(sim.Driver{Policy: p, Guard: &guard.Settings{}})
	for more := true; more; more = farm.Advance() {
		var o policy.Observation
		farm.Observe(&o)
		step := pilot.Decide(&o, farm.Calling())
		rows = append(rows, telemetry.RowOf(&o, step.Wish.Replicas, step.Outcome.Replicas))
		if !step.Outcome.Hold {
			farm.Scale(step.Outcome.Replicas)
		}
	}
	var g telemetry.Gather
	for i, at := range tasks.At {
		p := telemetry.Period{Start: rows[0].At.Add(time.Duration(at * float64(time.Second)))}
		p.Service.Add(tasks.Service[i])
		g.Add("", p.Start, &p.Service)
	}
	return rows, g.TakeAll()[""]
}
