package workload

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// Gaps of an inhomogeneous Poisson process are exponential where time is measured
// in expected arrivals (the time-rescaling theorem), whatever the rate did.
func TestArrivalsFollowTheirRate(t *testing.T) {
	uneven := Cycle{Rates: []float64{1, 30, 5, 80, 0}, Period: 500}
	for name, c := range map[string]struct {
		p        Arrivals
		expected func(t float64) float64 // nil: what the changes say
	}{
		"poisson":     {Poisson{20}, func(t float64) float64 { return 20 * t }},
		"levels":      {Levels{Levels: []Level{{20, Uniform{20, 90}}, {200, Uniform{20, 90}}}}, nil},
		"onoff":       {OnOff(50, Exponential{Average: 10}, BoundedPareto{1.5, 1, 1000}), nil},
		"walk":        {Walk{Min: 20, Max: 200, Start: 110, Step: 12, Every: 5}, nil},
		"selfsimilar": {SelfSimilar{Mean: 40, Sources: 20, Hurst: 0.8, On: 1, Off: 3}, nil},
		"flash":       {Flash{Base: 60, Plateaus: []Plateau{{180, Uniform{300, 1300}, Constant{240}}, {90, Constant{500}, Constant{900}}}}, nil},
		"sinusoid": {Sinusoid{Mean: 110, Amplitude: 90, Period: 600, Phase: 1}, func(t float64) float64 {
			w := 2 * math.Pi / 600
			return 110*t - 90/w*(math.Cos(w*t+1)-math.Cos(1))
		}},
		"ramp":   {Ramp(20, 200, 1800), integral(Ramp(20, 200, 1800))},
		"uneven": {uneven, integral(uneven)},
	} {
		t.Run(name, func(t *testing.T) {
			const horizon = 1800
			at, changes := c.p.Draw(Stream(5, StreamArrivals), horizon, nil)
			if !slices.IsSorted(at) || at[0] < 0 || at[len(at)-1] >= horizon {
				t.Fatal("the instants are not in order, or not within the horizon")
			}
			if changes[0].At != 0 || !slices.IsSortedFunc(changes, func(a, b Change) int { return int(math.Copysign(1, a.At-b.At)) }) {
				t.Errorf("changes %v", changes[:min(5, len(changes))])
			}
			expected := c.expected
			if expected == nil {
				expected = sums(changes, horizon)
			}
			var gaps []float64
			last := 0.0
			for _, x := range at {
				gaps = append(gaps, expected(x)-last)
				last += gaps[len(gaps)-1]
			}
			agrees(t, gaps, distuv.Exponential{Rate: 1}.CDF)
			// the counts of stretches are as spread as Poisson's: their index of
			// dispersion is that of chi-square
			const bins = 600
			counts := make([]float64, bins)
			for _, x := range at {
				counts[min(bins-1, int(expected(x)/expected(horizon)*bins))]++
			}
			iod := variance(counts) / (float64(len(at)) / bins)
			if math.Abs(iod-1) > 3.5*math.Sqrt(2./bins) {
				t.Errorf("index of dispersion %.3f", iod)
			}
		})
	}
}

// integral of a cycle's rate, by steps that its straight pieces make exact but for
// where they meet.
func integral(p Cycle) func(t float64) float64 {
	const step = 0.05
	sum := []float64{0}
	rate := func(t float64) float64 {
		n := float64(len(p.Rates))
		x := math.Mod(t/p.Period*n, n)
		i := int(x)
		return p.Rates[i] + (x-float64(i))*(p.Rates[(i+1)%len(p.Rates)]-p.Rates[i])
	}
	for i := range 3600*20 + 1 {
		sum = append(sum, sum[i]+rate((float64(i)+0.5)*step)*step)
	}
	return func(t float64) float64 {
		i := int(t / step)
		return sum[i] + (t/step-float64(i))*(sum[i+1]-sum[i])
	}
}

