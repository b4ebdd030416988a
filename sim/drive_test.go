package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"farmhand/controller"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// wave is a farm whose load goes up and down, on a platform with a latency longer
// than an interval.
func wave() (*workload.Scenario, *workload.Tasks) {
	sc := &workload.Scenario{Name: "wave", Farm: workload.Farm{Interval: 2, Deadline: 0.5, Target: 0.95, Slots: 1, Min: 1, Max: 12, Start: 3, Prior: 0.1},
		Platform: workload.Platform{Startup: fixed(2), Call: fixed(2.5), Seen: fixed(0.5), Cap: 10}}
	t := &workload.Tasks{Horizon: 900}
	r := workload.Stream(1, workload.StreamArrivals)
	for at := 0.0; ; {
		rate := 5.0
		if int(at/100)%2 == 1 {
			rate = 60
		}
		if at += r.ExpFloat64() / rate; at >= t.Horizon {
			return sc, t
		}
		t.At, t.Service = append(t.At, at), append(t.Service, 0.2*r.Float64())
	}
}

type fixed float64

func (f fixed) Draw(*rand.Rand) float64 { return float64(f) }
func (f fixed) Mean() float64           { return float64(f) }
func (f fixed) String() string          { return "fixed" }

// A Pilot decides as the controller does, on the same observations, memories and
// guard, step by step, also while calls are under way.
func TestPilotDecidesAsTheController(t *testing.T) {
	law, err := policy.New("staffing:down=10")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := policy.New("reactive-average")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []guard.Settings{{}, {ActionsPerHour: 30, Burst: 1}, {Learned: true}, {Budget: 0.2}} {
		sc, tasks := wave()
		s, err := sim.New(sim.Config{Scenario: sc, Tasks: tasks, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		pilot := sim.NewPilot(sim.Driver{Policy: law, Rule: rule, Guard: &g})
		in := controller.Inputs{Mode: controller.Act, Policy: law.Name(), Fallback: rule.Name(), Guard: g}
		acted, held := 0, 0
		for more := true; more; more = s.Advance() {
			s.Observe(&in.Observation)
			in.Busy = s.Calling()
			step := pilot.Decide(&in.Observation, s.Calling())
			v := controller.Decide(in)
			in.Memory, in.State = v.After, v.Next
			if !in.Busy && (step.Wish != v.Wish || step.Rule != v.Rule) || text(t, step.Outcome) != text(t, v.Outcome) && !in.Busy {
				t.Fatalf("at %g s: %s, %s, %s\nthe controller: %s, %s, %s", s.Now(), text(t, step.Wish), text(t, step.Rule), text(t, step.Outcome), text(t, v.Wish), text(t, v.Rule), text(t, v.Outcome))
			}
			if in.Busy {
				held++
				if !step.Outcome.Hold {
					t.Fatal("something is done while a call is under way")
				}
			}
			if !step.Outcome.Hold {
				acted++
				s.Scale(step.Outcome.Replicas)
			} else {
				s.Scale(in.Observation.Desired)
			}
		}
		if acted < 5 || held < 5 {
			t.Errorf("%d actions, %d decisions during a call", acted, held)
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wishful wishes for anything.
type wishful func(o *policy.Observation) int

func (wishful) Name() string { return "wishful" }
func (w wishful) Decide(o *policy.Observation, _ policy.Memory) policy.Decision {
	return policy.Decision{Replicas: w(o)}
}

// Without a guard a farm keeps its bounds; with one, what the guard allows.
func TestRunKeepsTheBounds(t *testing.T) {
	sc, tasks := wave()
	sc.Platform = workload.Platform{}
	steps := 0
	r, err := sim.Run(context.Background(), sim.Config{Scenario: sc, Tasks: tasks, Seed: 1}, sim.Driver{
		Policy: wishful(func(o *policy.Observation) int { return []int{-5, 99}[o.At.Unix()/2%2] }),
		Step: func(s *sim.Step) {
			if n := s.Outcome.Replicas; n != []int{1, 12}[steps%2] || s.Wish != s.Rule || s.Observation == nil || s.At != float64(2*steps) {
				t.Errorf("step %d: %+v", steps, *s)
			}
			steps++
		}})
	if err != nil || steps != 450 || r.PeakWorkers != 12 || r.Actions < 400 {
		t.Errorf("%v, %d steps, %+v", err, steps, r)
	}
	r, err = sim.Run(context.Background(), sim.Config{Scenario: sc, Tasks: tasks, Seed: 1}, sim.Driver{
		Policy: wishful(func(o *policy.Observation) int { return []int{2, 99}[o.At.Unix()/2%2] }), Guard: &guard.Settings{}})
	if err != nil || r.Actions > 130 || r.Actions < 100 { // 480 an hour, and ten at once
		t.Errorf("%v, %+v", err, r)
	}
}

// A run that is ended from outside tells what it came to.
func TestRunEndsWithItsContext(t *testing.T) {
	sc, tasks := wave()
	ctx, cancel := context.WithCancel(context.Background())
	steps := 0
	r, err := sim.Run(ctx, sim.Config{Scenario: sc, Tasks: tasks}, sim.Driver{Policy: wishful(func(*policy.Observation) int { return 2 }), Step: func(*sim.Step) {
		if steps++; steps == 10 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || steps != 10 || r.Horizon != 20 || r.Tasks == 0 {
		t.Errorf("%v after %d steps: %+v", err, steps, r)
	}
	if _, err := sim.Run(ctx, sim.Config{}, sim.Driver{}); err == nil {
		t.Error("no scenario is no error")
	}
	if _, err := sim.Run(context.Background(), sim.Config{Scenario: sc, Tasks: tasks}, sim.Driver{}); err == nil {
		t.Error("no policy is no error")
	}
}
