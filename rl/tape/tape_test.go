package tape_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"farmhand/rl/tape"
)

// shape of an input, and how a standard normal number becomes one of it.
type shape struct {
	rows, cols int
	make       func(z float64) float64
}

func normal(rows, cols int) shape {
	return shape{rows, cols, func(z float64) float64 { return z }}
}
func positive(rows, cols int) shape {
	return shape{rows, cols, func(z float64) float64 { return 0.5 + math.Abs(z) }}
}

// away keeps from the points where an operation bends: 0, ±1.
func away(rows, cols int) shape {
	return shape{rows, cols, func(z float64) float64 {
		for _, p := range []float64{0, 1, -1} {
			if math.Abs(z-p) < 0.05 {
				z = p + math.Copysign(0.05, z-p)
			}
		}
		return z
	}}
}

type tp = tape.Tape
type va = tape.Var

// ops is every operation, each with inputs to differentiate by.
var ops = []struct {
	name string
	in   []shape
	f    func(t *tp, x []va) va
}{
	{"MatMul", []shape{normal(3, 4), normal(4, 2)}, func(t *tp, x []va) va { return t.MatMul(x[0], x[1]) }},
	{"MatMulT", []shape{normal(3, 4), normal(2, 4)}, func(t *tp, x []va) va { return t.MatMulT(x[0], x[1]) }},
	{"TMatMul", []shape{normal(4, 3), normal(4, 2)}, func(t *tp, x []va) va { return t.TMatMul(x[0], x[1]) }},
	{"MatMul of itself", []shape{normal(3, 3)}, func(t *tp, x []va) va { return t.MatMul(x[0], x[0]) }},
	{"Affine", []shape{normal(5, 3), normal(3, 4), normal(1, 4)}, func(t *tp, x []va) va { return t.Affine(x[0], x[1], x[2]) }},
	{"Scale", []shape{normal(2, 3)}, func(t *tp, x []va) va { return t.Scale(-2.5, x[0]) }},
	{"Neg", []shape{normal(2, 3)}, func(t *tp, x []va) va { return t.Neg(x[0]) }},
	{"Offset", []shape{normal(2, 3)}, func(t *tp, x []va) va { return t.Square(t.Offset(x[0], 3)) }},
	{"Exp", []shape{normal(2, 3)}, func(t *tp, x []va) va { return t.Exp(x[0]) }},
	{"Log", []shape{positive(2, 3)}, func(t *tp, x []va) va { return t.Log(x[0]) }},
	{"Sqrt", []shape{positive(2, 3)}, func(t *tp, x []va) va { return t.Sqrt(x[0]) }},
	{"Square", []shape{normal(2, 3)}, func(t *tp, x []va) va { return t.Square(x[0]) }},
	{"Abs", []shape{away(3, 3)}, func(t *tp, x []va) va { return t.Square(t.Abs(x[0])) }},
	{"Sigmoid", []shape{normal(2, 3)}, func(t *tp, x []va) va { return t.Sigmoid(x[0]) }},
	{"Softplus", []shape{normal(2, 3)}, func(t *tp, x []va) va { return t.Softplus(x[0]) }},
	{"Tanh", []shape{normal(2, 3)}, func(t *tp, x []va) va { return t.Tanh(x[0]) }},
	{"Relu", []shape{away(3, 4)}, func(t *tp, x []va) va { return t.Square(t.Relu(x[0])) }},
	{"Clip", []shape{away(3, 4)}, func(t *tp, x []va) va { return t.Square(t.Clip(x[0], -1, 1)) }},
	{"Huber", []shape{away(3, 4)}, func(t *tp, x []va) va { return t.Huber(x[0], 1) }},
	{"Add", []shape{normal(2, 3), normal(2, 3)}, func(t *tp, x []va) va { return t.Square(t.Add(x[0], x[1])) }},
	{"Add a row", []shape{normal(2, 3), normal(1, 3)}, func(t *tp, x []va) va { return t.Square(t.Add(x[0], x[1])) }},
	{"Sub a column", []shape{normal(2, 3), normal(2, 1)}, func(t *tp, x []va) va { return t.Square(t.Sub(x[0], x[1])) }},
	{"Mul a number", []shape{normal(1, 1), normal(2, 3)}, func(t *tp, x []va) va { return t.Mul(x[0], x[1]) }},
	{"Mul", []shape{normal(2, 3), normal(2, 3)}, func(t *tp, x []va) va { return t.Mul(x[0], x[1]) }},
	{"Mul by itself", []shape{normal(2, 3)}, func(t *tp, x []va) va { return t.Mul(x[0], x[0]) }},
	{"Mul row and column", []shape{normal(1, 3), normal(2, 1)}, func(t *tp, x []va) va { return t.Mul(x[0], x[1]) }},
	{"Div", []shape{normal(2, 3), positive(2, 3)}, func(t *tp, x []va) va { return t.Div(x[0], x[1]) }},
	{"Min", []shape{normal(3, 4), normal(3, 4)}, func(t *tp, x []va) va { return t.Square(t.Min(x[0], x[1])) }},
	{"Max", []shape{normal(3, 4), normal(3, 4)}, func(t *tp, x []va) va { return t.Square(t.Max(x[0], x[1])) }},
	{"SumTo rows", []shape{normal(3, 4)}, func(t *tp, x []va) va { return t.Square(t.SumTo(x[0], 3, 1)) }},
	{"SumTo columns", []shape{normal(3, 4)}, func(t *tp, x []va) va { return t.Square(t.SumTo(x[0], 1, 4)) }},
	{"Broadcast", []shape{normal(1, 3)}, func(t *tp, x []va) va { return t.Square(t.Broadcast(x[0], 4, 3)) }},
	{"Broadcast a number", []shape{normal(1, 1)}, func(t *tp, x []va) va { return t.Square(t.Broadcast(x[0], 4, 3)) }},
	{"Sum", []shape{normal(3, 4)}, func(t *tp, x []va) va { return t.Square(t.Sum(x[0])) }},
	{"Mean", []shape{normal(3, 4)}, func(t *tp, x []va) va { return t.Square(t.Mean(x[0])) }},
	{"RowMean", []shape{normal(3, 4)}, func(t *tp, x []va) va { return t.Square(t.RowMean(x[0])) }},
	{"Softmax", []shape{normal(3, 4)}, func(t *tp, x []va) va { return t.Softmax(x[0]) }},
	{"LogSoftmax", []shape{normal(3, 4)}, func(t *tp, x []va) va { return t.LogSoftmax(x[0]) }},
	{"LayerNorm", []shape{normal(3, 5), normal(1, 5), normal(1, 5)}, func(t *tp, x []va) va { return t.LayerNorm(x[0], x[1], x[2], 1e-5) }},
	{"Pick", []shape{normal(3, 4)}, func(t *tp, x []va) va { return t.Square(t.Pick(x[0], []int{2, 0, 2})) }},
	{"Gather", []shape{normal(3, 4)}, func(t *tp, x []va) va { return t.Square(t.Gather(x[0], []int{2, 0, 2, 2})) }},
	{"Where", []shape{normal(2, 2)}, func(t *tp, x []va) va {
		return t.LogSoftmax(t.Where([]bool{true, true, false, true}, x[0], -3))
	}},
	{"Scan", []shape{normal(8, 3), normal(8, 3)}, func(t *tp, x []va) va { return t.Scan(x[0], x[1], 4) }},
	{"Scan of one step", []shape{normal(2, 3), normal(2, 3)}, func(t *tp, x []va) va { return t.Scan(x[0], x[1], 1) }},
	{"Shift later", []shape{normal(6, 2)}, func(t *tp, x []va) va { return t.Square(t.Shift(x[0], 3, 1)) }},
	{"Shift earlier", []shape{normal(6, 2)}, func(t *tp, x []va) va { return t.Square(t.Shift(x[0], 3, -2)) }},
	{"attention", []shape{normal(4, 3), normal(3, 3), normal(3, 3)}, func(t *tp, x []va) va {
		q, k := t.MatMul(x[0], x[1]), t.MatMul(x[0], x[2])
		return t.MatMul(t.Softmax(t.Scale(1/math.Sqrt(3), t.MatMulT(q, k))), x[0])
	}},
	{"a network", []shape{normal(4, 3), normal(3, 5), normal(1, 5), normal(5, 2), normal(1, 2)}, func(t *tp, x []va) va {
		return t.LogSoftmax(t.Affine(t.Tanh(t.Affine(x[0], x[1], x[2])), x[3], x[4]))
	}},
}

