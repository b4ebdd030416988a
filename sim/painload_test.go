package sim

import (
	"math"
	"slices"
	"testing"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim/workload"
)

// join are the tasks of two stretches of time, the later one second.
func join(a, b *workload.Tasks) *workload.Tasks {
	return &workload.Tasks{Horizon: b.Horizon, At: slices.Concat(a.At, b.At), Service: slices.Concat(a.Service, b.Service)}
}

// P06 (kubernetes/enhancements PR#883): a churn budget holds in every ten minutes,
// and says so where it bound. What is limited are the scale calls.
func TestP06ChurnBudget(t *testing.T) {
	tasks := &workload.Tasks{}
	for at := 10.0; at < 3600; at += 90 {
		tasks = join(tasks, even(30, at, at+30, constant(0.3), 3600))
	}
	busiest := func(g guard.Settings) (calls int, bound int) {
		sc := cloud(1)
		sc.Farm.Deadline = 1
		run := follow(t, sc, tasks, law(t, "staffing:down=0"), g, nil)
		for _, from := range run.at {
			calls = max(calls, changes(run.between(from, from+600)))
		}
		return calls, run.limits[guard.LimitActions]
	}
	if calls, bound := busiest(guard.Settings{ActionsPerHour: 30, Burst: 5}); calls > 10 || bound == 0 {
		t.Errorf("%d calls in ten minutes; the budget bound %d times", calls, bound)
	}
	if calls, bound := busiest(guard.Settings{}); calls <= 10 {
		t.Errorf("%d calls without that budget, which bound %d times: it proves nothing", calls, bound)
	}
}

// P07 (mbogus/kube-amqp-autoscale#10): with a hold longer than their distance, peaks
// of a second leave the count as it is.
func TestP07PeaksWithinTheHold(t *testing.T) {
	tasks := &workload.Tasks{}
	for at := 30.0; at < 1500; at += 60 {
		tasks = join(tasks, even(200, at, at+1, constant(0.1), 1500))
	}
	sc := cloud(1)
	sc.Farm.Deadline = 5
	// Nothing is taken away in the first two minutes; the hold of what the first peak asked for ends at 152 s.
	calm := follow(t, sc, tasks, law(t, "staffing:down=120"), guard.Settings{}, nil)
	if list := calm.between(160, 1500); changes(list) > 0 || list[0] < 2 {
		t.Errorf("%d changes, from %d", changes(list), list[0])
	}
	if wild := follow(t, sc, tasks, law(t, "staffing:down=0"), guard.Settings{}, nil); changes(wild.between(160, 1500)) < 20 {
		t.Error("without a hold nothing swings: it proves nothing")
	}
}

// P10 (knative/serving#3153): while replicas still start and work waits, the count
// does not fall below what is needed.
func TestP10CountStaysWhileReplicasStart(t *testing.T) {
	const need = 200
	sc := cloud(20)
	sc.Farm.Max = 1000
	sc.Platform.Startup = uniform{1, 120} // fewer than two a second
	tasks := join(even(10, 0, 130, constant(1), 130), even(need, 130, 500, constant(1), 500))
	lapses := func(l policy.Policy) (n int, reached bool) {
		run := follow(t, sc, tasks, l, guard.Settings{}, nil)
		for i, wanted := range run.counts {
			reached = reached || wanted >= need
			if reached && run.ready[i] < need && run.waits[i] > 0 && wanted < need {
				n++
			}
		}
		return n, reached
	}
	for _, spec := range []string{"staffing", "kpa", "forecast"} {
		if n, reached := lapses(law(t, spec)); n > 0 || !reached {
			t.Errorf("%s: below the need %d times; reached: %t", spec, n, reached)
		}
	}
	panics := naive(func(o *policy.Observation) int { // the plan of a burst ends with it, the calm law sees the ready ones
		switch {
		case o.Level.Rate < need/2:
			return 20
		case o.Level.Age < 30:
			return 2 * need
		}
		return o.Ready
	})
	if n, _ := lapses(panics); n == 0 {
		t.Error("a plan that is given up halfway is not noticed")
	}
}

