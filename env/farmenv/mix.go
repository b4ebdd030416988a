package farmenv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"farmhand/sim/workload"
)

// Episode is what a Farm plays from Reset to the horizon.
type Episode struct {
	Scenario *workload.Scenario
	Kind     int     // which weight on lateness counts (Farm.WeighLate)
	From     float64 // s of the scenario's work that are left out
	Rest     float64 // s in which nothing arrives, before it
}

// Mix chooses what episodes play: one of several scenarios, each as likely.
type Mix struct {
	Scenarios []*workload.Scenario // their place is their kind
	Length    float64              // of an episode, s
	// Anywhere lets an episode begin at any instant of its scenario's work that leaves
	// enough of it, so that all of a trace is learned.
	Anywhere bool
	// Rests lets every fourth episode begin with a silence of up to five minutes: what a
	// farm does with the first burst after a rest is learned by nothing else.
	Rests bool
	// Vary makes a farm of its own for three of four episodes that are not blended: see Varied.
	Vary bool
	// Blend gives half of the episodes other arrivals: see Blended.
	Blend bool

	load []float64 // replicas that each scenario keeps busy in the mean
	rate []float64 // tasks/s of each scenario in the mean
}

// NewMix makes a Mix of episodes that last a number of seconds.
func NewMix(length float64, scenarios ...*workload.Scenario) *Mix {
	m := &Mix{Scenarios: scenarios, Length: length}
	for _, s := range scenarios {
		tasks := s.Draw(1)
		busy := 0.0
		for _, x := range tasks.Service {
			busy += x + s.Platform.Overhead
		}
		m.rate = append(m.rate, max(1, float64(len(tasks.At)))/s.Horizon)
		m.load = append(m.load, busy/s.Horizon/float64(max(1, s.Farm.Slots)))
	}
	return m
}

// streamMix is the stream of randomness of the choice, apart from those of package
// workload; streamRest that of rests, streamBlend that of blends.
const (
	streamMix   = 101
	streamRest  = 102
	streamBlend = 103
)

// Episode of a seed.
func (m *Mix) Episode(seed uint64) Episode {
	r := workload.Stream(seed, streamMix)
	e := Episode{Kind: r.IntN(len(m.Scenarios))}
	e.Scenario = m.Scenarios[e.Kind]
	if spare := e.Scenario.Horizon - m.Length; m.Anywhere && spare > 0 {
		e.From = spare * r.Float64()
	}
	switch {
	case m.Blend && r.IntN(2) > 0:
		e.Scenario = m.blended(r, e.Kind)
	case m.Vary && r.IntN(4) > 0:
		e.Scenario = m.vary(r, e.Kind)
	}
	if m.Rests && r.IntN(4) == 0 {
		e.Rest = longestRest * r.Float64()
	}
	return e
}

const longestRest = 300 // s

// Rested returns the work of a scenario and a seed after a rest, and the scenario with
// the horizon that it needs.
func Rested(s *workload.Scenario, tasks *workload.Tasks, seed uint64) (*workload.Scenario, *workload.Tasks) {
	rest := longestRest * workload.Stream(seed, streamRest).Float64()
	later := *s
	later.Horizon += rest
	return &later, delayed(tasks, rest)
}

// Varied makes a farm with the rhythm of a scenario's arrivals, and all else drawn anew
// (domain randomisation; Tobin et al., arXiv 1703.06907), so that a policy learns what
// holds for farms of any speed and size:
//
//	service    mean 1/4 to 50 times the scenario's, log-uniform; lognormal, gamma,
//	           exponential or constant
//	load       1/4 to 2.5 times, log-uniform, as long as the mean is a quarter of the
//	           farm's maximum at most
//	deadline   1.15 to 12 times the quantile of the service time that is halfway
//	           between the target and 1, log-uniform: it can be kept
//	start-up   mean 0.3 to 15 s, log-uniform; lognormal, coefficient of variation 0.16
//	interval   1, 2, 2, 5 or 10 s
//
// Arrivals that cannot be had at another rate keep theirs, and their farm its speed.
// Equal seeds make equal farms.
func (m *Mix) Varied(kind int, seed uint64) *workload.Scenario {
	return m.vary(workload.Stream(seed, streamMix), kind)
}

func (m *Mix) vary(r *rand.Rand, kind int) *workload.Scenario {
	s := m.Scenarios[kind]
	v := *s
	slower, load := logUniform(r, 0.25, 50), logUniform(r, 0.25, 2.5)
	mean := s.Service.Mean()
	if most := 0.25 * float64(s.Farm.Max); m.load[kind] > 0 {
		load = min(load, max(most/m.load[kind], 0.25))
	}
	if a, ok := workload.Times(s.Arrivals, load/slower); ok {
		v.Arrivals = a
		mean *= slower
		v.Platform.Overhead *= slower
	}
	v.Service = law(r, mean)
	v.Farm.Deadline, v.Farm.DeadlineFactor = quantile(r, v.Service, (1+s.Farm.Target)/2)*logUniform(r, 1.15, 12), 0
	v.Farm.Timeout = max(s.Farm.Timeout, 20*mean)
	v.Platform.Startup = workload.LogNormalOf(logUniform(r, 0.3, 15), 0.16)
	v.Farm.Interval = []float64{1, 2, 2, 5, 10}[r.IntN(5)]
	v.Name = fmt.Sprintf("%s, varied", s.Name)
	return &v
}

func logUniform(r *rand.Rand, lo, hi float64) float64 { return lo * math.Pow(hi/lo, r.Float64()) }

// law of service times with a mean.
func law(r *rand.Rand, mean float64) workload.Law {
	cv := 0.2 + 1.1*r.Float64()
	switch r.IntN(6) {
	case 0:
		return workload.Constant{Value: mean}
	case 1:
		return workload.Exponential{Average: mean}
	case 2:
		return workload.GammaOf(mean, cv)
	}
	return workload.LogNormalOf(mean, cv)
}

// quantile of a law, by draws.
func quantile(r *rand.Rand, l workload.Law, q float64) float64 {
	x := make([]float64, 500)
	for i := range x {
		x[i] = l.Draw(r)
	}
	slices.Sort(x)
	return x[min(int(q*float64(len(x))), len(x)-1)]
}

// after leaves out what arrives before an instant, and begins there.
func after(t *workload.Tasks, from float64) *workload.Tasks {
	if from <= 0 {
		return t
	}
	n, _ := slices.BinarySearch(t.At, from)
	cut := &workload.Tasks{Horizon: t.Horizon - from, Service: t.Service[n:]}
	for _, at := range t.At[n:] {
		cut.At = append(cut.At, at-from)
	}
	if t.Deadline != nil {
		cut.Deadline = t.Deadline[n:]
	}
	if t.Class != nil {
		cut.Class = t.Class[n:]
	}
	if t.Tenant != nil {
		cut.Tenant = t.Tenant[n:]
	}
	for i, c := range t.Changes {
		if i+1 == len(t.Changes) || t.Changes[i+1].At > from {
			cut.Changes = append(cut.Changes, workload.Change{At: max(0, c.At-from), Rate: c.Rate})
		}
	}
	return cut
}

// delayed lets all arrive later.
func delayed(t *workload.Tasks, by float64) *workload.Tasks {
	if by <= 0 {
		return t
	}
	late := *t
	late.Horizon += by
	late.At, late.Changes = make([]float64, len(t.At)), []workload.Change{{}}
	for i, at := range t.At {
		late.At[i] = at + by
	}
	for _, c := range t.Changes {
		late.Changes = append(late.Changes, workload.Change{At: c.At + by, Rate: c.Rate})
	}
	return &late
}
