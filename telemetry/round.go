package telemetry

import (
	"math"
	"slices"
	"strconv"

	"farmhand/policy"
)

// Digits is how many significant digits Round leaves.
const Digits = 4

// Round cuts what was measured in an observation to Digits significant digits;
// whole numbers stay as they are.
//
// A receipt holds the observation of its decision bit for bit. Of 17 digits most
// are noise, which no codec makes shorter: with them a day of receipts of a busy
// farm is larger than 16 MB, without them about half as large. So a controller
// should round before it decides. That changes a number by 0.05 % at most, where
// quantiles are known to 2 %, and rates no better than chance lets them.
func Round(o *policy.Observation) {
	for _, m := range []*policy.Maybe{&o.Age, &o.Draining, &o.StartupLag, &o.Waiting, &o.Running, &o.Delayed, &o.OldestWait, &o.Overdue,
		&o.NextDue, &o.RunningAge, &o.Service, &o.PeakLoad, &o.CPU, &o.Memory, &o.Busy} {
		*m = policy.Maybe(round(float64(*m)))
	}
	for _, w := range []*policy.Window{&o.Last, &o.Short, &o.Long} {
		for _, x := range []*float64{&w.Covered, &w.Arrivals, &w.Starts, &w.Done, &w.Decided, &w.Late, &w.Failed, &w.Lost, &w.Busy} {
			*x = round(*x)
		}
		for _, s := range []*policy.Stats{&w.Wait, &w.Service, &w.Sojourn} {
			for _, x := range []*float64{&s.N, &s.Mean, &s.SD, &s.P50, &s.P95, &s.P99, &s.Max} {
				*x = round(*x)
			}
		}
	}
	o.Level = roundLevel(o.Level)
	o.Past = slices.Clone(o.Past) // it may be shared
	for i := range o.Past {
		o.Past[i] = roundLevel(o.Past[i])
	}
}

func roundLevel(l policy.Level) policy.Level {
	return policy.Level{Rate: round(l.Rate), Age: round(l.Age), Load: round(l.Load), Sojourn: round(l.Sojourn)}
}

// round goes over the decimal digits: so the result is the float64 that is
// nearest to them, and JSON writes no more than them.
func round(x float64) float64 {
	if x == math.Trunc(x) || math.IsNaN(x) {
		return x
	}
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', Digits, 64), 64)
	if err != nil {
		return x // it would round to infinity
	}
	return y
}
