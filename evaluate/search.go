package evaluate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// score of a trial: how much is missing to the target, and what it costs. Lateness
// comes first; cost decides among those that are on target.
type score struct {
	short float64 // of the share on time, in the worst of the scenarios
	cost  float64
}

// at is the score where lateness may be so many times what the target allows.
func (t *trial) at(level float64) score {
	s := score{cost: t.Cost}
	for i, onTime := range t.OnTime {
		if onTime.Known() {
			s.short = max(s.short, 1-level*(1-t.targets[i])-float64(onTime))
		}
	}
	return s
}

func (s score) compare(o score) int {
	return cmp.Or(cmp.Compare(s.short, o.short), cmp.Compare(s.cost, o.cost))
}

// best sorts trials, the best at a level first, and leaves equal ones in order.
func best(trials []*trial, level float64) []*trial {
	sorted := slices.Clone(trials)
	slices.SortStableFunc(sorted, func(a, b *trial) int { return a.at(level).compare(b.at(level)) })
	return sorted
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

// draw n points; the first are the mean and the best guide.
func (c *crossEntropy) draw(n int) [][]float64 {
	points := make([][]float64, n)
	for i := range points {
		centre, spread := c.mean, 1.0
		if k := len(c.guides); i%2 == 1 && k > 0 {
			centre, spread = c.guides[i/2%k], 0.5
		}
		points[i] = slices.Clone(centre)
		for d := range points[i] {
			if i > 1 {
				points[i][d] += spread * c.sd[d] * c.r.NormFloat64()
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
