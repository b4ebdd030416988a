// Package nn has the parts of neural networks: named parameters, layers, initial
// values, Adam, clipping and Polyak averages.
//
// A network is a description (Linear, MLP: which parameters it uses, and in what
// order) apart from its parameters. So one description serves the network that is
// trained and the slowly following copy of it, and all parameters of a learner
// are one stretch of memory.
package nn

import (
	"fmt"
	"math"
	"math/rand/v2"

	"farmhand/rl/tape"
)

// Params are named matrices in one stretch of memory.
type Params struct {
	Data   []float64 // all of them, one after the other, row by row
	shapes []Shape
}

// Shape is a parameter's name, such as "policy.0.weight", and size. A weight has
// a row for each input and a column for each output (PyTorch's is the transpose);
// a bias or a gain is one row.
type Shape struct {
	Name       string
	Rows, Cols int
	offset     int
}

// Add appends a parameter of zeros and returns its number.
func (p *Params) Add(name string, rows, cols int) int {
	p.shapes = append(p.shapes, Shape{name, rows, cols, len(p.Data)})
	p.Data = append(p.Data, make([]float64, rows*cols)...)
	return len(p.shapes) - 1
}

// Shapes lists all parameters; the caller does not change the list.
func (p *Params) Shapes() []Shape { return p.shapes }

// Values are the numbers of parameter i, row by row. They are the parameter
// itself, until the next Add.
func (p *Params) Values(i int) []float64 {
	s := p.shapes[i]
	return p.Data[s.offset : s.offset+s.Rows*s.Cols]
}

// Clone returns a copy that shares no values.
func (p *Params) Clone() *Params {
	return &Params{Data: append([]float64(nil), p.Data...), shapes: p.shapes}
}

// Bind puts the parameters on a tape, without copying, and appends them to dst in
// the order of their numbers.
func (p *Params) Bind(t *tape.Tape, dst []tape.Var) []tape.Var {
	for i, s := range p.shapes {
		dst = append(dst, t.Input(s.Rows, s.Cols, p.Values(i)))
	}
	return dst
}

// Finite returns an error that names the first parameter with a NaN or Inf.
func (p *Params) Finite() error {
	for i, s := range p.shapes {
		for _, v := range p.Values(i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("nn: %s has the value %g", s.Name, v)
			}
		}
	}
	return nil
}

// Flatten copies gradients, in the order of the parameters, into one stretch of
// memory laid out as Data.
func (p *Params) Flatten(t *tape.Tape, grads []tape.Var, dst []float64) {
	for i, s := range p.shapes {
		copy(dst[s.offset:s.offset+s.Rows*s.Cols], t.Value(grads[i]))
	}
}

// Init fills a matrix of initial weights.
type Init func(rng *rand.Rand, rows, cols int, w []float64)

// He draws from N(0, 2/rows), which keeps the variance from layer to layer of
// rectified units (He et al., arXiv 1502.01852).
func He(rng *rand.Rand, rows, cols int, w []float64) {
	sd := math.Sqrt(2 / float64(rows))
	for i := range w {
		w[i] = sd * rng.NormFloat64()
	}
}

// Orthogonal is gain times a matrix with orthonormal rows or columns, whichever
// are fewer (Saxe, McClelland & Ganguli, arXiv 1312.6120): a normal matrix, its
// vectors made orthogonal one after the other.
func Orthogonal(gain float64) Init {
	return func(rng *rand.Rand, rows, cols int, w []float64) {
		// The n vectors of length m stand at stride apart, their numbers at step.
		n, m, stride, step := rows, cols, cols, 1
		if rows > cols {
			n, m, stride, step = cols, rows, 1, cols
		}
		for i := range n {
			v := w[i*stride:]
			for {
				for k := range m {
					v[k*step] = rng.NormFloat64()
				}
				// Twice, since rounding leaves a rest after the first time.
				for range 2 {
					for j := range i {
						u, dot := w[j*stride:], 0.0
						for k := range m {
							dot += u[k*step] * v[k*step]
						}
						for k := range m {
							v[k*step] -= dot * u[k*step]
						}
					}
				}
				norm := 0.0
				for k := range m {
					norm += v[k*step] * v[k*step]
				}
				if norm = math.Sqrt(norm); norm > 1e-6 {
					for k := range m {
						v[k*step] /= norm
					}
					break
				}
			}
		}
		for i := range w {
			w[i] *= gain
		}
	}
}
