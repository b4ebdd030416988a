package tape

import (
	"fmt"
	"math"
)

// like writes down an operation whose value has the shape of x.
func (t *Tape) like(x Var, back vjp, in ...Var) (y Var, from, to []float64) {
	rows, cols := t.Dims(x)
	y, to = t.put(rows, cols, back, in...)
	return y, t.val(x), to
}

// operand is the first operand of y.
func (t *Tape) operand(y Var) Var { return t.at(y).in[0] }

// Scale is k·x.
func (t *Tape) Scale(k float64, x Var) Var {
	y, from, to := t.like(x, backScale, x)
	for i, v := range from {
		to[i] = k * v
	}
	t.at(y).k = k
	return y
}

func backScale(t *Tape, y, g Var) { t.add(t.operand(y), t.Scale(t.at(y).k, g)) }

// Neg is −x.
func (t *Tape) Neg(x Var) Var { return t.Scale(-1, x) }

// Offset is x + k.
func (t *Tape) Offset(x Var, k float64) Var {
	y, from, to := t.like(x, backOffset, x)
	for i, v := range from {
		to[i] = v + k
	}
	return y
}

func backOffset(t *Tape, y, g Var) { t.add(t.operand(y), g) }

// Exp is eˣ.
func (t *Tape) Exp(x Var) Var {
	y, from, to := t.like(x, backExp, x)
	for i, v := range from {
		to[i] = math.Exp(v)
	}
	return y
}

func backExp(t *Tape, y, g Var) { t.add(t.operand(y), t.Mul(g, y)) }

// Log is the natural logarithm.
func (t *Tape) Log(x Var) Var {
	y, from, to := t.like(x, backLog, x)
	for i, v := range from {
		to[i] = math.Log(v)
	}
	return y
}

func backLog(t *Tape, y, g Var) { t.add(t.operand(y), t.Div(g, t.operand(y))) }

// Sqrt is the square root; its gradient at 0 is infinite.
func (t *Tape) Sqrt(x Var) Var {
	y, from, to := t.like(x, backSqrt, x)
	for i, v := range from {
		to[i] = math.Sqrt(v)
	}
	return y
}

func backSqrt(t *Tape, y, g Var) { t.add(t.operand(y), t.Div(t.Scale(0.5, g), y)) }

// Square is x².
func (t *Tape) Square(x Var) Var {
	y, from, to := t.like(x, backSquare, x)
	for i, v := range from {
		to[i] = v * v
	}
	return y
}

func backSquare(t *Tape, y, g Var) {
	x := t.operand(y)
	t.add(x, t.Scale(2, t.Mul(g, x)))
}

// Abs is |x|; its gradient at 0 is 0.
func (t *Tape) Abs(x Var) Var {
	y, from, to := t.like(x, backAbs, x)
	for i, v := range from {
		to[i] = math.Abs(v)
	}
	return y
}

func backAbs(t *Tape, y, g Var) {
	x := t.operand(y)
	sign, from, to := t.like(x, nil)
	for i, v := range from {
		to[i] = 0
		if v != 0 {
			to[i] = math.Copysign(1, v)
		}
	}
	t.add(x, t.Mul(g, sign))
}

// Sigmoid is 1/(1+e⁻ˣ).
func (t *Tape) Sigmoid(x Var) Var {
	y, from, to := t.like(x, backSigmoid, x)
	for i, v := range from {
		to[i] = 1 / (1 + math.Exp(-v))
	}
	return y
}

func backSigmoid(t *Tape, y, g Var) {
	t.add(t.operand(y), t.Mul(g, t.Sub(y, t.Square(y))))
}

// Softplus is log(1 + eˣ).
func (t *Tape) Softplus(x Var) Var {
	y, from, to := t.like(x, backSoftplus, x)
	for i, v := range from {
		to[i] = math.Max(v, 0) + math.Log1p(math.Exp(-math.Abs(v)))
	}
	return y
}

func backSoftplus(t *Tape, y, g Var) {
	x := t.operand(y)
	t.add(x, t.Mul(g, t.Sigmoid(x)))
}

// Tanh is the hyperbolic tangent.
func (t *Tape) Tanh(x Var) Var {
	y, from, to := t.like(x, backTanh, x)
	for i, v := range from {
		to[i] = math.Tanh(v)
	}
	return y
}

func backTanh(t *Tape, y, g Var) { t.add(t.operand(y), t.tanhGrad(g, y)) }

// tanhGrad is g·(1−y²), fused since it is on the way of every step of training.
func (t *Tape) tanhGrad(g, y Var) Var {
	d, from, to := t.like(g, backTanhGrad, g, y)
	val := t.val(y)
	for i, v := range from {
		to[i] = v * (1 - val[i]*val[i])
	}
	return d
}

func backTanhGrad(t *Tape, d, h Var) {
	g, y := t.at(d).in[0], t.at(d).in[1]
	if t.flows(g) {
		t.add(g, t.tanhGrad(h, y))
	}
	if t.flows(y) {
		t.add(y, t.Scale(-2, t.Mul(h, t.Mul(g, y))))
	}
}

// Relu is max(x, 0); its gradient at 0 is 0.
func (t *Tape) Relu(x Var) Var {
	y, from, to := t.like(x, backRelu, x)
	for i, v := range from {
		to[i] = max(v, 0)
	}
	return y
}

func backRelu(t *Tape, y, g Var) { t.add(t.operand(y), t.gate(g, y)) }

