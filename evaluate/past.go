package evaluate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"farmhand/policy"
	"farmhand/sim/workload"
	"farmhand/skeleton/signal"
	"farmhand/telemetry"
)

// Past is a stretch of a farm's life as it was measured, to be played again.
type Past struct {
	Farm    workload.Farm // Start: replicas wanted when it began
	Bins    []Bin         // one after the other
	Lead    float64       // arrivals per second before it, as far as is known
	Service workload.Law
	Startup workload.Law
}

// Bin is how many tasks arrived in a time, and how many replicas were wanted then: the
// count that is seen at its end.
type Bin struct {
	Seconds  float64
	Arrivals float64
	Wanted   int
}

// Seconds is how long it is.
func (p *Past) Seconds() (sum float64) {
	for _, b := range p.Bins {
		sum += b.Seconds
	}
	return sum
}

// leastKnown is the share of a past that has to be measured.
const leastKnown = 0.9

// PastOf makes a past of a farm's observations, the oldest first, one for each
// decision. Services are lognormal with the mean and deviation that were measured.
func PastOf(list []policy.Observation) (*Past, error) {
	if len(list) < 2 {
		return nil, fmt.Errorf("evaluate: %d observations: want two or more", len(list))
	}
	first, last := &list[0], &list[len(list)-1]
	p := &Past{Farm: farmOf(last), Startup: startup(last.StartupLag)}
	p.Farm.Start = begun(first.Desired, &p.Farm)
	if rate := first.Long.Rate(); rate.Known() {
		p.Lead = float64(rate)
	}
	var measured moments
	b := binning{past: p}
	for i := 1; i < len(list); i++ {
		o := &list[i]
		arrivals := policy.Unknown
		if o.Last.Covered > 0 {
			arrivals = policy.Maybe(o.Last.Arrivals / o.Last.Covered)
		}
		if err := b.add(o.At.Sub(list[i-1].At).Seconds(), arrivals, o.Desired); err != nil {
			return nil, err
		}
		s := o.Last.Service
		measured.add(s.N, s.Mean, s.SD)
	}
	if measured.n < 1 { // long tasks, few of them
		measured.add(max(1, last.Long.Service.N), last.Service.Or(0), last.Long.Service.SD)
	}
	p.Service = measured.law()
	return p, b.check()
}

// PastOfRows makes a past of a farm's telemetry, the oldest row first. Services have
// the histogram of the periods, where there are any, else mean and deviation of the
// rows. The farm's settings are not in the rows; Start, Slots and Deadline are.
func PastOfRows(rows []telemetry.Row, periods []telemetry.Period, farm workload.Farm) (*Past, error) {
	if len(rows) < 2 {
		return nil, fmt.Errorf("evaluate: %d rows: want two or more", len(rows))
	}
	first, last := &rows[0], &rows[len(rows)-1]
	p := &Past{Farm: farm, Startup: startup(last.StartupLag)}
	p.Farm.Start, p.Farm.Slots, p.Farm.Deadline = begun(first.Desired, &farm), last.Slots, last.Deadline.Or(0)
	if first.Covered > 0 {
		p.Lead = float64(first.Arrivals / first.Covered)
	}
	var measured moments
	b := binning{past: p}
	for i := 1; i < len(rows); i++ {
		r := &rows[i]
		if err := b.add(r.At.Sub(rows[i-1].At).Seconds(), r.Arrivals/r.Covered, r.Desired); err != nil {
			return nil, err
		}
		measured.add(r.Done.Or(0), r.ServiceMean.Or(0), r.ServiceSD.Or(0))
	}
	p.Service = measured.law()
	if law := histogram(periods); law != nil {
		p.Service = law
	}
	return p, b.check()
}

// begun is the count that a past begins with: as many as were wanted, but for what the farm
// may have today.
func begun(wanted int, f *workload.Farm) int {
	if f.Max > 0 {
		return min(wanted, f.Max)
	}
	return wanted
}

// binning makes bins of what was measured.
type binning struct {
	past  *Past
	known float64 // seconds
}

// add a time, and how many tasks arrived per second; where that is unknown, as many
// as before.
func (b *binning) add(seconds float64, rate policy.Maybe, wanted int) error {
	if !(seconds > 0) {
		return fmt.Errorf("evaluate: observation %d is not later than the one before: want the oldest first", len(b.past.Bins)+1)
	}
	before := b.past.Lead
	if n := len(b.past.Bins); n > 0 {
		before = b.past.Bins[n-1].Arrivals / b.past.Bins[n-1].Seconds
	}
	if rate.Known() {
		b.known += seconds
	}
	b.past.Bins = append(b.past.Bins, Bin{seconds, max(0, rate.Or(before)) * seconds, wanted})
	return nil
}