// P11 (knative/serving#13284), P13 (kedacore/keda#1323): what is ordered and not
// there yet counts, however slow starts are.
func TestP11P13StartingReplicasCount(t *testing.T) {
	each := naive(func(o *policy.Observation) int { // each look orders what waits
		return o.Desired + int(o.Waiting)
	})
	// 1000 tasks of 1 s, and starts of 25 s: 29 workers are done after a minute. How long a
	// start takes is known from one before.
	sc := cloud(1)
	sc.Farm.Max, sc.Farm.Prior = 40, 1
	sc.Platform.Startup = constant(25)
	batch := more(more(&workload.Tasks{Horizon: 400}, 160, 5, 1), 1000, 150, 1)
	run := follow(t, sc, batch, law(t, "staffing"), guard.Settings{}, nil)
	want, most, calls := 1000/35.0, slices.Max(run.counts), changes(run.between(150, 200))
	if math.Abs(float64(most)-want) > 0.2*want || run.MaxSojourn > 1.2*60 || calls > 1 {
		t.Errorf("P11: %d ordered in %d calls, the last task took %.0f s; want %.0f", most, calls, run.MaxSojourn, want)
	}
	sc.Farm.Max = 1000
	if run := follow(t, sc, batch, each, unguarded, nil); run.Starts < 100 {
		t.Errorf("P11: a law that counts nothing started %d", run.Starts)
	}

	// 100 tasks; a worker needs three looks to start.
	sc = cloud(0)
	sc.Farm.Interval, sc.Farm.Min, sc.Farm.Max, sc.Farm.Prior = 30, 0, 1000, 600
	sc.Platform.Startup = constant(100)
	batch = more(&workload.Tasks{Horizon: 500}, 100, 10, 600)
	for _, spec := range []string{"staffing", "keda:target=1", "dask-adaptive:duration=600"} {
		if run := follow(t, sc, batch, law(t, spec), guard.Settings{}, nil); run.Starts != 100 {
			t.Errorf("P13: %s ordered %d for 100 tasks", spec, run.Starts)
		}
	}
	if run := follow(t, sc, batch, each, unguarded, nil); run.Starts < 300 {
		t.Errorf("P13: a law that counts nothing ordered %d", run.Starts)
	}
}

// P14 (openfaas/faas#1271): a steady rate is answered with what it needs, not with
// the most there may be, and its end not with an instant drop.
func TestP14AnswersAreProportional(t *testing.T) {
	tasks := even(25, 0, 720, constant(0.1), 1500) // 2.5 Erlangs
	for _, spec := range []string{"staffing", "hpa", "target-tracking"} {
		run := follow(t, cloud(3), tasks, law(t, spec), guard.Settings{}, nil)
		list := run.between(500, 720)
		if slices.Min(list) < 3 || slices.Max(list) > 4 {
			t.Errorf("%s: from %d to %d workers for 2.5 Erlangs", spec, slices.Min(list), slices.Max(list))
		}
		if after := run.between(720, 775); slices.Min(after) < 3 {
			t.Errorf("%s: %d workers within a minute of the end", spec, slices.Min(after))
		}
		if end := run.counts[len(run.counts)-1]; spec == "staffing" && end != 1 {
			t.Errorf("%s: %d workers in the end", spec, end)
		}
	}
	run := follow(t, cloud(3), tasks, law(t, "openfaas-ce:cap=20"), guard.Settings{}, nil)
	if slices.Max(run.between(500, 720)) < 20 || slices.Min(run.between(720, 775)) > 1 {
		t.Error("the alert rule, which the complaint is about, does neither")
	}
}

// P17 (knative/serving#6780): the time at idle counts from the last work, after ten
// hours as in the first.
func TestP17IdleHoldCountsFromTheLastWork(t *testing.T) {
	sc := cloud(0)
	sc.Farm.Interval, sc.Farm.Min = 10, 0
	const end, hold = 36_000, 1800
	tasks := even(0.1, 0, end, constant(0.5), end+2*hold)
	stays := func(l policy.Policy) (zero float64) {
		run := follow(t, sc, tasks, l, guard.Settings{}, nil)
		for i, n := range run.counts {
			if n == 0 && run.at[i] > 60 {
				return run.at[i]
			}
		}
		return math.Inf(1)
	}
	if zero := stays(law(t, "staffing:down=1800")); zero < end-5+hold || zero > end+hold+200 {
		t.Errorf("at zero after %.0f s, the last task was done after %d", zero, end-5)
	}
	if zero := stays(law(t, "staffing")); zero > end+hold {
		t.Errorf("with the usual hold: at zero after %.0f s", zero)
	}
}

// P23 (kedacore/keda#6571): running tasks are subtracted once.
func TestP23RunningTasksAreSubtractedOnce(t *testing.T) {
	sc := cloud(5)
	sc.Farm.Prior, sc.Farm.Min = 600, 5
	tasks := more(&workload.Tasks{Horizon: 300}, 10, 130, 600) // 5 run, 5 wait
	for _, spec := range []string{"staffing", "keda:target=1", "dask-adaptive:duration=600"} {
		if run := follow(t, sc, tasks, law(t, spec), guard.Settings{}, nil); run.Starts != 5 {
			t.Errorf("%s: %d more", spec, run.Starts)
		}
	}
	twice := naive(func(o *policy.Observation) int { return o.Desired + max(0, int(o.Waiting)-int(o.Running)) })
	if run := follow(t, sc, tasks, twice, unguarded, nil); run.Starts >= 5 {
		t.Error("a law that subtracts twice is not told from one that does not")
	}
}

