package workload

import (
	"math"
	"math/rand/v2"
	"slices"
)

// SelfSimilar is a Poisson process whose rate is that of many sources that are on
// and off for times with Pareto tails x^−α, α = 3 − 2 Hurst. Their sum is
// asymptotically self-similar (Willinger, Taqqu, Sherman and Wilson 1997): its
// bursts do not average out over any time scale. It is stationary from the start.
type SelfSimilar struct {
	Mean    float64 // rate of all sources
	Sources int
	Hurst   float64 // 0.5 … 1, exclusive
	On, Off float64 // mean times, s
}

// Draw the instants.
func (p SelfSimilar) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []Change) {
	own := split(r)
	each := p.Mean * (p.On + p.Off) / p.On / float64(p.Sources)
	alpha := 3 - 2*p.Hurst
	type toggle struct {
		at float64
		up int
	}
	var all []toggle
	active := 0
	for range p.Sources {
		source := split(own)
		on := source.Float64()*(p.On+p.Off) < p.On
		if on {
			active++
		}
		for t := residual(source, p.length(on), alpha); t < horizon; t += pareto(source, p.length(on), alpha) {
			on = !on
			all = append(all, toggle{t, 1})
			if !on {
				all[len(all)-1].up = -1
			}
		}
	}
	slices.SortFunc(all, func(a, b toggle) int {
		if a.at < b.at || a.at == b.at && a.up < b.up {
			return -1
		}
		return 1
	})
	steps := append(make([]Change, 0, len(all)+1), Change{0, each * float64(active)})
	for _, c := range all {
		active += c.up
		steps = append(steps, Change{c.at, each * float64(active)})
	}
	return stepwise(r, steps, horizon, at)
}

func (p SelfSimilar) length(on bool) float64 {
	if on {
		return p.On
	}
	return p.Off
}

func (p SelfSimilar) String() string {
	return flow("selfsimilar", "mean", p.Mean, "sources", p.Sources, "hurst", p.Hurst, "on", p.On, "off", p.Off)
}

// pareto draws from the law with a mean and the tail (least/x)^alpha.
func pareto(r *rand.Rand, mean, alpha float64) float64 {
	least := mean * (alpha - 1) / alpha
	return least * math.Pow(1-r.Float64(), -1/alpha)
}

// residual draws what is left of such a time for who comes at any instant: its
// tail is 1 − x/mean below the least, and (least/x)^(alpha−1)/alpha above.
func residual(r *rand.Rand, mean, alpha float64) float64 {
	u := 1 - r.Float64() // probability of the tail
	if u >= 1/alpha {
		return mean * (1 - u)
	}
	least := mean * (alpha - 1) / alpha
	return least * math.Pow(alpha*u, -1/(alpha-1))
}
