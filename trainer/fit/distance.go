package fit

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/stat"

	"farmhand/evaluate"
	"farmhand/gate"
	"farmhand/policy"
	"farmhand/sim/workload"
	"farmhand/skeleton/signal"
	"farmhand/telemetry"
	"farmhand/trainer"
)

// How much is simulated for a comparison.
const (
	drawSeed  = 3001 // neither training's, nor evaluation's, nor the gate's
	draws     = 20_000
	hours     = 4 // of arrivals
	mostPlays = 4 // stretches that are played again
)

// Compare the model with what was measured: the arrivals in an interval, the services,
// the start-ups, and what share is on time where the model is given the replicas that
// the farm had.
func (m *Model) Compare(ctx context.Context, k Known) error {
	all, _ := gate.Stretches(k.Rows, k.Periods, k.Farm, everything)
	onTime, err := onTime(ctx, all, k.Rows)
	if err != nil {
		return err
	}
	m.Fit.Distances = []trainer.Distance{arrivals(m.Scenario, all), service(m.Scenario, k.Periods), startup(m.Scenario, k.Rows), onTime}
	return nil
}

// arrivals per second, over the intervals of a farm.
func arrivals(s *workload.Scenario, list []*evaluate.Past) trainer.Distance {
	var measured, simulated []float64
	for _, p := range list {
		for _, b := range p.Bins {
			measured = append(measured, b.Arrivals/b.Seconds)
		}
	}
	interval := s.Farm.Interval
	for i := range uint64(hours) {
		at, _ := s.Arrivals.Draw(workload.Stream(drawSeed+i, workload.StreamArrivals), s.Horizon, nil)
		for from, n := 0, 1; float64(n)*interval <= s.Horizon; n++ {
			to, _ := slices.BinarySearch(at, float64(n)*interval)
			simulated = append(simulated, float64(to-from)/interval)
			from = to
		}
	}
	return compare("arrivals per second", simulated, nil, measured, nil, len(measured))
}

// service times: both as the histogram has them, since it is what was measured.
func service(s *workload.Scenario, periods []telemetry.Period) trainer.Distance {
	var measured, simulated signal.Hist
	for i := range periods {
		measured.Merge(&periods[i].Service)
	}
	r := workload.Stream(drawSeed, workload.StreamService)
	for range draws {
		simulated.Add(s.Service.Draw(r))
	}
	bins := func(h *signal.Hist) (x, n []float64) {
		for _, b := range h.Bins {
			x, n = append(x, float64(b.At)), append(n, float64(b.N))
		}
		return x, n
	}
	x, nx := bins(&simulated)
	y, ny := bins(&measured)
	d := compare("service time", x, nx, y, ny, measured.N)
	d.Simulated, d.Measured = policy.Maybe(simulated.Sum/draws), policy.Unknown
	if measured.N > 0 {
		d.Measured = policy.Maybe(measured.Sum / float64(measured.N))
	}
	return d
}

// startup compares means alone: rows have no more than the mean of the last start-ups.
func startup(s *workload.Scenario, rows []telemetry.Row) trainer.Distance {
	var lags []float64
	for _, r := range rows {
		if n := len(lags); r.StartupLag > 0 && (n == 0 || lags[n-1] != float64(r.StartupLag)) {
			lags = append(lags, float64(r.StartupLag))
		}
	}
	d := trainer.Distance{Of: "start-up as a controller sees it", KS: policy.Unknown, Simulated: policy.Maybe(s.Platform.Startup.Mean() + 0.5), Measured: policy.Unknown, N: len(lags)}
	if len(lags) > 0 {
		d.Measured = policy.Maybe(stat.Mean(lags, nil))
	}
	return d
}

// onTime lets the model serve the last stretches with the replicas that the farm had.
func onTime(ctx context.Context, all []*evaluate.Past, rows []telemetry.Row) (trainer.Distance, error) {
	d := trainer.Distance{Of: "share on time with the same replicas", KS: policy.Unknown, Simulated: policy.Unknown, Measured: policy.Unknown}
	last, n := all[max(0, len(all)-mostPlays):], 1
	for _, p := range last {
		n += len(p.Bins)
	}
	decided, late := 0.0, 0.0
	for _, r := range rows[max(0, len(rows)-n):] { // about theirs
		if r.Decided.Known() && r.Late.Known() {
			decided, late = decided+float64(r.Decided), late+float64(r.Late)
		}
	}
	if decided == 0 {
		return d, nil // no task was due
	}
	d.Measured, d.N = policy.Maybe(1-late/decided), int(decided)
	sum, tasks := 0.0, 0.0
	replay := evaluate.Replay{Seeds: 1, First: drawSeed}
	for _, p := range last {
		e, err := replay.Actual(ctx, p)
		if err != nil {
			return d, err
		}
		if e.OnTime.Known() {
			sum, tasks = sum+float64(e.OnTime)*e.Tasks, tasks+e.Tasks
		}
	}
	if tasks > 0 {
		d.Simulated = policy.Maybe(sum / tasks)
	}
	return d, nil
}

// compare two samples, or two of values with weights.
func compare(of string, x, wx, y, wy []float64, n int) trainer.Distance {
	d := trainer.Distance{Of: of, KS: policy.Unknown, Simulated: policy.Unknown, Measured: policy.Unknown, N: n}
	if len(x) == 0 || len(y) == 0 {
		return d
	}
	if wx == nil { // values with weights are in order
		slices.Sort(x)
		slices.Sort(y)
	}
	d.KS = policy.Maybe(stat.KolmogorovSmirnov(x, wx, y, wy))
	d.Simulated, d.Measured = policy.Maybe(stat.Mean(x, wx)), policy.Maybe(stat.Mean(y, wy))
	return d
}
