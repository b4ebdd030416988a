package policy

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %.7g, want %.7g ± %g", what, got, want, tolerance)
	}
}

func TestErlang(t *testing.T) {
	for _, c := range []struct {
		c    int
		a    float64
		b, w float64 // B and C
	}{
		{0, 2, 1, 1},
		{1, 0.5, 1.0 / 3, 0.5}, // M/M/1: C = ρ
		{1, 0.9, 0.9 / 1.9, 0.9},
		{2, 1, 1.0 / 5, 1.0 / 3},     // B = a²/2 ÷ (1 + a + a²/2)
		{3, 2, 4.0 / 19, 4.0 / 9},    // B = 8/6 ÷ (1 + 2 + 2 + 8/6)
		{5, 4, 0.1990671, 0.5541129}, // textbook tables
		{10, 8, 0.1216611, 0.4091802},
		{3, 3, 9.0 / 26, 1}, // no more servers than load
		{4, 0, 0, 0},
	} {
		near(t, "B", ErlangB(c.c, c.a), c.b, 1e-6)
		near(t, "C", ErlangC(c.c, c.a), c.w, 1e-6)
	}
	// Halfin and Whitt: C → 1/(1 + βΦ(β)/φ(β)) as the farm grows.
	for _, a := range []float64{2_500, 9_900} {
		for _, beta := range []float64{0.5, 1, 2} {
			c := int(math.Round(a + beta*math.Sqrt(a)))
			exact := (float64(c) - a) / math.Sqrt(a)
			cdf, pdf := math.Erfc(-exact/math.Sqrt2)/2, math.Exp(-exact*exact/2)/math.Sqrt(2*math.Pi)
			near(t, "C of a large farm", ErlangC(c, a)*(1+exact*cdf/pdf), 1, 0.05)
		}
	}
	if b := ErlangB(10_000, 1e6); !(b > 0.98 && b < 1) {
		t.Errorf("B under a hundredfold overload = %g", b)
	}
}

func TestWait(t *testing.T) {
	const s, rho = 0.04, 0.75
	near(t, "M/M/1 wait", Wait(1, rho, s, 1, 1), rho*s/(1-rho), 1e-12)
	near(t, "M/D/1 wait", Wait(1, rho, s, 1, 0), rho*s/(1-rho)/2, 1e-12)
	near(t, "M/G/1 wait", Wait(1, rho, s, 1, 0.36), rho*s/(1-rho)*0.68, 1e-12)
	near(t, "M/M/2 wait", Wait(2, 1, s, 1, 1), s/3, 1e-12)
	if w := Wait(2, 2, s, 1, 1); !math.IsInf(w, 1) {
		t.Errorf("wait at full load = %g", w)
	}
}

// The fewest servers with which at most a share of the tasks wait, by search over
// the closed form.
func TestFewest(t *testing.T) {
	for _, c := range []struct{ a, share, want float64 }{
		{1, 0.2, 3}, {1, 0.05, 4}, {4, 0.2, 7}, {4, 0.05, 9}, {10, 0.2, 14}, {10, 0.05, 17},
		{40, 0.2, 48}, {40, 0.05, 52}, {100, 0.2, 111}, {100, 0.05, 119}, {400, 0.2, 422}, {400, 0.05, 436},
	} {
		got := fewest(c.a, 0, func(_ int, wait float64) bool { return wait <= c.share })
		near(t, "fewest", got, c.want, 0)
	}
	never := func(int, float64) bool { return false }
	near(t, "fewest that never suffice", fewest(4, 0, never), 44, 0)
	near(t, "fewest from a floor", fewest(4, 100, never), 100, 0)
	near(t, "fewest of a huge load", fewest(1e6, 0, never), 1e6+2000, 0)
	near(t, "fewest of no load", fewest(0, 0, func(int, float64) bool { return true }), 1, 0)
}

func TestLognormal(t *testing.T) {
	l := newLognormal(0.04, 0.36) // a scenario of the farm: mean 40 ms, cv 0.6
	near(t, "median", l.quantile(0.5), 0.04/math.Sqrt(1.36), 1e-12)
	near(t, "within 150 ms", l.within(0.15), 0.99610, 1e-4)
	for _, p := range []float64{0.001, 0.3, 0.95, 0.9999} {
		near(t, "within(quantile)", l.within(l.quantile(p)), p, 1e-9)
	}
	fixed := newLognormal(2, 0)
	if fixed.within(1.9) != 0 || fixed.within(2.1) != 1 || fixed.within(0) != 0 {
		t.Error("services without variation differ")
	}
}

// The nodes stand for the integral over all services.
func TestPunctuality(t *testing.T) {
	// Fixed service S in M/M/1-like waits: P = 1 − C·e^(−(D−S)/w).
	var p punctuality
	p.of(0.15, newLognormal(0.04, 0))
	near(t, "fixed service", p.share(0.6, 0.05), 1-0.6*math.Exp(-0.11/0.05), 1e-12)

	for _, cv2 := range []float64{0.01, 0.36, 1, 4} {
		for _, w := range []float64{0.005, 0.02, 0.1} {
			l := newLognormal(0.04, cv2)
			late := 0.0
			p.of(0.15, l)
			const fine = 20_000
			for i := range fine {
				if x := l.quantile((float64(i) + 0.5) / fine); x > 0.15 {
					late++
				} else {
					late += 0.5 * math.Exp(-(0.15-x)/w)
				}
			}
			near(t, "on time", p.share(0.5, w), 1-late/fine, 3e-4)
		}
	}
	p.of(0.01, newLognormal(0.04, 0))
	near(t, "service longer than the deadline", p.share(0.5, 0.1), 0, 0)
}