// Each operation's gradient, and the gradient of its gradient, are those of
// finite differences.
func TestGradients(t *testing.T) {
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(len(op.name))))
			var values [][]float64
			for _, s := range op.in {
				x := make([]float64, s.rows*s.cols)
				for i := range x {
					x[i] = s.make(rng.NormFloat64())
				}
				values = append(values, x)
			}
			weights := func(n int, seed uint64) []float64 {
				rng, w := rand.New(rand.NewPCG(seed, 9)), make([]float64, n)
				for i := range w {
					w[i] = rng.NormFloat64()
				}
				return w
			}
			inputs := func(tp *tape.Tape) (xs []va) {
				tp.Reset()
				for i, s := range op.in {
					xs = append(xs, tp.Input(s.rows, s.cols, values[i]))
				}
				return xs
			}
			// first is a number made of the operation's result, with weights so that
			// no element's error is hidden by another's.
			first := func(tp *tape.Tape, xs []va) va {
				y := op.f(tp, xs)
				rows, cols := tp.Dims(y)
				return tp.Sum(tp.Mul(y, tp.Input(rows, cols, weights(rows*cols, 1))))
			}
			// second is one made of the gradients of first.
			second := func(tp *tape.Tape, xs []va) va {
				sum := tp.Number(0)
				for i, g := range tp.Grad(first(tp, xs), xs...) {
					rows, cols := tp.Dims(g)
					sum = tp.Add(sum, tp.Sum(tp.Mul(g, tp.Input(rows, cols, weights(rows*cols, uint64(2+i))))))
				}
				return sum
			}
			for order, f := range []func(*tape.Tape, []va) va{first, second} {
				tp := tape.New()
				xs := inputs(tp)
				var grads [][]float64
				for _, g := range tp.Grad(f(tp, xs), xs...) {
					grads = append(grads, slices.Clone(tp.Value(g)))
				}
				for i := range values {
					for j := range values[i] {
						const h = 1e-5
						at := func(d float64) float64 {
							old := values[i][j]
							values[i][j] += d
							v := tp.Scalar(f(tp, inputs(tp)))
							values[i][j] = old
							return v
						}
						want := (at(h) - at(-h)) / (2 * h)
						if got := grads[i][j]; math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
							t.Errorf("order %d, input %d, element %d: gradient %.9g: finite differences give %.9g", order+1, i, j, got, want)
						}
					}
				}
			}
		})
	}
}

