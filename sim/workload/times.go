package workload

// Times is an arrival process at k times the rate, which changes as it did, at the same
// instants. ok is false for those that cannot be had at another rate: tasks that came
// when they came.
func Times(a Arrivals, k float64) (faster Arrivals, ok bool) {
	switch p := a.(type) {
	case Poisson:
		return Poisson{k * p.Rate}, true
	case Levels:
		levels := make([]Level, len(p.Levels))
		for i, l := range p.Levels {
			levels[i] = Level{k * l.Rate, l.For}
		}
		return Levels{levels, p.Next}, true
	case Sinusoid:
		p.Mean, p.Amplitude = k*p.Mean, k*p.Amplitude
		return p, true
	case Cycle:
		p.Rates = times(p.Rates, k)
		return p, true
	case Walk:
		p.Min, p.Max, p.Start, p.Step = k*p.Min, k*p.Max, k*p.Start, k*p.Step
		return p, true
	case Flash:
		plateaus := make([]Plateau, len(p.Plateaus))
		for i, f := range p.Plateaus {
			plateaus[i] = Plateau{k * f.Rate, f.Start, f.For}
		}
		return Flash{k * p.Base, plateaus}, true
	case SelfSimilar:
		p.Mean *= k
		return p, true
	case *Replay:
		q := *p
		q.rates = times(p.rates, k)
		q.p.Mean *= k
		q.p.Scale *= k
		if q.p.Mean == 0 && q.p.Scale == 0 {
			q.p.Scale = k
		}
		return &q, true
	}
	return a, false
}

func times(x []float64, k float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = k * v
	}
	return y
}
