package nn_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"farmhand/rl/nn"
	"farmhand/rl/tape"
)

func source() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func TestOrthogonal(t *testing.T) {
	for _, d := range [][2]int{{4, 4}, {9, 5}, {5, 9}, {1, 3}, {3, 1}, {71, 64}} {
		rows, cols := d[0], d[1]
		w := make([]float64, rows*cols)
		nn.Orthogonal(3)(source(), rows, cols, w)
		at := func(i, j int) float64 { return w[i*cols+j] }
		n, m := rows, cols
		if rows > cols {
			n, m = cols, rows
			at = func(i, j int) float64 { return w[j*cols+i] }
		}
		for i := range n {
			for j := range n {
				dot, want := 0.0, 0.0
				for k := range m {
					dot += at(i, k) * at(j, k)
				}
				if i == j {
					want = 9
				}
				if math.Abs(dot-want) > 1e-12 {
					t.Errorf("%v: vectors %d and %d: product %g, want %g", d, i, j, dot, want)
				}
			}
		}
	}
}

func TestHe(t *testing.T) {
	w, sum := make([]float64, 200*100), 0.0
	nn.He(source(), 200, 100, w)
	for _, x := range w {
		sum += x * x
	}
	if v := sum / float64(len(w)); math.Abs(v-0.01) > 0.0005 {
		t.Errorf("variance %g: want 2/200", v)
	}
}

// Two steps of algorithm 1, by hand.
func TestAdam(t *testing.T) {
	a, w := nn.NewAdam(1, 1e-8), []float64{1}
	m, v, want := 0.0, 0.0, 1.0
	for i, g := range []float64{0.5, -2, 3} {
		a.Step(w, []float64{g}, 0.1)
		m, v = 0.9*m+0.1*g, 0.999*v+0.001*g*g
		n := float64(i + 1)
		want -= 0.1 * (m / (1 - math.Pow(0.9, n))) / (math.Sqrt(v/(1-math.Pow(0.999, n))) + 1e-8)
		if math.Abs(w[0]-want) > 1e-12 {
			t.Fatalf("after %d steps: %.15g, want %.15g", i+1, w[0], want)
		}
	}
}

func TestClipNormAndPolyak(t *testing.T) {
	g := []float64{3, 4}
	if n := nn.ClipNorm(g, 1); n != 5 || math.Abs(g[0]-0.6) > 1e-15 || math.Abs(g[1]-0.8) > 1e-15 {
		t.Errorf("norm %g, clipped to %v", n, g)
	}
	if nn.ClipNorm(g, 0); math.Abs(g[1]-0.8) > 1e-15 {
		t.Errorf("without a limit clipped to %v", g)
	}
	target := []float64{1}
	if nn.Polyak(target, []float64{3}, 0.25); target[0] != 1.5 {
		t.Errorf("average %v: want 1.5", target)
	}
}

func TestParams(t *testing.T) {
	p := &nn.Params{}
	nn.NewMLP(p, source(), "policy", nn.Tanh, 0.01, 3, 5, 2)
	nn.NewLayerNorm(p, "norm", 4)
	var names []string
	for _, s := range p.Shapes() {
		names = append(names, s.Name)
	}
	if got, want := strings.Join(names, " "), "policy.0.weight policy.0.bias policy.1.weight policy.1.bias norm.weight norm.bias"; got != want {
		t.Errorf("names %q: want %q", got, want)
	}
	if want := 3*5 + 5 + 5*2 + 2 + 4 + 4; len(p.Data) != want {
		t.Errorf("%d numbers: want %d", len(p.Data), want)
	}
	q := p.Clone()
	q.Values(0)[0] = math.NaN()
	if err := q.Finite(); err == nil || !strings.Contains(err.Error(), "policy.0.weight") {
		t.Errorf("error %v: want one that names policy.0.weight", err)
	}
	if err := p.Finite(); err != nil {
		t.Errorf("a copy is not a copy: %v", err)
	}
}

// A network with a layer norm learns a curve.
func TestRegression(t *testing.T) {
	rng, p := source(), &nn.Params{}
	first := nn.NewLinear(p, rng, "first", 1, 32, nn.He)
	middle := nn.NewLinear(p, rng, "middle", 32, 32, nn.He)
	norm := nn.NewLayerNorm(p, "norm", 32)
	last := nn.NewLinear(p, rng, "last", 32, 1, nn.He)
	adam, tp := nn.NewAdam(len(p.Data), 1e-8), tape.New()
	x, y, grad := make([]float64, 64), make([]float64, 64), make([]float64, len(p.Data))
	for i := range x {
		x[i] = 4*float64(i)/63 - 2
		y[i] = math.Sin(3 * x[i])
	}
	loss := 0.0
	for range 500 {
		tp.Reset()
		b := p.Bind(tp, nil)
		h := tp.Tanh(first.Apply(tp, b, tp.Input(64, 1, x)))
		h = tp.Relu(norm.Apply(tp, b, middle.Apply(tp, b, h)))
		l := tp.Mean(tp.Square(tp.Sub(last.Apply(tp, b, h), tp.Input(64, 1, y))))
		p.Flatten(tp, tp.Grad(l, b...), grad)
		nn.ClipNorm(grad, 1)
		adam.Step(p.Data, grad, 1e-2)
		loss = tp.Scalar(l)
	}
	if loss > 0.005 {
		t.Errorf("loss %g after 500 steps: want less than 0.005", loss)
	}
}