// sums of a rate that is constant from change to change.
func sums(changes []Change, horizon float64) func(t float64) float64 {
	sum := make([]float64, len(changes)+1)
	for i, c := range changes {
		sum[i+1] = sum[i] + c.Rate*(end(changes, i, horizon)-c.At)
	}
	return func(t float64) float64 {
		i, _ := slices.BinarySearchFunc(changes, t, func(c Change, t float64) int {
			if c.At <= t {
				return -1
			}
			return 1
		})
		return sum[i-1] + changes[i-1].Rate*(t-changes[i-1].At)
	}
}

func TestLevelsLastAsTheirLawSays(t *testing.T) {
	p := Levels{Levels: []Level{{1, Uniform{20, 90}}, {2, Exponential{Average: 120, Shift: 30}}}}
	_, changes := p.Draw(Stream(1, StreamArrivals), 500_000, nil)
	var low, high []float64
	for i, c := range changes[:len(changes)-1] {
		if length := changes[i+1].At - c.At; c.Rate == 1 {
			low = append(low, length)
		} else {
			high = append(high, length)
		}
	}
	agrees(t, low, distuv.Uniform{Min: 20, Max: 90}.CDF)
	agrees(t, high, func(x float64) float64 { return distuv.Exponential{Rate: 1. / 90}.CDF(x - 30) })
}

// A Markov-modulated process is in each level as long as its stationary
// distribution says: π ∝ mean time × share of visits.
func TestMarkovModulated(t *testing.T) {
	next := [][]float64{{0, 0.5, 0.5}, {1, 0, 0}, {0.2, 0.8, 0}}
	means := []float64{10, 5, 20}
	p := Levels{Next: next}
	for i, m := range means {
		p.Levels = append(p.Levels, Level{float64(i + 1), Exponential{Average: m}})
	}
	// visits: v = v P; v₀ = v₁ + 0.2 v₂, v₂ = 0.5 v₀, so v = (1, 0.9, 0.5)
	var want [3]float64
	total := 10 + 0.9*5 + 0.5*20
	for i, v := range []float64{1, 0.9, 0.5} {
		want[i] = v * means[i] / total
	}
	var shares [3][]float64
	for seed := range uint64(60) {
		const horizon = 20_000
		_, changes := p.Draw(Stream(seed, StreamArrivals), horizon, nil)
		var in [3]float64
		for i, c := range changes {
			in[int(c.Rate)-1] += (end(changes, i, horizon) - c.At) / horizon
		}
		for i, x := range in {
			shares[i] = append(shares[i], x)
		}
	}
	for i, x := range shares {
		if mean, half := interval(x); math.Abs(mean-want[i]) > half {
			t.Errorf("level %d: %.4f ± %.4f of the time, want %.4f", i, mean, half, want[i])
		}
	}
}

func TestWalkStaysBetweenItsBounds(t *testing.T) {
	p := Walk{Min: 20, Max: 200, Start: 110, Step: 12, Every: 5}
	var steps []float64
	for seed := range uint64(20) {
		_, changes := p.Draw(Stream(seed, StreamArrivals), 3600, nil)
		for i, c := range changes {
			if c.Rate < 20 || c.Rate > 200 || c.At != 5*float64(i) {
				t.Fatalf("change %d: %+v", i, c)
			}
			if i > 0 && min(c.Rate, changes[i-1].Rate) > 80 && max(c.Rate, changes[i-1].Rate) < 140 { // no bound near
				steps = append(steps, c.Rate-changes[i-1].Rate)
			}
		}
	}
	if mean, half := interval(steps); math.Abs(mean) > half {
		t.Errorf("steps of %.3f ± %.3f in the mean", mean, half)
	}
	for _, c := range []struct{ x, want float64 }{{5, 5}, {-1, 1}, {11, 9}, {23, 3}, {-12, 8}, {10, 10}} {
		if got := fold(c.x, 0, 10); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%g is reflected to %g, want %g", c.x, got, c.want)
		}
	}
}

