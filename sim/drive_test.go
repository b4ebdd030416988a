package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

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

// scholar is a learned policy that finds a farm strange from some instant on, or loses
// its mind.
type scholar struct {
	policy.Policy               // as which it decides
	rule, back    policy.Policy // that advises, and that it is handed back to
	strange, mad  float64       // seconds of a run; 0: never
}

func (s *scholar) Name() string            { return "learned:scholar" }
func (s *scholar) Made() int               { return policy.ObservationVersion }
func (s *scholar) Rule() policy.Policy     { return s.rule }
func (s *scholar) Fallback() policy.Policy { return s.back }
func (s *scholar) Judge(o *policy.Observation, m policy.Memory) (policy.Decision, policy.Strange) {
	at := o.At.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Seconds()
	d := s.Policy.Decide(o, m)
	if s.mad > 0 && at >= s.mad {
		d = policy.Decision{Replicas: -1}
	}
	if s.strange > 0 && at >= s.strange {
		return d, policy.Strange{Feature: "load_short", Widths: 2}
	}
	return d, policy.Strange{}
}

// A learned policy is limited in a run as it is by the controller, though the driver's
// settings do not call it learned, and is handed back as there, in the same step, and
// the run goes on under its fallback. What advises it limits it no longer.
func TestPilotHandsBackAsTheController(t *testing.T) {
	law, err := policy.New("staffing:down=10")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := policy.New("reactive-average")
	if err != nil {
		t.Fatal(err)
	}
	small, err := policy.New("staffing:down=10,headroom=0.5")
	if err != nil {
		t.Fatal(err)
	}
	two, err := policy.New("static:n=2")
	if err != nil {
		t.Fatal(err)
	}
	for cause, p := range map[string]scholar{guard.CauseNaN: {mad: 200}, guard.CauseStrange: {strange: 200}, "": {}} {
		for _, back := range []policy.Policy{rule, two, law} {
			p.Policy, p.rule, p.back = small, rule, back
			handsBackAsTheController(t, cause, &p)
		}
	}
}

func handsBackAsTheController(t *testing.T, cause string, p *scholar) {
	sc, tasks := wave()
	s, err := sim.New(sim.Config{Scenario: sc, Tasks: tasks, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	pilot := sim.NewPilot(sim.Driver{Policy: p, Guard: &guard.Settings{}})
	in := controller.Inputs{Mode: controller.Act, Policy: "learned", Fallback: p.back.Name(), Learned: &controller.Choice{Spec: "learned", Version: p.Name()}}
	if p.back != p.rule {
		in.Adviser = p.rule.Name()
	}
	backs, at, floors := 0, 0.0, 0
	for more := true; more; more = s.Advance() {
		s.Observe(&in.Observation)
		in.Busy = s.Calling()
		step := pilot.Decide(&in.Observation, s.Calling())
		v := controller.Decide(in, p)
		in.Memory, in.State, in.Hand = v.After, v.Next, v.HandNext
		if !in.Busy && (step.Wish != v.Wish || step.Rule != v.Rule || text(t, step.Outcome) != text(t, v.Outcome)) || text(t, step.HandedBack) != text(t, v.HandedBack) {
			t.Fatalf("at %g s: %s, %s, %s\nthe controller: %s, %s, %s", s.Now(), text(t, step.Wish), text(t, step.Outcome), text(t, step.HandedBack), text(t, v.Wish), text(t, v.Outcome), text(t, v.HandedBack))
		}
		if step.HandedBack != nil {
			backs, at = backs+1, s.Now()
			if step.HandedBack.Cause != cause {
				t.Errorf("handed back by %+v", step.HandedBack)
			}
		}
		if step.Outcome.Bound(guard.LimitRule) {
			floors++
		}
		if backs > 0 && !in.Busy && (step.Wish.Replicas != step.Rule.Replicas || v.By != p.back.Name() || step.Outcome.Bound(guard.LimitRule)) {
			t.Fatalf("at %g s, handed back: %s wishes %s, and %s is done", s.Now(), v.By, text(t, step.Wish), text(t, step.Outcome))
		}
		if n := in.Observation.Desired; step.Outcome.Hold {
			s.Scale(n)
		} else {
			s.Scale(step.Outcome.Replicas)
		}
	}
	if floors == 0 {
		t.Errorf("%s, back to %s: the adviser never was the least", cause, p.back.Name())
	}
	if cause == "" && backs != 0 || cause != "" && (backs != 1 || at < 200 || at > 212) {
		t.Errorf("%s: handed back %d times, at %g s", cause, backs, at)
	}
	played, err := sim.Run(t.Context(), sim.Config{Scenario: sc, Tasks: tasks, Seed: 1}, sim.Driver{Policy: p, Guard: &guard.Settings{}})
	if err != nil || played.HandBacks != backs {
		t.Errorf("%s: a run counts %d hand-backs (%v): want %d", cause, played.HandBacks, err, backs)
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
