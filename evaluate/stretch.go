package evaluate

import (
	"math"
	"slices"

	"farmhand/sim"
	"farmhand/sim/workload"
)

// stretch is the part of a run between two instants, as a run of its own.
func stretch(s *workload.Scenario, tasks *workload.Tasks, seed uint64, from, to float64) sim.Config {
	to = min(to, tasks.Horizon)
	if from <= 0 && to >= tasks.Horizon {
		return sim.Config{Scenario: s, Tasks: tasks, Seed: seed}
	}
	part := *s
	part.Horizon = to - from
	lo, hi := arrived(tasks, from), arrived(tasks, to)
	cut := workload.Tasks{Horizon: part.Horizon, At: make([]float64, hi-lo), Service: tasks.Service[lo:hi]}
	for i, at := range tasks.At[lo:hi] {
		cut.At[i] = at - from
	}
	if tasks.Deadline != nil {
		cut.Deadline = tasks.Deadline[lo:hi]
	}
	if tasks.Class != nil {
		cut.Class = tasks.Class[lo:hi]
	}
	if tasks.Tenant != nil {
		cut.Tenant = tasks.Tenant[lo:hi]
	}
	for _, c := range tasks.Changes {
		switch {
		case c.At >= to:
		case c.At <= from:
			cut.Changes = []workload.Change{{At: 0, Rate: c.Rate}}
		default:
			cut.Changes = append(cut.Changes, workload.Change{At: c.At - from, Rate: c.Rate})
		}
	}
	return sim.Config{Scenario: &part, Tasks: &cut, Seed: seed}
}

// arrived is how many tasks arrive before an instant.
func arrived(tasks *workload.Tasks, at float64) int {
	n, _ := slices.BinarySearch(tasks.At, at)
	return n
}

// offered is the work that a run brings, in seconds of service.
func offered(tasks *workload.Tasks) float64 {
	sum := 0.0
	for _, x := range tasks.Service {
		sum += x
	}
	return max(sum, 1)
}

// likest is where the stretch of a length begins whose arrivals in an interval are
// distributed most like all: with the least distance between the quantiles.
func likest(tasks *workload.Tasks, length, interval float64) float64 {
	whole := countQuantiles(tasks, 0, tasks.Horizon, interval)
	from, least := 0.0, math.Inf(1)
	for at := 0.0; at+length <= tasks.Horizon; at += length / 4 {
		d := 0.0
		for i, q := range countQuantiles(tasks, at, at+length, interval) {
			d += math.Abs(q - whole[i])
		}
		if d < least {
			from, least = at, d
		}
	}
	return from
}

// countQuantiles are twenty quantiles of the arrivals in an interval.
func countQuantiles(tasks *workload.Tasks, from, to, interval float64) []float64 {
	var counts []float64
	for at := from; at+interval <= to; at += interval {
		counts = append(counts, float64(arrived(tasks, at+interval)-arrived(tasks, at)))
	}
	slices.Sort(counts)
	q := make([]float64, 20)
	for i := range q {
		if len(counts) > 0 {
			q[i] = counts[int((float64(i)+0.5)/20*float64(len(counts)))]
		}
	}
	return q
}
