package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"farmhand/controller"
	"farmhand/policy/guard"
	"farmhand/sim"
	"farmhand/sim/workload"
	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/telemetry"
)

// Measured is what was measured of the platform while farms were played, over all
// of them. Laws are tables of quantiles at equal steps from 0 to 1, in seconds.
type Measured struct {
	Startup  []float64 `json:"startup_s"` // from the platform's decision to start a replica to its readiness
	Starts   int       `json:"starts"`
	Call     []float64 `json:"call_s"` // of a scale call and its read-back
	Calls    int       `json:"calls"`
	Handover float64   `json:"handover_s"` // from a task's acceptance to its worker, where one is free: the lowest decile of waits
	Again    int       `json:"again"`      // tasks that took more than one attempt, or came to nothing
	// How late the sender was: from the instant at which a task was to come to its acceptance.
	LatenessP50 float64 `json:"sender_lateness_p50_s"`
	LatenessP99 float64 `json:"sender_lateness_p99_s"`
	LatenessMax float64 `json:"sender_lateness_max_s"`
}

// measure sums up what farms that were played at the same time tell of the
// platform.
func measure(farms []played, work []arrival, began time.Time, starts []float64) (m Measured) {
	var calls, waits, late []float64
	for i := range farms {
		for _, r := range farms[i].receipts {
			if r.Acted != nil && r.Acted.Error == "" {
				calls = append(calls, r.Acted.Seconds)
			}
		}
		for k := range farms[i].results {
			r := &farms[i].results[k]
			if again(r) {
				m.Again++
			}
			waits = append(waits, r.Wait)
			late = append(late, accepted(r).Sub(began.Add(work[k].at)).Seconds())
		}
	}
	m.Handover = quantile(waits, 0.1)
	m.Starts, m.Calls = len(starts), len(calls)
	m.Startup, m.Call = table(starts), table(calls)
	m.LatenessP50, m.LatenessP99, m.LatenessMax = quantile(late, 0.5), quantile(late, 0.99), slices.Max(late)
	return m
}

// again reports whether a task was tried more than once, or came to nothing.
func again(r *jobapi.Result) bool { return r.Attempt != 1 || r.Lost > 0 || r.State != skeleton.Done }

// table is a law's quantiles; none, where there are no samples.
func table(samples []float64) []float64 {
	if len(samples) == 0 {
		return nil
	}
	const steps = 40
	values := make([]float64, steps+1)
	for i := range values {
		values[i] = quantile(samples, float64(i)/steps)
	}
	return values
}

// law of a table.
func law(values []float64) (workload.Law, error) {
	if len(values) == 0 {
		return nil, nil
	}
	at := make([]float64, len(values))
	for i := range at {
		at[i] = float64(i) / float64(len(at)-1)
	}
	return workload.NewQuantiles(at, values)
}

// lookEvery is how often the controller looks at a farm that is not settled.
const lookEvery = 1

// platform is the simulator's, as it was measured, for tasks that have an overhead.
func (m *Measured) platform(o Overhead) (p workload.Platform, err error) {
	p = workload.Platform{Seen: workload.Looks{Every: lookEvery}, Overhead: max(0, o.Call), Answer: workload.Held{Value: max(0, o.Settle)},
		Victim: workload.IdleFirst, Balance: workload.LeastBusy}
	if p.Startup, err = law(m.Startup); err != nil {
		return p, fmt.Errorf("bench: measured start-ups: %w", err)
	}
	if p.Call, err = law(m.Call); err != nil {
		return p, fmt.Errorf("bench: measured scale calls: %w", err)
	}
	return p, nil
}

// Overhead is what a farm's tasks took beyond their workers' sleep: means, in
// seconds.
type Overhead struct {
	Call   float64 `json:"call_s"`   // from hand-over to answer
	Settle float64 `json:"settle_s"` // from the answer to the accepted result; the lease lives until then
}

// overhead of the tasks that were done at the first attempt.
func overhead(results []jobapi.Result, work []arrival) (o Overhead) {
	n := 0.0
	for i := range results {
		if r := &results[i]; !again(r) {
			o.Call += r.Service - work[i].seconds
			o.Settle += r.Sojourn - r.Wait - r.Service
			n++
		}
	}
	return Overhead{o.Call / max(1, n), o.Settle / max(1, n)}
}

// compare says what one policy reached on both sides.
func (c *LiveConfig) compare(ctx context.Context, p *played, work []arrival, began time.Time, m *Measured) (row LiveRow, err error) {
	length := seconds(c.Scenario.Horizon)
	row = LiveRow{Policy: p.name(), Tasks: len(work), Overhead: overhead(p.results, work), Rows: p.rows}
	got, err := paidFor(p.receipts, began, began.Add(length))
	if err != nil {
		return row, err
	}
	var sojourns []float64
	late := 0
	at, service := make([]float64, len(work)), make([]float64, len(work))
	// The simulated farm decides at 0, an interval later …; so does the live one from
	// some decision of its rest on.
	rest := began.Sub(restFrom(p.receipts, began.Add(-c.Rest))).Seconds()
	for i := range p.results {
		r := &p.results[i]
		sojourns = append(sojourns, r.Sojourn)
		if r.Late {
			late++
		}
		at[i], service[i] = rest+accepted(r).Sub(began).Seconds(), work[i].seconds
		if i > 0 {
			at[i] = max(at[i], at[i-1]) // tasks of one piece are accepted at one instant, to the last digit or so
		}
		at[i] = min(at[i], math.Nextafter(rest+c.Scenario.Horizon, 0)) // the sender may have been late
	}
	row.Live = Side{OnTime: 1 - float64(late)/float64(len(work)), MeanWorkers: got.Mean, PeakWorkers: float64(got.Peak), Actions: float64(got.Actions),
		Starts: float64(got.Starts), P50: quantile(sojourns, 0.5), P95: quantile(sojourns, 0.95), P99: quantile(sojourns, 0.99)}
	tasks := &workload.Tasks{At: at, Service: service, Horizon: rest + c.Scenario.Horizon}
	n := 0.0
	for i := range p.receipts {
		if o := &p.receipts[i].Observation; o.At.After(began) && o.At.Before(began.Add(length)) && o.Age.Known() {
			row.Live.SignalAge += float64(o.Age)
			n++
		}
	}
	row.Live.SignalAge /= max(1, n)
	r := replay{scenario: c.Scenario, contender: p.contender, tasks: tasks, rest: rest, measured: m, overhead: row.Overhead, beat: beat(row.Live.SignalAge)}
	err = r.into(ctx, &row, c.Seed, c.Sims)
	return row, err
}

