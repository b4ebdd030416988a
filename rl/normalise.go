package rl

import (
	"fmt"
	"math"

	"farmhand/env"
	"farmhand/internal/checkpoint"
	"farmhand/rl/tape"
)

// Normalise says how an observation becomes a network's input.
type Normalise string

// The ways to normalise.
const (
	NormaliseNone    Normalise = "none"    // as it is
	NormaliseBounds  Normalise = "bounds"  // from the space's bounds to 0 … 1
	NormaliseRunning Normalise = "running" // to mean 0 and deviation 1 of all that was seen; by the bounds at first
)

// inputLimit is how large a normalised number can get.
const inputLimit = 10

// Affine is x' = (x − Shift)·Scale, number by number, limited to ±Limit.
type Affine struct {
	Shift, Scale []float64
	Limit        float64
}

func (f *Affine) apply(to, from []float64) {
	d := len(f.Shift)
	for row := 0; row < len(from); row += d {
		out := to[row : row+d]
		for j, x := range from[row : row+d] {
			out[j] = min(max((x-f.Shift[j])*f.Scale[j], -f.Limit), f.Limit)
		}
	}
}

// normaliser makes inputs of observations.
type normaliser struct {
	Affine
	kind Normalise
	// of all observations seen: their number, means, and sums of squared
	// differences from the mean (Welford 1962)
	n        float64
	mean, m2 []float64
	least    []float64 // deviations are taken to be at least that
}

func newNormaliser(kind Normalise, box *env.Box) (*normaliser, error) {
	d := box.Len()
	f := &normaliser{kind: kind, mean: make([]float64, d), m2: make([]float64, d), least: make([]float64, d)}
	f.Shift, f.Scale, f.Limit = make([]float64, d), make([]float64, d), inputLimit
	for j := range d {
		size := box.High[j] - box.Low[j]
		bounded := size > 0 && !math.IsInf(size, 0)
		f.Scale[j], f.least[j] = 1, 0.01
		switch kind {
		case NormaliseNone:
			f.Limit = math.MaxFloat64
		case NormaliseBounds, NormaliseRunning:
			if bounded {
				f.Shift[j], f.Scale[j] = box.Low[j], 1/size
				// What hardly ever moved must not throw the network when it does.
				f.least[j] = 0.01 * size
			} else if kind == NormaliseBounds && size != 0 {
				return nil, fmt.Errorf("rl: Normalise is %q, but %s has no bounds: want %q", kind, box.Names[j], NormaliseRunning)
			}
		default:
			return nil, fmt.Errorf("rl: Normalise is %q: want %q, %q or %q", kind, NormaliseNone, NormaliseBounds, NormaliseRunning)
		}
	}
	return f, nil
}

// see counts an observation; update makes it have an effect.
func (f *normaliser) see(obs []float64) {
	if f.kind != NormaliseRunning {
		return
	}
	f.n++
	for j, x := range obs {
		d := x - f.mean[j]
		f.mean[j] += d / f.n
		f.m2[j] += d * (x - f.mean[j])
	}
}

func (f *normaliser) update() {
	if f.kind != NormaliseRunning || f.n == 0 {
		return
	}
	for j := range f.mean {
		f.Shift[j] = f.mean[j]
		f.Scale[j] = 1 / max(math.Sqrt(f.m2[j]/f.n), f.least[j])
	}
}

// input puts observations on a tape, as the network sees them.
func (f *normaliser) input(t *tape.Tape, obs []float64) tape.Var {
	x := t.Zeros(len(obs)/len(f.Shift), len(f.Shift))
	f.apply(t.Value(x), obs)
	return x
}

func (f *normaliser) state(c *checkpoint.Codec) {
	c.Float("normalise/n", &f.n)
	c.Floats("normalise/mean", f.mean)
	c.Floats("normalise/m2", f.m2)
	c.Floats("normalise/shift", f.Shift)
	c.Floats("normalise/scale", f.Scale)
}