// gate is g where y is positive, and 0 elsewhere. Nothing flows back to y.
func (t *Tape) gate(g, y Var) Var {
	d, from, to := t.like(g, backGate, g, y)
	val := t.val(y)
	for i, v := range from {
		if !(val[i] > 0) {
			v = 0
		}
		to[i] = v
	}
	return d
}

func backGate(t *Tape, d, h Var) {
	if g := t.at(d).in[0]; t.flows(g) {
		t.add(g, t.gate(h, t.at(d).in[1]))
	}
}

// Clip is x limited to lo … hi; its gradient is 1 inside and 0 outside.
func (t *Tape) Clip(x Var, lo, hi float64) Var {
	y, from, to := t.like(x, backClip, x)
	for i, v := range from {
		to[i] = min(max(v, lo), hi)
	}
	n := t.at(y)
	n.k, n.l = lo, hi
	return y
}

func backClip(t *Tape, y, g Var) {
	n, x := *t.at(y), t.operand(y)
	inside, from, to := t.like(x, nil)
	for i, v := range from {
		to[i] = 0
		if n.k < v && v < n.l {
			to[i] = 1
		}
	}
	t.add(x, t.Mul(g, inside))
}

// Huber is the loss of Huber (1964): x²/2 within ±delta, and beyond it the
// tangent, delta·(|x| − delta/2).
func (t *Tape) Huber(x Var, delta float64) Var {
	y, from, to := t.like(x, backHuber, x)
	for i, v := range from {
		if a := math.Abs(v); a <= delta {
			to[i] = v * v / 2
		} else {
			to[i] = delta * (a - delta/2)
		}
	}
	t.at(y).k = delta
	return y
}

func backHuber(t *Tape, y, g Var) {
	x, delta := t.operand(y), t.at(y).k
	t.add(x, t.Mul(g, t.Clip(x, -delta, delta)))
}

// same makes the shapes of two operands equal: what has one row or column is
// repeated.
func (t *Tape) same(a, b Var) (Var, Var) {
	m, n := t.Dims(a)
	k, l := t.Dims(b)
	if m == k && n == l {
		return a, b
	}
	if m != k && m != 1 && k != 1 || n != l && n != 1 && l != 1 {
		panic(fmt.Sprintf("tape: %d×%d and %d×%d do not fit one another", m, n, k, l))
	}
	return t.Broadcast(a, max(m, k), max(n, l)), t.Broadcast(b, max(m, k), max(n, l))
}

// Add is a + b. As in all operations on two values, one row or column is added to
// all of the other's.
func (t *Tape) Add(a, b Var) Var {
	a, b = t.same(a, b)
	y, from, to := t.like(a, backAdd, a, b)
	other := t.val(b)
	for i, v := range from {
		to[i] = v + other[i]
	}
	return y
}

func backAdd(t *Tape, y, g Var) {
	for _, x := range t.at(y).in[:2] {
		if t.flows(x) {
			t.add(x, g)
		}
	}
}

// Sub is a − b.
func (t *Tape) Sub(a, b Var) Var {
	a, b = t.same(a, b)
	y, from, to := t.like(a, backSub, a, b)
	other := t.val(b)
	for i, v := range from {
		to[i] = v - other[i]
	}
	return y
}

func backSub(t *Tape, y, g Var) {
	a, b := t.at(y).in[0], t.at(y).in[1]
	if t.flows(a) {
		t.add(a, g)
	}
	if t.flows(b) {
		t.add(b, t.Neg(g))
	}
}

// Mul is a∘b, element by element.
func (t *Tape) Mul(a, b Var) Var {
	a, b = t.same(a, b)
	y, from, to := t.like(a, backMul, a, b)
	other := t.val(b)
	for i, v := range from {
		to[i] = v * other[i]
	}
	return y
}

func backMul(t *Tape, y, g Var) {
	a, b := t.at(y).in[0], t.at(y).in[1]
	if t.flows(a) {
		t.add(a, t.Mul(g, b))
	}
	if t.flows(b) {
		t.add(b, t.Mul(g, a))
	}
}

// Div is a/b, element by element.
func (t *Tape) Div(a, b Var) Var {
	a, b = t.same(a, b)
	y, from, to := t.like(a, backDiv, a, b)
	other := t.val(b)
	for i, v := range from {
		to[i] = v / other[i]
	}
	return y
}

func backDiv(t *Tape, y, g Var) {
	a, b := t.at(y).in[0], t.at(y).in[1]
	if t.flows(a) {
		t.add(a, t.Div(g, b))
	}
	if t.flows(b) {
		t.add(b, t.Neg(t.Div(t.Mul(g, y), b)))
	}
}

// Min is the smaller of a and b, element by element; where they are equal it is a.
func (t *Tape) Min(a, b Var) Var {
	a, b = t.same(a, b)
	y, from, to := t.like(a, backMin, a, b)
	other := t.val(b)
	for i, v := range from {
		to[i] = min(v, other[i])
	}
	return y
}

func backMin(t *Tape, y, g Var) {
	a, b := t.at(y).in[0], t.at(y).in[1]
	first, from, to := t.like(a, nil)
	other := t.val(b)
	for i, v := range from {
		to[i] = 0
		if v <= other[i] {
			to[i] = 1
		}
	}
	if t.flows(a) {
		t.add(a, t.Mul(g, first))
	}
	if t.flows(b) {
		t.add(b, t.Mul(g, t.Offset(t.Neg(first), 1)))
	}
}

// Max is the larger of a and b, element by element.
func (t *Tape) Max(a, b Var) Var { return t.Neg(t.Min(t.Neg(a), t.Neg(b))) }
