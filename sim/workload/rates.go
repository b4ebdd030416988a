package workload

import (
	"math"
	"math/rand/v2"
)

// Sinusoid is a Poisson process of rate mean + amplitude sin(2π t/period + phase).
type Sinusoid struct{ Mean, Amplitude, Period, Phase float64 }

// Draw the instants.
func (p Sinusoid) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []Change) {
	w := 2 * math.Pi / p.Period
	rate := func(t float64) float64 { return p.Mean + p.Amplitude*math.Sin(w*t+p.Phase) }
	return thinned(r, rate, p.Mean+p.Amplitude, p.Amplitude*w, horizon, at)
}

func (p Sinusoid) String() string {
	return flow("sinusoid", "mean", p.Mean, "amplitude", p.Amplitude, "period", p.Period, "phase", p.Phase)
}

// Cycle is a Poisson process whose rate runs through a table of equally spaced
// rates, in straight lines, over and over. Two rates make a triangle, twenty-four
// a day.
type Cycle struct {
	Rates  []float64
	Period float64
	kind   string // ramp, diurnal: how it was written
}

// Ramp rises from low to high in half a period and falls back in the other half.
func Ramp(low, high, period float64) Cycle {
	return Cycle{Rates: []float64{low, high}, Period: period, kind: "ramp"}
}

// Draw the instants.
func (p Cycle) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []Change) {
	n := len(p.Rates)
	table := append(append(make([]float64, 0, n+2), p.Rates...), p.Rates[0], p.Rates[0])
	scale, peak, slope := float64(n)/p.Period, 0.0, 0.0
	for i, x := range table {
		peak = max(peak, x)
		slope = max(slope, math.Abs(x-table[max(0, i-1)])*scale)
	}
	rate := func(t float64) float64 {
		x := t * scale
		x -= float64(n) * math.Floor(x/float64(n))
		i := int(x)
		return table[i] + (x-float64(i))*(table[i+1]-table[i])
	}
	return thinned(r, rate, peak, slope, horizon, at)
}

func (p Cycle) String() string {
	if p.kind == "ramp" {
		return flow("ramp", "low", p.Rates[0], "high", p.Rates[1], "period", p.Period)
	}
	return flow("diurnal", "rates", p.Rates, "period", p.Period)
}

// Walk is a Poisson process whose rate is a random walk between two bounds: every
// so often a normal step is added, and what passes a bound is reflected.
type Walk struct {
	Min, Max float64
	Start    float64
	Step     float64 // standard deviation
	Every    float64 // s
}

// Draw the instants.
func (p Walk) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []Change) {
	own := split(r)
	var steps []Change
	rate := p.Start
	for i := 0; float64(i)*p.Every < horizon; i++ {
		steps = append(steps, Change{float64(i) * p.Every, rate})
		rate = fold(rate+p.Step*own.NormFloat64(), p.Min, p.Max)
	}
	return stepwise(r, steps, horizon, at)
}

func (p Walk) String() string {
	return flow("walk", "min", p.Min, "max", p.Max, "start", p.Start, "step", p.Step, "every", p.Every)
}

// fold folds x into [lo, hi] as two mirrors do.
func fold(x, lo, hi float64) float64 {
	if hi <= lo {
		return lo
	}
	width := hi - lo
	x = math.Mod(math.Abs(x-lo), 2*width)
	if x > width {
		x = 2*width - x
	}
	return lo + x
}

// Flash is a Poisson process with a base rate and plateaus above it.
type Flash struct {
	Base     float64
	Plateaus []Plateau
}

// Plateau is a rate that begins at a drawn instant and lasts a drawn time. Where
// plateaus overlap, the highest counts.
type Plateau struct {
	Rate       float64
	Start, For Law
}

// Draw the instants.
func (p Flash) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []Change) {
	own := split(r)
	type span struct{ from, to, rate float64 }
	var spans []span
	edges := []float64{0}
	for _, f := range p.Plateaus {
		from := f.Start.Draw(own)
		to := from + f.For.Draw(own)
		spans = append(spans, span{from, to, f.Rate})
		edges = append(edges, from, to)
	}
	return stepwise(r, steps(edges, horizon, func(t float64) float64 {
		rate := p.Base
		for _, s := range spans {
			if s.from <= t && t < s.to {
				rate = max(rate, s.rate)
			}
		}
		return rate
	}), horizon, at)
}

func (p Flash) String() string {
	var items []string
	for _, f := range p.Plateaus {
		items = append(items, pairs("rate", f.Rate, "start", f.Start, "for", f.For))
	}
	return flow("flash", "base", p.Base, "plateaus", list(items))
}
