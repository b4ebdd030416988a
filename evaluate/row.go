package evaluate

import (
	"bytes"
	"encoding/json"
	"math"

	"farmhand/policy"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// Measure is a quantity of a run, and a column of a Row.
type Measure int

// The measures.
const (
	OnTime Measure = iota
	Late
	P50
	P95
	P99
	MeanWorkers
	PeakWorkers
	WorkerSeconds
	BusyFraction
	Actions
	Starts
	Flaps
	HandBacks
	Violating
	measures int = iota
)

var measureNames = [measures]string{
	"on_time", "late", "p50_s", "p95_s", "p99_s", "mean_workers", "peak_workers", "worker_seconds",
	"busy_fraction", "actions_per_h", "starts_per_h", "flaps_per_h", "handbacks_per_h", "violating_windows",
}

// String is the name of the column; the unit stands in it.
func (m Measure) String() string { return measureNames[m] }

// Measures lists all, in the order of the columns.
func Measures() []Measure {
	list := make([]Measure, measures)
	for i := range list {
		list[i] = Measure(i)
	}
	return list
}

// share reports whether the measure lies between 0 and 1.
func (m Measure) share() bool { return m == OnTime || m == BusyFraction || m == Violating }

// Of is the measure of one run; NaN where it is unknown. Times are seconds, Late is
// a number of tasks, Violating the share of the intervals with decided tasks in
// which fewer than the target were on time.
func (m Measure) Of(r *sim.Result) float64 {
	perHour := func(n int) float64 { return float64(n) / r.Horizon * 3600 }
	finished := func(x float64) float64 {
		if r.Done == 0 {
			return math.NaN()
		}
		return x
	}
	switch m {
	case OnTime:
		return float64(r.OnTime())
	case Late:
		return float64(r.Late)
	case P50:
		return finished(r.P50)
	case P95:
		return finished(r.P95)
	case P99:
		return finished(r.P99)
	case MeanWorkers:
		return r.MeanWorkers
	case PeakWorkers:
		return float64(r.PeakWorkers)
	case WorkerSeconds:
		return r.WorkerSeconds
	case BusyFraction:
		return r.BusyFraction
	case Actions:
		return perHour(r.Actions)
	case Starts:
		return perHour(r.Starts)
	case Flaps:
		return perHour(r.Flaps)
	case HandBacks:
		return perHour(r.HandBacks)
	case Violating:
		if r.Windows == 0 {
			return math.NaN()
		}
		return float64(r.Violating) / float64(r.Windows)
	}
	panic("evaluate: no such measure")
}

// Entry is a contender on a scenario and the episodes it has finished, by seed.
type Entry struct {
	Scenario  *workload.Scenario
	Contender Contender
	Episodes  []Episode
}

// Values are a measure of each episode.
func (e *Entry) Values(m Measure) []float64 {
	x := make([]float64, len(e.Episodes))
	for i := range e.Episodes {
		x[i] = m.Of(&e.Episodes[i].Result)
	}
	return x
}

// Mean is the mean of a measure over the episodes.
func (e *Entry) Mean(m Measure) float64 { return float64(MeanOf(e.Values(m)).Mean) }

// Row sums an entry up.
type Row struct {
	Policy        string // name of the law, or of the bound
	Scenario      string
	Seeds         int
	Specification string // the law with its parameters
	Parameters    string // where they come from
	Free          int    // parameters that calibration chose
	Target        float64
	Values        [measures]Interval
	Worst         policy.Maybe // least share on time of an episode: a mean can hide a lottery
	Met           int          // episodes on target
	Saturated     bool         // in one of the episodes the load was more than max replicas can do
}

// Row sums the episodes up.
func (e *Entry) Row() Row {
	r := Row{
		Policy: e.Contender.Name, Scenario: e.Scenario.Name, Seeds: len(e.Episodes), Specification: e.Contender.Spec,
		Parameters: string(e.Contender.Origin), Free: e.Contender.Free, Target: e.Scenario.Farm.Target, Worst: policy.Unknown,
	}
	for _, m := range Measures() {
		hi := math.Inf(1)
		if m.share() {
			hi = 1
		}
		r.Values[m] = MeanOf(e.Values(m)).within(0, hi)
	}
	for i := range e.Episodes {
		result := &e.Episodes[i].Result
		r.Saturated = r.Saturated || result.Saturated
		onTime := result.OnTime()
		if !onTime.Known() {
			continue
		}
		if float64(onTime) >= r.Target {
			r.Met++
		}
		if !r.Worst.Known() || onTime < r.Worst {
			r.Worst = onTime
		}
	}
	return r
}

// OnTarget reports whether enough tasks were on time in the mean; where no task has
// a due there is nothing to miss.
func (r *Row) OnTarget() bool {
	return !r.Values[OnTime].Mean.Known() || float64(r.Values[OnTime].Mean) >= r.Target
}

// MarshalJSON writes the row flat: each measure by its name, and the bounds of its
// interval as name_lo and name_hi. What is unknown is null.
func (r Row) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	field := func(name string, v any) error {
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + name + `":`)
		b.Write(raw)
		return nil
	}
	fields := []struct {
		name string
		v    any
	}{{"policy", r.Policy}, {"scenario", r.Scenario}, {"seeds", r.Seeds}}
	for m, iv := range r.Values {
		name := measureNames[m]
		fields = append(fields, []struct {
			name string
			v    any
		}{{name, iv.Mean}, {name + "_lo", iv.Lo}, {name + "_hi", iv.Hi}}...)
	}
	fields = append(fields, []struct {
		name string
		v    any
	}{{"parameters", r.Parameters}, {"specification", r.Specification}, {"free_parameters", r.Free},
		{"target", r.Target}, {"on_time_worst_episode", r.Worst}, {"episodes_on_target", r.Met}, {"saturated", r.Saturated}}...)
	for _, f := range fields {
		if err := field(f.name, f.v); err != nil {
			return nil, err
		}
	}
	return append(append([]byte{'{'}, b.Bytes()...), '}'), nil
}
