package sim

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"farmhand/policy"
	"farmhand/sim/workload"
)

// sample are figures of independent runs.
type sample []float64

// interval is the mean, and half of its 99.9 % confidence interval (Student's t).
func (x sample) interval() (mean, half float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	squares := 0.0
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}
	return mean, t.Quantile(0.9995) * math.Sqrt(squares/(n-1)/n)
}

// contains fails unless the interval, widened by a share of what is wanted for
// what is only approximate, holds it, and is narrow enough to mean something.
func (x sample) contains(t *testing.T, what string, want, loose float64) {
	t.Helper()
	mean, half := x.interval()
	if math.Abs(mean-want) > half+loose*math.Abs(want) {
		t.Errorf("%s: %.5g ± %.2g over %d runs, want %.5g", what, mean, half, len(x), want)
	}
	if half > 0.05*math.Abs(want) {
		t.Errorf("%s: ± %.2g of %.5g proves little", what, half, want)
	}
}

// replicate runs a scenario with independent tasks, each run with so many.
func replicate(t *testing.T, sc *workload.Scenario, runs int, rate float64, service workload.Law, tasks int, look func(*Result)) {
	t.Helper()
	if testing.Short() {
		t.Skip("confidence takes millions of tasks")
	}
	s := &Sim{}
	for i := range runs {
		seed := uint64(100 + i)
		if err := s.Reset(Config{Scenario: sc, Tasks: poisson(seed, rate, service, float64(tasks)/rate), Seed: seed}); err != nil {
			t.Fatal(err)
		}
		r := s.coast()
		look(&r)
	}
}

// Queues of which the mean wait is known in closed form: Erlang's C for M/M/c,
// Pollaczek and Khinchine for M/G/1, of which M/D/1 is one. Allen and Cunneen's
// M/G/c is an approximation, good to some 5 % here.
func TestWaitsAreThoseOfQueueingTheory(t *testing.T) {
	for _, c := range []struct {
		name     string
		replicas int
		slots    int
		load     float64 // Erlangs
		service  workload.Law
		cs2      float64
		loose    float64
	}{
		{"M/M/1", 1, 1, 0.7, exponential(0.04), 1, 0},
		{"M/M/10", 10, 1, 7, exponential(0.04), 1, 0},
		{"M/M/12 as 4 of 3 slots", 4, 3, 9, exponential(0.04), 1, 0},
		{"M/D/1", 1, 1, 0.8, constant(0.04), 0, 0},
		{"M/G/1 cv 0.6", 1, 1, 0.75, lognormal{0.04, 0.6}, 0.36, 0},
		{"M/G/1 cv 1.5", 1, 1, 0.5, lognormal{0.04, 1.5}, 2.25, 0},
		{"M/G/8 cv 0.6", 8, 1, 6, lognormal{0.04, 0.6}, 0.36, 0.06},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sc := plain(c.replicas)
			sc.Farm.Slots = c.slots
			s, servers := c.service.Mean(), c.replicas*c.slots
			rate := c.load / s
			var wait, number, busy, little sample
			tasks := 40_000
			if servers > 1 { // few tasks wait
				tasks = 120_000
			}
			replicate(t, sc, 40, rate, c.service, tasks, func(r *Result) {
				wait = append(wait, r.Wait)
				number = append(number, r.Mean)
				busy = append(busy, r.BusyFraction)
				little = append(little, r.Mean/(rate*(r.Wait+r.Service)))
			})
			want := policy.Wait(servers, c.load, s, 1, c.cs2)
			wait.contains(t, "mean wait", want, c.loose)
			number.contains(t, "number in the system", rate*(want+s), c.loose)
			busy.contains(t, "busy fraction", c.load/float64(servers), 0)
			little.contains(t, "Little's law, L/λW", 1, 0)
		})
	}
}

// The whole law of the sojourn in M/M/1 and M/M/c, at some deadlines: the share on
// time, and the quantiles.
func TestSojournsAreThoseOfQueueingTheory(t *testing.T) {
	const service = 0.04
	for _, c := range []struct {
		servers int
		load    float64
	}{{1, 0.4}, {10, 7}} {
		later := func(x float64) float64 { // P(sojourn > x)
			spare := float64(c.servers) - 1 - c.load // of the rates, in 1/service
			wait := policy.ErlangC(c.servers, c.load)
			return math.Exp(-x/service) * (1 + wait*(1-math.Exp(-x/service*spare))/spare)
		}
		for _, deadline := range []float64{0.05, 0.15} {
			sc := plain(c.servers)
			sc.Farm.Deadline = deadline
			var late, p50, p95, p99 sample
			replicate(t, sc, 40, c.load/service, exponential(service), 80_000, func(r *Result) {
				late = append(late, 1-float64(r.OnTime()))
				p50, p95, p99 = append(p50, later(r.P50)), append(p95, later(r.P95)), append(p99, later(r.P99))
			})
			late.contains(t, "share late", later(deadline), 0)
			p50.contains(t, "beyond p50", 0.50, 0.002)
			p95.contains(t, "beyond p95", 0.05, 0.01) // quantiles of runs are biased a little
			p99.contains(t, "beyond p99", 0.01, 0.02)
		}
	}
}
