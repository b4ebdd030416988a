package main

import (
	"context"
	"math"
	"math/rand/v2"
)

// Kind of an option.
type Kind string

// The two kinds of European options.
const (
	Call Kind = "call"
	Put  Kind = "put"
)

// Option is a European option on an asset without dividends.
type Option struct {
	Spot       float64 // S, price of the asset now
	Strike     float64 // K
	Rate       float64 // r, risk-free, continuously compounded, per year
	Volatility float64 // σ, per square root of a year
	Maturity   float64 // T, years
	Kind       Kind
}

// Estimate of a price.
type Estimate struct {
	Price  float64 `json:"price"`
	StdErr float64 `json:"stderr"` // of Price
	Paths  int     `json:"paths"`  // simulated: those asked for, rounded up to pairs, at least two pairs
	Seed   uint64  `json:"seed"`
}

// checkEvery is the number of pairs between two looks at the context, about
// 0.1 ms apart.
const checkEvery = 4096

// Price simulates the asset's terminal value under geometric Brownian motion,
//
//	S(T) = S exp((r − σ²/2) T + σ √T Z),  Z standard normal,
//
// and averages the discounted payoff e^(−rT) max(S(T) − K, 0), of a put
// max(K − S(T), 0) (Glasserman, Monte Carlo Methods in Financial Engineering,
// 2003, §1.1.2, eq. 1.3–1.4). Each Z serves as an antithetic pair Z, −Z. The two
// are dependent, so the standard error is taken from the means of pairs, which
// are independent (§4.2, eq. 4.28): s/√n for n pairs, with s their sample
// standard deviation, kept by Welford's recurrence.
//
// Price returns ctx's error when it ends.
func Price(ctx context.Context, o Option, paths int, seed uint64) (Estimate, error) {
	var (
		rng      = rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) // the golden ratio: any fixed stream
		drift    = math.Log(o.Spot) + (o.Rate-o.Volatility*o.Volatility/2)*o.Maturity
		width    = o.Volatility * math.Sqrt(o.Maturity)
		discount = math.Exp(-o.Rate * o.Maturity)
		sign     = 1.0
		pairs    = max(2, paths/2+paths%2)

		mean, squares float64 // of the pairs so far: mean, Σ (y − mean)²
	)
	if o.Kind == Put {
		sign = -1
	}
	for i := range pairs {
		if i%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return Estimate{}, err
			}
		}
		z := width * rng.NormFloat64()
		up := max(0, sign*(math.Exp(drift+z)-o.Strike))
		down := max(0, sign*(math.Exp(drift-z)-o.Strike))
		y := (up + down) / 2
		delta := y - mean
		mean += delta / float64(i+1)
		squares += delta * (y - mean)
	}
	n := float64(pairs)
	return Estimate{
		Price:  discount * mean,
		StdErr: discount * math.Sqrt(squares/(n-1)/n),
		Paths:  2 * pairs,
		Seed:   seed,
	}, nil
}