// The norm of a gradient is a function that can be minimised.
func TestGradientPenalty(t *testing.T) {
	x, tp := []float64{1.5}, tape.New()
	for range 200 {
		tp.Reset()
		v := tp.Input(1, 1, x)
		f := tp.Square(tp.Square(v)) // f = x⁴, f' = 4x³
		penalty := tp.Square(tp.Offset(tp.Grad(f, v)[0], -4))
		x[0] -= 1e-3 * tp.Scalar(tp.Grad(penalty, v)[0])
	}
	if math.Abs(x[0]-1) > 1e-6 {
		t.Errorf("x = %g: want 1, where the slope of x⁴ is 4", x[0])
	}
}

func TestThirdOrder(t *testing.T) {
	tp := tape.New()
	x := tp.Number(0.3)
	y := tp.Tanh(x)
	for range 3 {
		y = tp.Grad(y, x)[0]
	}
	c := math.Cosh(0.3)
	want := (4*math.Sinh(0.3)*math.Sinh(0.3) - 2) / (c * c * c * c)
	if got := tp.Scalar(y); math.Abs(got-want) > 1e-12 {
		t.Errorf("third derivative of tanh at 0.3: %g, want %g", got, want)
	}
}

func TestGradOfWhatDoesNotDependIsZero(t *testing.T) {
	tp := tape.New()
	x, other := tp.Number(2), tp.Zeros(2, 3)
	y := tp.Square(x)
	later := tp.Number(1)
	g := tp.Grad(y, other, x, later, y)
	for i, want := range []float64{0, 4, 0, 1} {
		if got := tp.Value(g[i])[0]; got != want {
			t.Errorf("gradient %d is %g: want %g", i, got, want)
		}
	}
	if rows, cols := tp.Dims(g[0]); rows != 2 || cols != 3 {
		t.Errorf("gradient of a 2×3 matrix is %d×%d", rows, cols)
	}
}

func TestProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, d := range [][3]int{{1, 1, 1}, {3, 5, 7}, {64, 64, 64}, {65, 130, 67}, {200, 3, 300}, {1, 71, 64}} {
		m, k, n := d[0], d[1], d[2]
		a, b := make([]float64, m*k), make([]float64, k*n)
		for _, x := range [][]float64{a, b} {
			for i := range x {
				x[i] = rng.NormFloat64()
			}
		}
		at, bt := transposed(a, m, k), transposed(b, k, n)
		tp := tape.New()
		for name, y := range map[string]va{
			"MatMul":  tp.MatMul(tp.Input(m, k, a), tp.Input(k, n, b)),
			"TMatMul": tp.TMatMul(tp.Input(k, m, at), tp.Input(k, n, b)),
			"MatMulT": tp.MatMulT(tp.Input(m, k, a), tp.Input(n, k, bt)),
		} {
			for i := range m {
				for j := range n {
					want := 0.0
					for l := range k {
						want += a[i*k+l] * b[l*n+j]
					}
					if got := tp.Value(y)[i*n+j]; math.Abs(got-want) > 1e-12*float64(k+10) {
						t.Fatalf("%s %v at %d, %d: %g, want %g", name, d, i, j, got, want)
					}
				}
			}
		}
	}
}

