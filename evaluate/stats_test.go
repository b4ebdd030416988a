package evaluate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Against a textbook's table of t: 2.776 for four degrees of freedom, 12.706 for one.
func TestMeanOf(t *testing.T) {
	iv := MeanOf([]float64{1, 2, 3, 4, 5})
	half := 2.7764451 * math.Sqrt(2.5/5)
	near(t, "mean", iv.Mean, 3, 1e-12)
	near(t, "lo", iv.Lo, 3-half, 1e-6)
	near(t, "hi", iv.Hi, 3+half, 1e-6)
	two := MeanOf([]float64{10, 12})
	near(t, "hi of two", two.Hi, 11+12.7062047, 1e-6)
	if one := MeanOf([]float64{7}); one.Mean != 7 || one.Lo.Known() || one.Hi.Known() {
		t.Errorf("of one value: %+v", one)
	}
	if none := MeanOf(nil); none.Mean.Known() || none.Lo.Known() {
		t.Errorf("of none: %+v", none)
	}
	if part := MeanOf([]float64{1, math.NaN()}); part.Mean.Known() || part.Lo.Known() {
		t.Errorf("with an unknown: %+v", part)
	}
	bounded := MeanOf([]float64{0.97, 0.99, 1}).within(0, 1)
	near(t, "share", bounded.Hi, 1, 0)
}

// In nineteen of twenty draws the interval holds the mean.
func TestIntervalsCover(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const draws = 4000
	held := 0
	for range draws {
		x := make([]float64, 5)
		for i := range x {
			x[i] = 3 + 2*r.NormFloat64()
		}
		if iv := MeanOf(x); iv.Lo <= 3 && 3 <= iv.Hi {
			held++
		}
	}
	// 0.95 ± 4 standard deviations of the share
	if share := float64(held) / draws; math.Abs(share-0.95) > 4*math.Sqrt(0.95*0.05/draws) {
		t.Errorf("held in %.3f of the draws", share)
	}
}

// Two policies that meet the same luck: the difference is known much better than
// either mean.
func TestPairingNarrows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x, y := make([]float64, 10), make([]float64, 10)
	for i := range x {
		luck := 100 * r.NormFloat64()
		x[i], y[i] = 1010+luck+r.NormFloat64(), 1000+luck+r.NormFloat64()
	}
	d, single := Paired(x, y), MeanOf(x)
	if width, alone := d.Hi-d.Lo, single.Hi-single.Lo; width > alone/20 {
		t.Errorf("width %g paired, %g alone", width, alone)
	}
	if !(d.Lo < 10 && 10 < d.Hi && d.Lo > 0) {
		t.Errorf("difference %+v, want 10", d)
	}
}
