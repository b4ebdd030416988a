package sim

import (
	"math"
	"math/rand/v2"
	"testing"

	"farmhand/policy"
	"farmhand/sim/workload"
)

// Laws of the tests.

type constant float64

func (c constant) Draw(*rand.Rand) float64 { return float64(c) }
func (c constant) Mean() float64           { return float64(c) }
func (c constant) String() string          { return "constant" }

type exponential float64 // mean

func (e exponential) Draw(r *rand.Rand) float64 { return float64(e) * r.ExpFloat64() }
func (e exponential) Mean() float64             { return float64(e) }
func (e exponential) String() string            { return "exponential" }

// lognormal has a mean and a coefficient of variation.
type lognormal struct{ mean, cv float64 }

func (l lognormal) Draw(r *rand.Rand) float64 {
	v := math.Log1p(l.cv * l.cv)
	return l.mean * math.Exp(r.NormFloat64()*math.Sqrt(v)-v/2)
}
func (l lognormal) Mean() float64  { return l.mean }
func (l lognormal) String() string { return "lognormal" }

type uniform struct{ lo, hi float64 }

func (u uniform) Draw(r *rand.Rand) float64 { return u.lo + (u.hi-u.lo)*r.Float64() }
func (u uniform) Mean() float64             { return (u.lo + u.hi) / 2 }
func (u uniform) String() string            { return "uniform" }

// poisson makes the tasks of a Poisson process of a rate.
func poisson(seed uint64, rate float64, service workload.Law, horizon float64) *workload.Tasks {
	t := &workload.Tasks{Horizon: horizon}
	r := workload.Stream(seed, workload.StreamArrivals)
	for at := r.ExpFloat64() / rate; at < horizon; at += r.ExpFloat64() / rate {
		t.At = append(t.At, at)
	}
	r = workload.Stream(seed, workload.StreamService)
	for range t.At {
		t.Service = append(t.Service, service.Draw(r))
	}
	return t
}

// plain is a farm of n replicas that are there from the beginning.
func plain(n int) *workload.Scenario {
	return &workload.Scenario{Name: "plain", Farm: workload.Farm{Interval: 2, Target: 0.95, Slots: 1, Start: n, Min: 1, Max: max(n, 64)}}
}

// begin makes a Sim.
func begin(t testing.TB, sc *workload.Scenario, tasks *workload.Tasks, seed uint64) *Sim {
	t.Helper()
	s, err := New(Config{Scenario: sc, Tasks: tasks, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// coast runs to the horizon without a decision.
func (s *Sim) coast() Result {
	for s.Advance() {
	}
	return s.Result()
}

func law(t testing.TB, spec string) policy.Policy {
	t.Helper()
	p, err := policy.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
