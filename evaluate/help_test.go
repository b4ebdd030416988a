package evaluate

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"testing"

	"farmhand/policy"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// toy is a scenario of which tests make up the runs.
func toy(name string) *workload.Scenario {
	return &workload.Scenario{
		Name: name, Horizon: 3600, Arrivals: workload.Poisson{Rate: 1}, Service: workload.Constant{Value: 1},
		Farm: workload.Farm{Interval: 2, Deadline: 1, Target: 0.9, Slots: 1, Min: 1, Max: 64, Start: 1},
	}
}

// fixed is a policy that carries the values a test gave it.
type fixed struct {
	name   string
	values []float64
}

func (f fixed) Name() string { return f.name }

func (f fixed) Decide(o *policy.Observation, _ policy.Memory) policy.Decision {
	return policy.Decision{Replicas: 1, Reason: "a test"}
}

// member is a contender whose runs have these values.
func member(name string, values ...float64) Contender {
	return Contender{Name: name, Spec: name, Origin: Default, Version: "1",
		Make: func(sim.Config) (policy.Policy, error) { return fixed{name, values}, nil }}
}

// made answers runs with what a function makes of the policy's values.
func made(f func(values []float64, c sim.Config) (late, cost float64)) runFunc {
	return func(ctx context.Context, c sim.Config, d sim.Driver) (sim.Result, error) {
		if err := ctx.Err(); err != nil {
			return sim.Result{}, err
		}
		var values []float64
		if p, ok := d.Policy.(fixed); ok {
			values = p.values
		}
		late, cost := f(values, c)
		return result(late, cost), nil
	}
}

// result is a run of a million tasks.
func result(late, cost float64) sim.Result {
	const n = 1_000_000
	return sim.Result{Horizon: 3600, Tasks: n, Decided: n, Done: n, Late: int(math.Round(late * n)), WorkerSeconds: cost, MeanWorkers: cost / 3600}
}

// entry is one with made-up episodes.
func entry(name string, late, cost []float64) Entry {
	e := Entry{Scenario: toy("toy"), Contender: member(name)}
	for i := range late {
		e.Episodes = append(e.Episodes, Episode{uint64(i + 1), result(late[i], cost[i])})
	}
	return e
}

// shelf is a Store in memory that counts.
type shelf struct {
	mu         sync.Mutex
	kept       map[string][]byte
	hits, puts int
}

func (s *shelf) Get(key string, v any) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := s.kept[key]
	if ok {
		s.hits++
		return true, json.Unmarshal(raw, v)
	}
	return false, nil
}

func (s *shelf) Put(key string, v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, err := json.Marshal(v)
	if s.kept == nil {
		s.kept = map[string][]byte{}
	}
	s.kept[key] = raw
	s.puts++
	return err
}

func near(t *testing.T, what string, got policy.Maybe, want, within float64) {
	t.Helper()
	if !(math.Abs(float64(got)-want) <= within) {
		t.Errorf("%s: %g, want %g ± %g", what, float64(got), want, within)
	}
}
