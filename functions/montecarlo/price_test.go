package main

import (
	"context"
	"errors"
	"math"
	"testing"
)

// blackScholes is the closed form (Black and Scholes, The Pricing of Options
// and Corporate Liabilities, 1973, eq. 13): for a call
// S Φ(d₁) − K e^(−rT) Φ(d₂), for a put by put-call parity.
func blackScholes(o Option) float64 {
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	width := o.Volatility * math.Sqrt(o.Maturity)
	d1 := (math.Log(o.Spot/o.Strike) + (o.Rate+o.Volatility*o.Volatility/2)*o.Maturity) / width
	bond := o.Strike * math.Exp(-o.Rate*o.Maturity)
	call := o.Spot*phi(d1) - bond*phi(d1-width)
	if o.Kind == Put {
		return call - o.Spot + bond
	}
	return call
}

var options = map[string]Option{
	"example":       {100, 105, 0.02, 0.25, 1, Call},
	"example put":   {100, 105, 0.02, 0.25, 1, Put},
	"in the money":  {120, 100, 0.05, 0.3, 0.5, Call},
	"short":         {100, 100, 0.01, 0.2, 1.0 / 52, Put},
	"long":          {80, 100, 0.03, 0.4, 10, Call},
	"negative rate": {100, 90, -0.01, 0.15, 2, Put},
	"wild":          {1, 1.2, 0, 0.9, 1, Call},
}

// The test's own formula against a printed example: Hull, Options, Futures and
// Other Derivatives, 8th ed., example 14.6: S = 42, K = 40, r = 0.1, σ = 0.2,
// T = 0.5 gives a call of 4.76 and a put of 0.81.
func TestBlackScholesPrinted(t *testing.T) {
	for kind, want := range map[Kind]float64{Call: 4.76, Put: 0.81} {
		if got := blackScholes(Option{42, 40, 0.1, 0.2, 0.5, kind}); math.Abs(got-want) > 0.005 {
			t.Errorf("%s: %.4f, printed %.2f", kind, got, want)
		}
	}
}

func TestPriceAgreesWithBlackScholes(t *testing.T) {
	for name, o := range options {
		for seed := range uint64(5) {
			e, err := Price(context.Background(), o, 200_000, seed)
			if err != nil {
				t.Fatal(err)
			}
			if exact := blackScholes(o); !(math.Abs(e.Price-exact) < 4*e.StdErr) {
				t.Errorf("%s, seed %d: %g ± %g, exact %g", name, seed, e.Price, e.StdErr, exact)
			}
		}
	}
}

// The standard error is right when the interval of z standard errors holds the
// exact price as often as the normal law says. The count of hits is binomial;
// four of its standard deviations are allowed. Taken from single paths instead
// of pairs, the interval would be far too wide and hold it too often.
func TestStandardErrorCovers(t *testing.T) {
	const runs = 2000
	for name, o := range options {
		if name == "wild" || name == "long" {
			continue // so skewed that the mean of 2000 pairs is not yet normal
		}
		exact := blackScholes(o)
		var within1, within2 int
		for seed := range uint64(runs) {
			e, err := Price(context.Background(), o, 4000, seed)
			if err != nil {
				t.Fatal(err)
			}
			switch off := math.Abs(e.Price-exact) / e.StdErr; {
			case off < 1:
				within1++
				fallthrough
			case off < 1.959964:
				within2++
			}
		}
		for p, hits := range map[float64]int{0.682689: within1, 0.95: within2} {
			if slack := 4 * math.Sqrt(runs*p*(1-p)); math.Abs(float64(hits)-runs*p) > slack {
				t.Errorf("%s: %d of %d within the %g interval, want %.0f ± %.0f", name, hits, runs, p, runs*p, slack)
			}
		}
	}
}

func TestPriceIsDeterministic(t *testing.T) {
	o := options["example"]
	a, _ := Price(context.Background(), o, 10_001, 7)
	b, _ := Price(context.Background(), o, 10_001, 7)
	c, _ := Price(context.Background(), o, 10_001, 8)
	if a != b || a.Price == c.Price || a.Paths != 10_002 || a.Seed != 7 {
		t.Errorf("%+v %+v %+v", a, b, c)
	}
}

func TestPriceStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Price(ctx, options["example"], maxPaths, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The error of a sample needs two pairs, whatever was asked for.
func TestFewPaths(t *testing.T) {
	for paths, want := range map[int]int{1: 4, 2: 4, 3: 4, 4: 4, 5: 6} {
		e, err := Price(t.Context(), options["example"], paths, 7)
		if err != nil || e.Paths != want || math.IsNaN(e.StdErr) {
			t.Errorf("%d paths: %+v %v", paths, e, err)
		}
	}
}

// patience is a context that ends after some looks at it.
type patience struct {
	context.Context
	looks int
}

func (p *patience) Err() error {
	if p.looks--; p.looks < 0 {
		return context.Canceled
	}
	return nil
}

func TestPriceStopsHalfway(t *testing.T) {
	p := &patience{t.Context(), 3}
	if _, err := Price(p, options["example"], maxPaths, 1); !errors.Is(err, context.Canceled) || p.looks != -1 {
		t.Errorf("%d looks left: %v", p.looks, err)
	}
}

func BenchmarkPrice(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Price(context.Background(), options["example"], 100_000, 1); err != nil {
			b.Fatal(err)
		}
	}
}
