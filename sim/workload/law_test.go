package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// Each law has the distribution function that theory says (Kolmogorov–Smirnov at
// 0.1 %), the mean that it says, and never draws what is negative.
func TestLaws(t *testing.T) {
	table, err := NewQuantiles([]float64{0, 0.5, 0.9, 1}, []float64{0.1, 0.2, 0.4, 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		law Law
		cdf func(x float64) float64
	}{
		{Exponential{Average: 0.2}, distuv.Exponential{Rate: 5}.CDF},
		{Exponential{Average: 120, Shift: 30}, func(x float64) float64 { return distuv.Exponential{Rate: 1. / 90}.CDF(x - 30) }},
		{Uniform{2, 5}, distuv.Uniform{Min: 2, Max: 5}.CDF},
		{LogNormal{0.74, 0.16}, distuv.LogNormal{Mu: 0.74, Sigma: 0.16}.CDF},
		{LogNormalOf(0.04, 0.6), distuv.LogNormal{Mu: math.Log(0.04 / math.Sqrt(1.36)), Sigma: math.Sqrt(math.Log(1.36))}.CDF},
		{Gamma{4, 0.375}, distuv.Gamma{Alpha: 4, Beta: 1 / 0.375}.CDF},
		{Gamma{0.3, 2}, distuv.Gamma{Alpha: 0.3, Beta: 0.5}.CDF},
		{GammaOf(1.5, 0.5), distuv.Gamma{Alpha: 4, Beta: 1 / 0.375}.CDF},
		{BoundedPareto{1.2, 0.01, 50}, boundedCDF(1.2, 0.01, 50)},
		{BoundedPareto{1, 0.01, 50}, boundedCDF(1, 0.01, 50)},
		{BoundedPareto{0.5, 1, 9}, boundedCDF(0.5, 1, 9)},
		{table, func(x float64) float64 {
			switch {
			case x < 0.2:
				return (x - 0.1) / 0.1 * 0.5
			case x < 0.4:
				return 0.5 + (x-0.2)/0.2*0.4
			}
			return 0.9 + (x-0.4)/2.6*0.1
		}},
	} {
		t.Run(c.law.String(), func(t *testing.T) {
			x := samples(c.law, 200_000)
			if slices.Min(x) < 0 {
				t.Errorf("draws %g", slices.Min(x))
			}
			if mean, half := interval(x); math.Abs(mean-c.law.Mean()) > half {
				t.Errorf("mean of samples %g ± %g, of the law %g", mean, half, c.law.Mean())
			}
			agrees(t, x, c.cdf)
		})
	}
}

func boundedCDF(a, lo, hi float64) func(x float64) float64 {
	return func(x float64) float64 { return (1 - math.Pow(lo/x, a)) / (1 - math.Pow(lo/hi, a)) }
}

func TestMeanAndVariationOfLaws(t *testing.T) {
	for _, law := range []Law{LogNormalOf(7.07, 1.22/7.07), GammaOf(3, 1.7), GammaOf(3, 0.2), LogNormalOf(0.04, 0.6)} {
		x := samples(law, 400_000)
		squares := make([]float64, len(x))
		for i, v := range x {
			squares[i] = v * v
		}
		// E X² = mean² (1 + cv²)
		cv := map[string]float64{LogNormalOf(7.07, 1.22/7.07).String(): 1.22 / 7.07, GammaOf(3, 1.7).String(): 1.7,
			GammaOf(3, 0.2).String(): 0.2, LogNormalOf(0.04, 0.6).String(): 0.6}[law.String()]
		want := law.Mean() * law.Mean() * (1 + cv*cv)
		if mean, half := interval(squares); math.Abs(mean-want) > half {
			t.Errorf("%v: E X² %g ± %g, want %g", law, mean, half, want)
		}
	}
}

// The published benchmark's tasks: 1.47 s in the mean, and 5.4 % of them at the
// largest image (its dossier; 200,000 draws).
func TestPaperImage(t *testing.T) {
	x := samples(PaperImage{}, 200_000)
	mean, half := interval(x)
	if math.Abs(mean-PaperImage{}.Mean()) > half || math.Abs(mean-1.47) > 0.005 {
		t.Errorf("mean %g ± %g, computed %g, published 1.47", mean, half, PaperImage{}.Mean())
	}
	largest := 0
	for _, v := range x {
		if v == imageTime(imageMost) {
			largest++
		}
		side := math.Sqrt((v - imageB) / imageA)
		if math.Abs(side-math.Round(side)) > 1e-6 || side < imageLeast-1e-6 || side > imageMost+1e-6 {
			t.Fatalf("%g s is that of %g pixels", v, side)
		}
	}
	if p := float64(largest) / float64(len(x)); math.Abs(p-0.054) > 0.002 {
		t.Errorf("%.4f of the tasks at the cap, want 0.054", p)
	}
}

func TestQuantilesRefuse(t *testing.T) {
	for _, c := range []struct{ at, values []float64 }{
		{[]float64{0}, []float64{1}}, {[]float64{0, 1}, []float64{1}}, {[]float64{0.1, 1}, []float64{1, 2}}, {[]float64{0, 0.9}, []float64{1, 2}},
		{[]float64{0, 0.5, 0.5, 1}, []float64{1, 2, 2, 3}}, {[]float64{0, 0.5, 1}, []float64{1, 3, 2}},
		{[]float64{0, 1}, []float64{-1, 2}}, {[]float64{0, 1}, []float64{1, math.NaN()}}, {[]float64{0, math.NaN(), 1}, []float64{1, 2, 3}},
	} {
		if _, err := NewQuantiles(c.at, c.values); err == nil {
			t.Errorf("%v %v are taken", c.at, c.values)
		}
	}
}

func samples(law Law, n int) []float64 {
	r := Stream(11, StreamService)
	x := make([]float64, n)
	for i := range x {
		x[i] = law.Draw(r)
	}
	return x
}

// agrees fails where samples differ from a continuous distribution function by
// more than the statistic of Kolmogorov and Smirnov does once in a thousand.
func agrees(t *testing.T, x []float64, cdf func(float64) float64) {
	t.Helper()
	x = slices.Sorted(slices.Values(x))
	n, worst := float64(len(x)), 0.0
	for i, v := range x {
		p := cdf(v)
		worst = max(worst, math.Abs(p-float64(i)/n), math.Abs(p-float64(i+1)/n))
	}
	if bound := 1.95 / math.Sqrt(n); !(worst < bound) {
		t.Errorf("the distribution functions differ by %.5f, want below %.5f", worst, bound)
	}
}

func BenchmarkLaws(b *testing.B) {
	table, err := NewQuantiles([]float64{0, 0.5, 0.9, 1}, []float64{0.1, 0.2, 0.4, 3})
	if err != nil {
		b.Fatal(err)
	}
	for name, law := range map[string]Law{"exponential": Exponential{Average: 1}, "lognormal": LogNormalOf(1, 0.6), "gamma": Gamma{4, 1},
		"pareto": BoundedPareto{1.2, 1, 100}, "quantiles": table, "paper-image": PaperImage{}} {
		b.Run(name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				law.Draw(r)
			}
		})
	}
}
