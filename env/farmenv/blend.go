package farmenv

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"farmhand/sim/workload"
)

// Blended has the farm of a scenario and other arrivals: those of the scenario, a quarter
// or more of them, and for the rest those of another that is drawn, each stretched 1 to 3
// times from its beginning on, and at half to twice its rate, log-uniform. So a policy meets
// loads between a calm and a rough one, of which a handful of recordings has none. Where
// arrivals cannot be had at another rate the scenario stays as it is. Equal seeds make equal
// arrivals.
func (m *Mix) Blended(kind int, seed uint64) *workload.Scenario {
	return m.blended(workload.Stream(seed, streamBlend+uint64(kind)<<32), kind)
}

func (m *Mix) blended(r *rand.Rand, kind int) *workload.Scenario {
	other := r.IntN(len(m.Scenarios))
	share, rate := 0.25+0.75*r.Float64(), m.rate[kind]*logUniform(r, 0.5, 2)
	s := *m.Scenarios[kind]
	part := func(of int, share float64) (workload.Arrivals, bool) {
		by := logUniform(r, 1, 3)
		a, ok := workload.Times(m.Scenarios[of].Arrivals, share*rate/m.rate[of]*by)
		return stretched{a, by}, ok
	}
	a, ok := part(kind, share)
	b, can := part(other, 1-share)
	if ok && can {
		s.Name, s.Arrivals = s.Name+", blended", blend{a, b}
	}
	return &s
}

// stretched is an arrival process that takes by times as long, at a rate that is lower by
// as much.
type stretched struct {
	of workload.Arrivals
	by float64
}

// Draw implements workload.Arrivals.
func (s stretched) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []workload.Change) {
	before := len(at)
	at, changes := s.of.Draw(r, horizon/s.by, at)
	for i := range at[before:] {
		at[before+i] *= s.by
	}
	slower := make([]workload.Change, len(changes))
	for i, c := range changes {
		slower[i] = workload.Change{At: c.At * s.by, Rate: c.Rate / s.by}
	}
	return at, slower
}

func (s stretched) String() string { return fmt.Sprintf("%v, stretched %g times", s.of, s.by) }

// blend is the superposition of two arrival processes.
type blend [2]workload.Arrivals

// Draw implements workload.Arrivals.
func (b blend) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []workload.Change) {
	before := len(at)
	var steps []workload.Change // by how much the rate rises
	for _, a := range b {
		var changes []workload.Change
		at, changes = a.Draw(r, horizon, at)
		was := 0.0
		for _, c := range changes {
			steps = append(steps, workload.Change{At: c.At, Rate: c.Rate - was})
			was = c.Rate
		}
	}
	slices.Sort(at[before:])
	slices.SortStableFunc(steps, func(a, b workload.Change) int { return cmp.Compare(a.At, b.At) })
	var changes []workload.Change
	rate := 0.0
	for i, s := range steps {
		rate += s.Rate
		if i+1 == len(steps) || steps[i+1].At > s.At {
			changes = append(changes, workload.Change{At: s.At, Rate: max(0, rate)})
		}
	}
	return at, changes
}

func (b blend) String() string { return fmt.Sprintf("%v and %v", b[0], b[1]) }