// P24 (kubernetes/kubernetes#116984): one task more than ten workers take needs an
// eleventh, whatever share of the load it is.
func TestP24OneTaskMoreThanFits(t *testing.T) {
	sc := cloud(10)
	sc.Farm.Slots = 4
	tasks := more(more(&workload.Tasks{Horizon: 300}, 40, 1, 1e5), 1, 200, 1e5)
	eleventh := func(spec string) float64 {
		run := follow(t, sc, tasks, law(t, spec), guard.Settings{}, nil)
		for i, n := range run.counts {
			if n > 10 {
				return run.at[i]
			}
		}
		return math.Inf(1)
	}
	if at := eleventh("staffing:beta=0"); at < 200 || at > 204 {
		t.Errorf("the eleventh worker was ordered at %g s", at)
	}
	if at := eleventh("staffing"); at > 204 {
		t.Errorf("with the usual reserve: at %g s", at)
	}
	if at := eleventh("hpa:metric=tasks,target=1"); at < 300 {
		t.Errorf("the dead-band that the complaint is about ordered one at %g s", at)
	}
}

// P26 (dask/distributed#2709): a worker of two slots does the work of two.
func TestP26SlotsAreCapacity(t *testing.T) {
	sc := cloud(1)
	sc.Farm.Slots, sc.Farm.Prior = 2, 0.5
	sc.Farm.Deadline = 20
	run := follow(t, sc, more(&workload.Tasks{Horizon: 300}, 100, 130, 0.5), law(t, "staffing"), guard.Settings{}, nil)
	if n := slices.Max(run.counts); n < 1 || n > 3 || run.MaxSojourn > 24 {
		t.Errorf("%d workers, the last task after %.1f s", n, run.MaxSojourn)
	}
	sc.Farm.Slots = 1
	if one := follow(t, sc, more(&workload.Tasks{Horizon: 300}, 100, 130, 0.5), law(t, "staffing"), guard.Settings{}, nil); slices.Max(one.counts) <= slices.Max(run.counts) {
		t.Errorf("with one slot %d workers, with two %d", slices.Max(one.counts), slices.Max(run.counts))
	}
}

// P33 (volcano-sh/kthena#1037): what was counted in the past is no load: ten minutes
// after the traffic all laws are back at the least.
func TestP33CountersAreNoLoad(t *testing.T) {
	tasks := even(50, 0, 300, constant(0.1), 900)
	for _, spec := range []string{"staffing", "hpa", "keda", "kpa", "forecast", "mpc", "dask-adaptive"} {
		sc := cloud(6)
		sc.Farm.Deadline = 1
		run := follow(t, sc, tasks, law(t, spec), guard.Settings{}, nil)
		if n := run.counts[len(run.counts)-1]; n != 1 {
			t.Errorf("%s: %d workers ten minutes after the traffic", spec, n)
		}
	}
	sum := 0.0
	counter := naive(func(o *policy.Observation) int { sum += o.Last.Arrivals; return int(sum / 1000) })
	if run := follow(t, cloud(6), tasks, counter, unguarded, nil); run.counts[len(run.counts)-1] == 1 {
		t.Error("a counter taken for a gauge is not noticed")
	}
}

// P38 (kubernetes/kubernetes#72775): replicas beyond the count, as there are while
// all are replaced, do not become the count.
func TestP38SurgeIsNotAdopted(t *testing.T) {
	tasks := even(50, 0, 900, constant(0.1), 900)
	surge := func(at float64, o *policy.Observation) {
		if at >= 400 && at < 700 {
			o.Ready += (o.Ready + 3) / 4
			o.Starting = max(0, o.Desired-o.Ready)
		}
	}
	for _, spec := range []string{"staffing", "kpa", "target-tracking", "forecast"} {
		sc := cloud(7)
		sc.Farm.Deadline = 1
		run := follow(t, sc, tasks, law(t, spec), guard.Settings{}, surge)
		before, during := run.between(380, 400), run.between(400, 700)
		if lo, hi := slices.Min(during), slices.Max(during); lo < slices.Min(before)-1 || hi > slices.Max(before)+1 {
			t.Errorf("%s: %d before, from %d to %d during the roll-out", spec, before[0], lo, hi)
		}
	}
	adopts := naive(func(o *policy.Observation) int { return max(o.Ready, 1) })
	if run := follow(t, cloud(7), tasks, adopts, unguarded, surge); slices.Max(run.counts) < 20 {
		t.Error("a law that adopts what it sees is not noticed")
	}
}

// P40 (kubernetes/kubernetes#87199): replicas that never become ready are no reason
// to order ever more of them.
func TestP40FailedStartsAreNoDemand(t *testing.T) {
	sc := cloud(6)
	sc.Farm.Max = 200
	sc.Platform.Startup = constant(1e6)
	tasks := join(even(40, 0, 130, constant(0.1), 130), even(100, 130, 730, constant(0.1), 730)) // 10 Erlangs: 13 are wanted
	starts := func(l policy.Policy, g guard.Settings) int { return follow(t, sc, tasks, l, g, nil).Starts }
	for _, spec := range []string{"staffing", "hpa", "target-tracking"} {
		if n := starts(law(t, spec), guard.Settings{}); n > 13 {
			t.Errorf("%s: %d starts in ten minutes", spec, n)
		}
	}
	each := naive(func(o *policy.Observation) int { return o.Desired + 1 })
	if n := starts(each, unguarded); n < 3*13 {
		t.Errorf("a law that orders one at each look makes %d starts", n)
	}
}