func transposed(a []float64, rows, cols int) []float64 {
	b := make([]float64, len(a))
	for i := range rows {
		for j := range cols {
			b[j*rows+i] = a[i*cols+j]
		}
	}
	return b
}

func TestExtremesStayFinite(t *testing.T) {
	tp := tape.New()
	x := tp.Input(2, 2, []float64{1e9, -1e9, -1e9, -1e9})
	for name, y := range map[string]va{
		"Softmax": tp.Softmax(x), "LogSoftmax": tp.LogSoftmax(x), "Softplus": tp.Softplus(x), "Sigmoid": tp.Sigmoid(x), "Tanh": tp.Tanh(x),
	} {
		for _, v := range append(slices.Clone(tp.Value(y)), tp.Value(tp.Grad(y, x)[0])...) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s of ±1e9: %v, gradient %v", name, tp.Value(y), tp.Value(tp.Grad(y, x)[0]))
				break
			}
		}
	}
}

func TestMistakesPanic(t *testing.T) {
	tp := tape.New()
	a, b := tp.Zeros(2, 3), tp.Zeros(2, 4)
	for name, f := range map[string]func(){
		"MatMul": func() { tp.MatMul(a, b) }, "Add": func() { tp.Add(a, b) }, "Pick": func() { tp.Pick(a, []int{0, 3}) },
		"Gather": func() { tp.Gather(a, []int{2}) }, "Where": func() { tp.Where([]bool{true}, a, 0) }, "Scalar": func() { tp.Scalar(a) },
		"Scan": func() { tp.Scan(a, a, 3) }, "Input": func() { tp.Input(2, 2, nil) }, "SumTo": func() { tp.SumTo(a, 2, 2) },
		"Affine": func() { tp.Affine(a, tp.Zeros(3, 2), tp.Zeros(2, 1)) }, "no value": func() { tp.Exp(va{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", name)
				}
			}()
			f()
		}()
	}
}

// program is a step of training, without the optimiser.
func program(tp *tape.Tape, params [][]float64, x []float64, dst []va) []va {
	tp.Reset()
	w1, b1 := tp.Input(16, 64, params[0]), tp.Input(1, 64, params[1])
	w2, b2 := tp.Input(64, 64, params[2]), tp.Input(1, 64, params[3])
	w3, b3 := tp.Input(64, 5, params[4]), tp.Input(1, 5, params[5])
	h := tp.Relu(tp.Affine(tp.Input(len(x)/16, 16, x), w1, b1))
	h = tp.Relu(tp.Affine(h, w2, b2))
	loss := tp.Mean(tp.Square(tp.Affine(h, w3, b3)))
	return tp.AppendGrad(dst[:0], loss, []va{w1, b1, w2, b2, w3, b3})
}

func programInputs(batch int) (params [][]float64, x []float64) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{16 * 64, 64, 64 * 64, 64, 64 * 5, 5, batch * 16} {
		v := make([]float64, n)
		for i := range v {
			v[i] = rng.NormFloat64() / 8
		}
		params = append(params, v)
	}
	return params[:6], params[6]
}

func TestTrainingAllocatesNothing(t *testing.T) {
	params, x := programInputs(64)
	tp, dst := tape.New(), make([]va, 6)
	if n := testing.AllocsPerRun(20, func() { dst = program(tp, params, x, dst) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

func TestEqualProgramsGiveEqualBits(t *testing.T) {
	params, x := programInputs(256)
	var want []float64
	for range 3 {
		tp := tape.New()
		var got []float64
		for _, g := range program(tp, params, x, nil) {
			got = append(got, tp.Value(g)...)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Fatal("gradients differ from run to run")
		}
	}
}

func BenchmarkTrainingStep(b *testing.B) {
	for _, batch := range []int{64, 256} {
		b.Run(fmt.Sprint("b", batch), func(b *testing.B) {
			params, x := programInputs(batch)
			tp, dst := tape.New(), make([]va, 6)
			b.ReportAllocs()
			for b.Loop() {
				dst = program(tp, params, x, dst)
			}
		})
	}
}