func (b *binning) check() error {
	total := b.past.Seconds()
	switch {
	case b.known < leastKnown*total:
		return fmt.Errorf("evaluate: of %.0f s of the past only %.0f s were measured: want %.0f %%", total, b.known, 100*leastKnown)
	case b.past.Service == nil:
		return fmt.Errorf("evaluate: no service time is known in %.0f s of the past", total)
	}
	return nil
}

func farmOf(o *policy.Observation) workload.Farm {
	return workload.Farm{
		Interval: o.Interval, Deadline: o.Deadline, Target: o.Target, Timeout: o.Timeout, Prior: o.Service.Or(0),
		Slots: max(1, o.Slots), Min: o.Min, Max: o.Max,
	}
}

// startup is the law of start-ups of which the mean was measured. A controller looks
// once a second whether replicas are ready, and so measures half a second too much.
func startup(lag policy.Maybe) workload.Law {
	if !(lag > 0) {
		return workload.DefaultPlatform().Startup
	}
	return workload.LogNormalOf(max(float64(lag)-0.5, float64(lag)/2), 0.2) // about what platforms were measured to have
}

// moments are those of durations.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(n, mean, sd float64) {
	if n > 0 && mean > 0 {
		m.n, m.sum, m.squares = m.n+n, m.sum+n*mean, m.squares+n*(mean*mean+sd*sd)
	}
}

// law is lognormal; nil where nothing was measured.
func (m *moments) law() workload.Law {
	if m.n == 0 {
		return nil
	}
	mean := m.sum / m.n
	variance := m.squares/m.n - mean*mean
	if cv := math.Sqrt(max(0, variance)) / mean; cv > 0.01 {
		return workload.LogNormalOf(mean, cv)
	}
	return workload.Constant{Value: mean}
}

// histogram is the law of the service times of periods, with their exact mean; nil
// where there are none.
func histogram(periods []telemetry.Period) workload.Law {
	var all signal.Hist
	for i := range periods {
		all.Merge(&periods[i].Service)
	}
	if all.N == 0 || all.Sum <= 0 {
		return nil
	}
	const grow = (1 + signal.Accuracy) / (1 - signal.Accuracy) // from bin to bin
	at, values, seen := []float64{0}, []float64{math.Pow(grow, float64(all.Bins[0].At)-1)}, 0
	for _, b := range all.Bins {
		seen += int(b.N)
		at, values = append(at, float64(seen)/float64(all.N)), append(values, math.Pow(grow, float64(b.At)))
	}
	at[len(at)-1] = 1
	shape, err := workload.NewQuantiles(at, values)
	if err != nil {
		return nil // bins ascend, so it cannot be
	}
	scale := all.Sum / float64(all.N) / shape.Mean()
	for i := range values {
		values[i] *= scale
	}
	law, err := workload.NewQuantiles(at, values)
	if err != nil {
		return nil
	}
	return law
}

// scenario is the past as a scenario whose tasks are drawn by draw. Before it comes a
// lead of steady arrivals, in which policy and guard get to know the farm.
func (p *Past) scenario(lead float64) *workload.Scenario {
	return &workload.Scenario{
		Name: "past", Horizon: lead + p.Seconds(), Arrivals: workload.Poisson{Rate: p.Lead}, Service: p.Service, Farm: p.Farm,
		Platform: workload.Platform{Startup: p.Startup, Victim: workload.IdleFirst, Balance: workload.LeastBusy},
	}
}

// draw makes tasks: as many in each bin as there were, at random instants of it.
func (p *Past) draw(lead float64, seed uint64) *workload.Tasks {
	r := workload.Stream(seed, workload.StreamArrivals)
	t := &workload.Tasks{Horizon: lead + p.Seconds()}
	begin := 0.0
	for _, b := range append([]Bin{{lead, p.Lead * lead, 0}}, p.Bins...) {
		from := len(t.At)
		for range whole(b.Arrivals, r) {
			t.At = append(t.At, begin+b.Seconds*r.Float64())
		}
		slices.Sort(t.At[from:])
		begin += b.Seconds
	}
	services := workload.Stream(seed, workload.StreamService)
	t.Service = make([]float64, len(t.At))
	for i := range t.Service {
		t.Service[i] = p.Service.Draw(services)
	}
	return t
}

// whole is x, or the number above it as often as makes x the mean.
func whole(x float64, r *rand.Rand) int {
	n := math.Floor(x)
	if r.Float64() < x-n {
		n++
	}
	return int(n)
}