func TestFlashPlateaus(t *testing.T) {
	p := Flash{Base: 10, Plateaus: []Plateau{{30, Constant{100}, Constant{50}}, {20, Constant{120}, Constant{50}}, {40, Constant{900}, Constant{50}}}}
	_, changes := p.Draw(Stream(1, StreamArrivals), 800, nil)
	want := []Change{{0, 10}, {100, 30}, {150, 20}, {170, 10}}
	if !slices.Equal(changes, want) {
		t.Errorf("changes %v, want %v", changes, want)
	}
}

// Self-similar arrivals are stationary from the start, and their variance over
// blocks of m seconds decays like m^(2H−2), not like Poisson's m^−1.
func TestSelfSimilar(t *testing.T) {
	p := SelfSimilar{Mean: 100, Sources: 30, Hurst: 0.8, On: 1, Off: 2}
	var first []float64
	for seed := range uint64(2000) {
		_, changes := p.Draw(Stream(seed, StreamArrivals), 0.01, nil)
		first = append(first, changes[0].Rate)
	}
	if mean, half := interval(first); math.Abs(mean-100) > half {
		t.Errorf("begins at %.1f ± %.1f per second, want 100", mean, half)
	}
	const alpha = 3 - 2*0.8
	r := Stream(3, StreamArrivals)
	var whole, left []float64
	for range 100_000 {
		whole, left = append(whole, pareto(r, 2, alpha)), append(left, residual(r, 2, alpha))
	}
	least := 2 * (alpha - 1) / alpha
	agrees(t, whole, func(x float64) float64 { return 1 - math.Pow(least/x, alpha) })
	agrees(t, left, func(x float64) float64 {
		if x < least {
			return x / 2
		}
		return 1 - math.Pow(least/x, alpha-1)/alpha
	})
	var hurst []float64
	p.Mean = 1 // few tasks: what the rate does is the same
	for seed := range uint64(12) {
		const horizon = 16384
		_, changes := p.Draw(Stream(seed, StreamArrivals), horizon, nil)
		expected := sums(changes, horizon)
		rates := make([]float64, horizon)
		for i := range rates {
			rates[i] = expected(float64(i+1)) - expected(float64(i))
		}
		fine, coarse := variance(blocks(rates, 8)), variance(blocks(rates, 256))
		hurst = append(hurst, 1+math.Log(coarse/fine)/math.Log(32)/2)
	}
	// a finite record's variances are too small, the more so the longer the blocks:
	// by (blocks)^(2H−2), which is 0.81 and 0.95 here and takes 0.02 off
	mean, half := interval(hurst)
	if math.Abs(mean-0.78) > half+0.02 {
		t.Errorf("Hurst %.3f ± %.3f, want 0.78", mean, half)
	}
}

// blocks are the means of m neighbours.
func blocks(x []float64, m int) []float64 {
	y := make([]float64, len(x)/m)
	for i := range y {
		for _, v := range x[i*m : (i+1)*m] {
			y[i] += v / float64(m)
		}
	}
	return y
}

// A shorter horizon gives the first tasks of a longer one.
func TestHorizonOnlyCuts(t *testing.T) {
	for _, name := range Names() {
		s, err := Find(name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		long := s.Draw(3)
		s.Horizon /= 3
		short := s.Draw(3)
		n := len(short.At)
		if n == 0 || !slices.Equal(short.At, long.At[:n]) || !slices.Equal(short.Service, long.Service[:n]) || long.At[n] < s.Horizon {
			t.Errorf("%s: a third of the horizon has other tasks", name)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	for _, name := range Names() {
		s, err := Find(name, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			var at []float64
			n, seed := 0, uint64(0)
			for b.Loop() {
				at, _ = s.Arrivals.Draw(Stream(seed, StreamArrivals), s.Horizon, at[:0])
				n += len(at)
				seed++
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "M_arrivals/s")
		})
	}
}
