package signal

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func durations(t *rapid.T) []float64 {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
		return math.Exp(rapid.Float64Range(math.Log(shortest/10), math.Log(longest)).Draw(t, "log"))
	}), 1, 200).Draw(t, "durations")
}

func histOf(xs []float64) *Hist {
	var h Hist
	for _, x := range xs {
		h.Add(x)
	}
	return &h
}

// near allows for sums in another order.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func (h *Hist) same(o *Hist) bool {
	return h.N == o.N && near(h.Sum, o.Sum) && near(h.Squares, o.Squares) && h.Max == o.Max && slices.Equal(h.Bins, o.Bins)
}

// Whatever the durations are split into, in seconds and dispatchers, the parts
// merge to the whole.
func TestMergingPartsGivesTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := durations(t)
		parts := make([]Hist, rapid.IntRange(1, 5).Draw(t, "parts"))
		for _, x := range xs {
			parts[rapid.IntRange(0, len(parts)-1).Draw(t, "part")].Add(x)
		}
		var sum Hist
		for i := range parts {
			sum.Merge(&parts[i])
		}
		if whole := histOf(xs); !sum.same(whole) {
			t.Errorf("%+v, the whole is %+v", sum, *whole)
		}
	})
}

// Quantiles are those of the nearest rank, within the stated error.
func TestQuantilesAreAccurate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := durations(t)
		h := histOf(xs)
		var d dense
		d.add(h)
		shares := [3]float64{0.5, 0.95, 0.99}
		got := d.quantiles(h.N, h.Max, shares)
		slices.Sort(xs)
		for i, q := range shares {
			want := xs[int(math.Ceil(q*float64(len(xs))))-1]
			if err := math.Abs(got[i] - want); err > Accuracy*want*(1+1e-9) && !(want < shortest && got[i] == 0) {
				t.Errorf("quantile %g: %g, want %g", q, got[i], want)
			}
		}
		d.sub(h)
		if d != (dense{}) {
			t.Error("taking out what was added leaves something")
		}
	})
}

func TestHistTakesAnything(t *testing.T) {
	h := histOf([]float64{math.NaN(), -1, 0, math.Inf(1), 1e300, 3e5, shortest, longest})
	if h.N != 8 || math.IsNaN(h.Sum+h.Squares) || math.IsInf(h.Sum+h.Squares, 0) || h.Max > math.MaxInt32 {
		t.Errorf("%+v", h)
	}
	if first, last := h.Bins[0], h.Bins[len(h.Bins)-1]; first != (Bin{0, 3}) || last != (Bin{Bins - 1, 4}) {
		t.Errorf("bins %+v", h.Bins)
	}
	if binOf(shortest) != 1 || binOf(math.Nextafter(shortest, 0)) != 0 {
		t.Error("the shortest duration has no bin of its own")
	}
}
