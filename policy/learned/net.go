package learned

import (
	"fmt"
	"math"

	"farmhand/internal/simd"
)

// Activation is what stands between two layers.
type Activation string

// The activations.
const (
	Relu Activation = "relu"
	Tanh Activation = "tanh"
)

// widest is how many units a layer has at most: a forward pass keeps its numbers on
// the stack.
const widest = 512

// Net is a multilayer perceptron over normalised features:
//
//	x' = clip((x − Shift)·Scale, ±Limit);  h = activation(x'·W₁ + b₁) …  y = h·Wₙ + bₙ
type Net struct {
	Shift, Scale []float64
	Limit        float64
	Activation   Activation
	Layers       []Layer
}

// Layer is y = x·Weight + Bias. Weight has In rows of Out numbers; of several blocks it has
// those along the diagonal of such a matrix, one after another, and all else is 0.
type Layer struct {
	In, Out      int
	Weight, Bias []float64
	Blocks       int // 0 and 1: the whole matrix
}

// blocks are how many there are, and what each takes and makes.
func (l *Layer) blocks() (n, in, out int) {
	n = max(1, l.Blocks)
	return n, l.In / n, l.Out / n
}

// shape of Weight: in × out, of several blocks blocks × in × out.
func (l *Layer) shape() []int {
	n, in, out := l.blocks()
	if n == 1 {
		return []int{in, out}
	}
	return []int{n, in, out}
}

// apply adds x·Weight to y.
func (l *Layer) apply(y, x []float64) {
	n, in, out := l.blocks()
	for i := range n {
		simd.AddRow(y[i*out:(i+1)*out], x[i*in:(i+1)*in], l.Weight[i*in*out:(i+1)*in*out])
	}
}

// check says what of a net cannot be.
func (n *Net) check(features, actions int) error {
	if n.Activation != Relu && n.Activation != Tanh {
		return fmt.Errorf("the activation is %q: want %s or %s", n.Activation, Relu, Tanh)
	}
	if !(n.Limit > 0) {
		return fmt.Errorf("the limit of inputs is %g: want a positive number", n.Limit)
	}
	if len(n.Shift) != features || len(n.Scale) != features {
		return fmt.Errorf("%d features are normalised: want %d", min(len(n.Shift), len(n.Scale)), features)
	}
	if len(n.Layers) == 0 {
		return fmt.Errorf("there is no layer: want at least one")
	}
	in := features
	for i, l := range n.Layers {
		blocks, from, to := l.blocks()
		if l.In != in || l.Out < 1 || l.Out > widest || blocks*from != l.In || blocks*to != l.Out || len(l.Weight) != blocks*from*to || len(l.Bias) != l.Out {
			return fmt.Errorf("layer %d takes %d numbers and makes %d: want %d in, and 1 to %d out", i, l.In, l.Out, in, widest)
		}
		in = l.Out
	}
	if in != actions || features > widest {
		return fmt.Errorf("%d features make %d outputs: want at most %d features, and %d outputs", features, in, widest, actions)
	}
	for _, list := range n.numbers() {
		for _, x := range list {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("a weight is %g: want finite numbers", x)
			}
		}
	}
	return nil
}

func (n *Net) numbers() [][]float64 {
	lists := [][]float64{n.Shift, n.Scale}
	for _, l := range n.Layers {
		lists = append(lists, l.Weight, l.Bias)
	}
	return lists
}

// buffer is the memory of a forward pass.
type buffer [widest]float64

// forward computes the outputs; x is changed. It allocates nothing.
func (n *Net) forward(x, spare *buffer) []float64 {
	for i := range n.Shift {
		x[i] = min(max((x[i]-n.Shift[i])*n.Scale[i], -n.Limit), n.Limit)
	}
	for i := range n.Layers {
		l := &n.Layers[i]
		out := spare[:l.Out]
		copy(out, l.Bias)
		l.apply(out, x[:l.In])
		if i < len(n.Layers)-1 {
			n.Activation.apply(out)
		}
		x, spare = spare, x
	}
	return x[:n.Layers[len(n.Layers)-1].Out]
}

func (a Activation) apply(x []float64) {
	for i, v := range x {
		if a == Tanh {
			x[i] = math.Tanh(v)
		} else {
			x[i] = max(v, 0)
		}
	}
}

// best is the index of the largest of the allowed outputs, the last of equals, as the
// learners choose; −1 where an allowed output is not a number.
func best(outputs []float64, mask []bool) int {
	at := -1
	for i, v := range outputs {
		if !mask[i] {
			continue
		}
		if math.IsNaN(v) {
			return -1
		}
		if at < 0 || v >= outputs[at] {
			at = i
		}
	}
	return at
}
