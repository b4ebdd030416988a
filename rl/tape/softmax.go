package tape

import (
	"math"
	"slices"
)

// Softmax makes each row positive and its sum 1: exp(x)/Σ exp(x).
func (t *Tape) Softmax(x Var) Var {
	y, from, to := t.like(x, backSoftmax, x)
	_, n := t.Dims(x)
	for i := 0; i < len(from); i += n {
		in, out := from[i:i+n], to[i:i+n]
		top, sum := slices.Max(in), 0.0
		for j, v := range in {
			out[j] = math.Exp(v - top)
			sum += out[j]
		}
		for j := range out {
			out[j] /= sum
		}
	}
	return y
}

func backSoftmax(t *Tape, y, g Var) {
	m, _ := t.Dims(y)
	gy := t.Mul(g, y)
	t.add(t.operand(y), t.Sub(gy, t.Mul(y, t.SumTo(gy, m, 1))))
}

// LogSoftmax is the logarithm of Softmax.
func (t *Tape) LogSoftmax(x Var) Var {
	y, from, to := t.like(x, backLogSoftmax, x)
	_, n := t.Dims(x)
	for i := 0; i < len(from); i += n {
		in, out := from[i:i+n], to[i:i+n]
		top, sum := slices.Max(in), 0.0
		for _, v := range in {
			sum += math.Exp(v - top)
		}
		sum = top + math.Log(sum)
		for j, v := range in {
			out[j] = v - sum
		}
	}
	return y
}

func backLogSoftmax(t *Tape, y, g Var) {
	m, _ := t.Dims(y)
	t.add(t.operand(y), t.Sub(g, t.Mul(t.Exp(y), t.SumTo(g, m, 1))))
}

// LayerNorm makes mean 0 and variance 1 of each row, then applies a gain and a
// bias to each column (Ba, Kiros & Hinton, arXiv 1607.06450). gain and bias are
// rows.
func (t *Tape) LayerNorm(x, gain, bias Var, epsilon float64) Var {
	centred := t.Sub(x, t.RowMean(x))
	variance := t.RowMean(t.Square(centred))
	return t.Add(t.Mul(t.Div(centred, t.Sqrt(t.Offset(variance, epsilon))), gain), bias)
}
