package workload

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Poisson arrivals are independent of one another, at a constant rate.
type Poisson struct{ Rate float64 }

// Draw the instants.
func (p Poisson) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []Change) {
	return stepwise(r, []Change{{0, p.Rate}}, horizon, at)
}

func (p Poisson) String() string { return flow("poisson", "rate", p.Rate) }

// stepwise appends the arrivals of a Poisson process whose rate is constant from
// one change to the next. The first change is at 0. What is left of a gap when
// the rate changes is drawn anew: the process has no memory.
func stepwise(r *rand.Rand, steps []Change, horizon float64, at []float64) ([]float64, []Change) {
	sum := 0.0
	for i, s := range steps {
		sum += s.Rate * (end(steps, i, horizon) - s.At)
	}
	at = slices.Grow(at, expected(sum))
	for i, s := range steps {
		if s.Rate <= 0 {
			continue
		}
		until, gap := end(steps, i, horizon), 1/s.Rate
		for t := s.At + gap*r.ExpFloat64(); t < until; t += gap * r.ExpFloat64() {
			at = append(at, t)
		}
	}
	return at, steps
}

// end is when step i ends.
func end(steps []Change, i int, horizon float64) float64 {
	if i+1 < len(steps) {
		return min(horizon, steps[i+1].At)
	}
	return horizon
}

// expected is room for a Poisson number of arrivals, hardly ever too little.
func expected(mean float64) int {
	return int(min(mean+5*math.Sqrt(mean), 1e8)) + 8
}

// grid is how far apart the changes of a rate that changes all the time are told.
const grid = 5.0 // s

// thinned appends the arrivals of a Poisson process with any rate from 0 to peak
// that changes by at most slope per second, by thinning (Lewis and Shedler 1979),
// which is exact. On each stretch of the grid the slope bounds the rate: candidates
// come at the upper bound, and what is below the lower one is taken unseen. The
// changes are the rate in the middle of each stretch.
func thinned(r *rand.Rand, rate func(t float64) float64, peak, slope, horizon float64, at []float64) ([]float64, []Change) {
	var steps []Change
	sum := 0.0
	for i := 0; float64(i)*grid < horizon; i++ {
		t := float64(i) * grid
		steps = append(steps, Change{t, rate(t + grid/2)})
		sum += steps[i].Rate * min(grid, horizon-t)
	}
	at = slices.Grow(at, expected(sum))
	for i, s := range steps {
		until, sure := end(steps, i, horizon), s.Rate-slope*grid/2
		bound := min(peak, s.Rate+slope*grid/2)
		if bound <= 0 {
			continue
		}
		gap := 1 / bound
		for t := s.At + gap*r.ExpFloat64(); t < until; t += gap * r.ExpFloat64() {
			if u := r.Float64() * bound; u < sure || u < rate(t) {
				at = append(at, t)
			}
		}
	}
	return at, steps
}

// split returns a source for the rates, so that the arrivals of a shorter horizon
// are the first of those of a longer one.
func split(r *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) }

// uniform appends n instants anywhere in [from, from + width), in order.
func uniform(r *rand.Rand, n int, from, width float64, at []float64) []float64 {
	first := len(at)
	for range n {
		at = append(at, from+width*r.Float64())
	}
	slices.Sort(at[first:])
	return at
}