// restFrom is the first decision after an instant.
func restFrom(receipts []controller.Receipt, after time.Time) time.Time {
	for i := range receipts {
		if receipts[i].At.After(after) {
			return receipts[i].At
		}
	}
	return after
}

// beat is when in a second the simulator's heartbeats must come for its signals to
// be of that age at its decisions, which come at whole seconds. Live decisions and
// heartbeats keep time, each by its own timer, so that the age hardly changes.
func beat(age float64) float64 {
	_, part := math.Modf(1 - math.Mod(age, 1))
	return part
}

// replay simulates the tasks of a live farm.
type replay struct {
	scenario *workload.Scenario
	contender
	tasks    *workload.Tasks // after a rest without any
	rest     float64
	measured *Measured
	overhead Overhead
	beat     float64
}

// into runs the simulator with several seeds of the platform, and enters what they
// came to into a row.
func (r *replay) into(ctx context.Context, row *LiveRow, seed uint64, runs int) error {
	sides := make([]Side, runs)
	for i := range sides {
		side, rows, err := r.run(ctx, seed+uint64(i))
		if err != nil {
			return err
		}
		sides[i] = side
		if i == 0 {
			row.SimRows = rows
		}
	}
	for _, f := range []func(*Side) *float64{
		func(s *Side) *float64 { return &s.OnTime }, func(s *Side) *float64 { return &s.MeanWorkers }, func(s *Side) *float64 { return &s.PeakWorkers },
		func(s *Side) *float64 { return &s.Actions }, func(s *Side) *float64 { return &s.Starts },
		func(s *Side) *float64 { return &s.SignalAge }, func(s *Side) *float64 { return &s.P50 }, func(s *Side) *float64 { return &s.P95 }, func(s *Side) *float64 { return &s.P99 },
	} {
		lo, hi, sum := math.Inf(1), math.Inf(-1), 0.0
		for i := range sides {
			x := *f(&sides[i])
			lo, hi, sum = min(lo, x), max(hi, x), sum+x
		}
		*f(&row.Sim), *f(&row.Lo), *f(&row.Hi) = sum/float64(runs), lo, hi
	}
	row.OnTimeDifference = 100 * (row.Live.OnTime - row.Sim.OnTime)
	row.WorkersDifference = 100 * (row.Live.MeanWorkers/row.Sim.MeanWorkers - 1)
	return nil
}

// run simulates once. What came before the end of the rest is not counted.
func (r *replay) run(ctx context.Context, seed uint64) (side Side, rows []telemetry.Row, err error) {
	sc := *r.scenario
	if sc.Platform, err = r.measured.platform(r.overhead); err != nil {
		return side, nil, err
	}
	sc.Farm.Start = sc.Farm.Min
	d, err := r.driver()
	if err != nil {
		return side, nil, err
	}
	d.Guard = &guard.Settings{}
	s, err := sim.New(sim.Config{Scenario: &sc, Tasks: r.tasks, Seed: seed, Beat: &r.beat})
	if err != nil {
		return side, nil, err
	}
	var rested *sim.Totals
	before, age, peak := 0.0, 0.0, 0
	d.Step = func(st *sim.Step) {
		t := s.Totals()
		if st.At < r.rest {
			return
		}
		if rested == nil { // the count has not changed since the rest ended, but for a call that waited
			rested, before = &t, t.WorkerSeconds-float64(t.Workers)*(t.At-r.rest)
		}
		peak = max(peak, t.Workers)
		age += float64(st.Observation.Age)
		n := st.Observation.Desired
		if !st.Outcome.Hold {
			n = st.Outcome.Replicas
		}
		rows = append(rows, telemetry.RowOf(st.Observation, st.Wish.Replicas, n))
	}
	got, err := s.Play(ctx, d)
	if err != nil {
		return side, nil, err
	}
	if rested == nil {
		return side, nil, fmt.Errorf("bench: no decision in %g s after the rest", r.tasks.Horizon-r.rest)
	}
	return Side{OnTime: float64(got.OnTime()), MeanWorkers: (got.WorkerSeconds - before) / (got.Horizon - r.rest), PeakWorkers: float64(peak),
		Actions: float64(got.Actions - rested.Actions), Starts: float64(got.Starts - rested.Starts), P50: got.P50, P95: got.P95, P99: got.P99,
		SignalAge: age / float64(len(rows))}, rows, nil
}
