package evaluate

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"farmhand/policy"
)

// confidence of all intervals.
const confidence = 0.95

// Interval is a mean over seeds with its 95 % confidence interval.
type Interval struct {
	Mean, Lo, Hi policy.Maybe
}

// Nothing is the interval of which nothing is known.
var Nothing = Interval{policy.Unknown, policy.Unknown, policy.Unknown}

// MeanOf is the mean of independent values, with Student's interval
//
//	mean ± t(n−1; 0.975)·s/√n
//
// Of one value the bounds are unknown, of none the mean is too, and so is all where
// one of the values is.
func MeanOf(x []float64) Interval {
	iv := Nothing
	if len(x) == 0 {
		return iv
	}
	mean, sd := stat.MeanStdDev(x, nil)
	iv.Mean = policy.Maybe(mean)
	if len(x) > 1 && iv.Mean.Known() {
		half := student(len(x)-1) * sd / math.Sqrt(float64(len(x)))
		iv.Lo, iv.Hi = policy.Maybe(mean-half), policy.Maybe(mean+half)
	}
	return iv
}

// Paired is the mean of x − y, pair by pair, with its interval. Where pairs share
// their randomness it is narrower than what the two intervals suggest.
func Paired(x, y []float64) Interval {
	if len(x) != len(y) {
		panic("evaluate: pairs of unequal numbers")
	}
	d := make([]float64, len(x))
	for i := range d {
		d[i] = x[i] - y[i]
	}
	return MeanOf(d)
}

// within brings the bounds to where values can lie.
func (iv Interval) within(lo, hi float64) Interval {
	if iv.Lo.Known() {
		iv.Lo, iv.Hi = policy.Maybe(max(lo, float64(iv.Lo))), policy.Maybe(min(hi, float64(iv.Hi)))
	}
	return iv
}

// student is the two-sided quantile of Student's t.
func student(freedom int) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: float64(freedom)}.Quantile(1 - (1-confidence)/2)
}
