package workload

import (
	"fmt"
	"math/rand/v2"
	"sort"
)

// Quantiles is an empirical law: a table of quantiles with straight lines between
// them, drawn from by inverse transform.
type Quantiles struct {
	at, values []float64
	text       string
}

// NewQuantiles makes a law of the values at ascending levels from 0 to 1.
func NewQuantiles(at, values []float64) (*Quantiles, error) {
	if len(at) < 2 || len(at) != len(values) {
		return nil, fmt.Errorf("%d levels and %d values: want as many, two or more", len(at), len(values))
	}
	if at[0] != 0 || at[len(at)-1] != 1 {
		return nil, fmt.Errorf("levels from %g to %g: want 0 to 1", at[0], at[len(at)-1])
	}
	for i := range at {
		if err := isNumber(values[i]); err != nil {
			return nil, fmt.Errorf("the value at %g: %w", at[i], err)
		}
		if i > 0 && !(at[i] > at[i-1] && values[i] >= values[i-1]) {
			return nil, fmt.Errorf("%g at %g after %g at %g: want levels and values to rise", values[i], at[i], values[i-1], at[i-1])
		}
	}
	return &Quantiles{at: at, values: values, text: flow("quantiles", "at", at, "values", values)}, nil
}

// Draw from the law.
func (l *Quantiles) Draw(r *rand.Rand) float64 {
	u := r.Float64()
	i := max(1, sort.SearchFloat64s(l.at, u))
	return l.values[i-1] + (l.values[i]-l.values[i-1])*(u-l.at[i-1])/(l.at[i]-l.at[i-1])
}

// Mean of the law.
func (l *Quantiles) Mean() float64 {
	sum := 0.0
	for i := 1; i < len(l.at); i++ {
		sum += (l.at[i] - l.at[i-1]) * (l.values[i] + l.values[i-1]) / 2
	}
	return sum
}

func (l *Quantiles) String() string { return l.text }

// scaled is the law whose values are so many times as large.
func (l *Quantiles) scaled(factor float64) *Quantiles {
	values := make([]float64, len(l.values))
	for i, x := range l.values {
		values[i] = factor * x
	}
	return &Quantiles{at: l.at, values: values, text: flow("quantiles", "at", l.at, "values", values)}
}
