package evaluate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// short is how much is missing to the target, in the worst of the scenarios, where
// lateness may be so many times what the target allows.
func (t *trial) short(level float64) (most float64) {
	for i, onTime := range t.OnTime {
		if onTime.Known() {
			most = max(most, 1-level*(1-t.targets[i])-float64(onTime))
		}
	}
	return most
}

// steep is how many percent of cost a percent more of lateness is worth where there is
// too much of it. Along the fronts of good policies it is about 0.1: with more than that
// the optimum is on target. With less than 1, laws that are late but cheap lead a search
// of few draws away from there; with much more it sees only a cliff.
const steep = 1.0

// value is what a search minimises: the logarithm of the cost, and for lateness beyond
// what is allowed steep times the logarithm of how many times that is.
func (t *trial) value(level float64) float64 {
	late := 1.0
	for i, onTime := range t.OnTime {
		if allowed := max(level*(1-t.targets[i]), 1e-4); onTime.Known() {
			late = max(late, (1-float64(onTime))/allowed)
		}
	}
	return math.Log(max(t.Cost, 1e-9)) + steep*math.Log(late)
}

// best sorts trials, the best at a level first, and leaves equal ones in order.
func best(trials []*trial, level float64) []*trial {
	sorted := slices.Clone(trials)
	slices.SortStableFunc(sorted, func(a, b *trial) int { return cmp.Compare(a.value(level), b.value(level)) })
	return sorted
}

// cheapest is the trial that costs least of those on target; where none is, the least
// late.
func cheapest(trials []*trial) *trial {
	return slices.MinFunc(trials, func(a, b *trial) int {
		return cmp.Or(cmp.Compare(a.short(1), b.short(1)), cmp.Compare(a.Cost, b.Cost))
	})
}

// crossEntropy is the cross-entropy method of Rubinstein (1999) in the unit cube: a
// normal distribution moves to the best of what it drew and narrows with them. Laws
// that are good in several ways have nothing good between those ways, where the mean
// may lie; so half of the draws are near a guide, one of the best points so far.
type crossEntropy struct {
	r        *rand.Rand
	mean, sd []float64
	narrow   float64 // least standard deviation: a search of few draws shrinks too soon
	guides   [][]float64
}

// guided is how many of the best points guide a search.
const guided = 4

// spread begins at the best points of a first search.
func (c *crossEntropy) spread(elite [][]float64) {
	dims := len(elite[0])
	c.mean, c.sd = make([]float64, dims), make([]float64, dims)
	for d := range dims {
		for _, p := range elite {
			c.mean[d] += p[d] / float64(len(elite))
		}
		for _, p := range elite {
			c.sd[d] += (p[d] - c.mean[d]) * (p[d] - c.mean[d]) / float64(len(elite))
		}
		c.sd[d] = max(math.Sqrt(c.sd[d]), c.narrow)
	}
	c.narrow *= 0.7
}

// draw n points; the first are the mean and the best guide. Near a guide two parameters
// are changed, in the mean: of a dozen drawn at once one is always wrong.
func (c *crossEntropy) draw(n int) [][]float64 {
	points := make([][]float64, n)
	for i := range points {
		centre, share := c.mean, 1.0
		if k := len(c.guides); i%2 == 1 && k > 0 {
			centre, share = c.guides[i/2%k], 2/float64(len(c.mean))
		}
		points[i] = slices.Clone(centre)
		for d := range points[i] {
			if step := c.sd[d] * c.r.NormFloat64(); i > 1 && c.r.Float64() < share {
				points[i][d] += step
			}
			points[i][d] = min(max(points[i][d], 0), 1)
		}
	}
	return points
}

// uniform draws n points of the cube.
func uniform(r *rand.Rand, n, dims int) [][]float64 {
	points := make([][]float64, n)
	for i := range points {
		points[i] = make([]float64, dims)
		for d := range points[i] {
			points[i][d] = r.Float64()
		}
	}
	return points
}
