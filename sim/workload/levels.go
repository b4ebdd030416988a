package workload

import (
	"math/rand/v2"
	"slices"
)

// Level is a rate that lasts for a drawn time.
type Level struct {
	Rate float64
	For  Law
}

// Levels is a Poisson process whose rate changes from level to level. It begins
// at the first, and takes them in turn, or at random by Next: the probabilities,
// row by row, of the level that follows each. With exponential times it is a
// Markov-modulated Poisson process.
type Levels struct {
	Levels []Level
	Next   [][]float64 // nil: in turn
}

// OnOff is a rate that is there for a time and then not for a time, off at first.
func OnOff(rate float64, on, off Law) Levels {
	return Levels{Levels: []Level{{0, off}, {rate, on}}}
}

// Draw the instants.
func (p Levels) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []Change) {
	own := split(r)
	var steps []Change
	i := 0
	for t := 0.0; t < horizon; {
		steps = append(steps, Change{t, p.Levels[i].Rate})
		t += p.Levels[i].For.Draw(own)
		i = p.after(own, i)
	}
	return stepwise(r, steps, horizon, at)
}

func (p Levels) after(r *rand.Rand, i int) int {
	if p.Next == nil {
		return (i + 1) % len(p.Levels)
	}
	u := r.Float64()
	for j, q := range p.Next[i] {
		if u < q {
			return j
		}
		u -= q
	}
	return len(p.Levels) - 1 // rounding left a last digit
}

func (p Levels) String() string {
	var items []string
	for _, l := range p.Levels {
		items = append(items, pairs("rate", l.Rate, "for", l.For))
	}
	if p.Next == nil {
		return flow("levels", "of", list(items))
	}
	var rows []string
	for _, row := range p.Next {
		rows = append(rows, value(row))
	}
	return flow("levels", "of", list(items), "next", list(rows))
}

// steps says the rate from each edge on, where it differs from the one before.
func steps(edges []float64, horizon float64, rate func(t float64) float64) []Change {
	slices.Sort(edges)
	var all []Change
	for _, t := range edges {
		x := rate(t)
		if t < horizon && (len(all) == 0 || x != all[len(all)-1].Rate) {
			all = append(all, Change{t, x})
		}
	}
	return all
}
