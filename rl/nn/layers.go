package nn

import (
	"fmt"
	"math"
	"math/rand/v2"

	"farmhand/rl/tape"
)

// Linear is x·W + b.
type Linear struct{ W, B int } // numbers of parameters

// NewLinear adds NAME.weight (in×out) and NAME.bias (1×out), which is 0.
func NewLinear(p *Params, rng *rand.Rand, name string, in, out int, init Init) Linear {
	l := Linear{W: p.Add(name+".weight", in, out), B: p.Add(name+".bias", 1, out)}
	init(rng, in, out, p.Values(l.W))
	return l
}

// Apply is the layer's output; p are the bound parameters.
func (l Linear) Apply(t *tape.Tape, p []tape.Var, x tape.Var) tape.Var {
	return t.Affine(x, p[l.W], p[l.B])
}

// LayerNorm is tape.LayerNorm with a gain and a bias of its own.
type LayerNorm struct{ Gain, Bias int } // numbers of parameters

// NewLayerNorm adds NAME.weight, which is 1, and NAME.bias, which is 0.
func NewLayerNorm(p *Params, name string, width int) LayerNorm {
	l := LayerNorm{Gain: p.Add(name+".weight", 1, width), Bias: p.Add(name+".bias", 1, width)}
	gain := p.Values(l.Gain)
	for i := range gain {
		gain[i] = 1
	}
	return l
}

// Apply is the layer's output; p are the bound parameters.
func (l LayerNorm) Apply(t *tape.Tape, p []tape.Var, x tape.Var) tape.Var {
	return t.LayerNorm(x, p[l.Gain], p[l.Bias], 1e-5)
}

// Activation is the nonlinearity of the hidden layers.
type Activation string

// The activations.
const (
	Relu Activation = "relu"
	Tanh Activation = "tanh"
)

// Validate refuses activations that there are not.
func (a Activation) Validate() error {
	if a != Relu && a != Tanh {
		return fmt.Errorf("nn: activation %q: want %s or %s", a, Relu, Tanh)
	}
	return nil
}

// Apply applies it to each number.
func (a Activation) Apply(t *tape.Tape, x tape.Var) tape.Var {
	if a == Tanh {
		return t.Tanh(x)
	}
	return t.Relu(x)
}

// MLP is a multilayer perceptron: linear layers with an activation between them.
type MLP struct {
	Layers     []Linear
	Activation Activation
}

// NewMLP adds the layers NAME.0, NAME.1 … of the given widths, the first of which
// is the input's. Weights are orthogonal, with gain √2 in hidden layers and gain
// in the last (as Engstrom et al., arXiv 2005.12729, and Stable-Baselines3).
func NewMLP(p *Params, rng *rand.Rand, name string, act Activation, gain float64, widths ...int) MLP {
	n := MLP{Activation: act}
	for i := range len(widths) - 1 {
		g := math.Sqrt2
		if i == len(widths)-2 {
			g = gain
		}
		n.Layers = append(n.Layers, NewLinear(p, rng, fmt.Sprint(name, ".", i), widths[i], widths[i+1], Orthogonal(g)))
	}
	return n
}

// Apply is the network's output for each row of x; p are the bound parameters.
func (n MLP) Apply(t *tape.Tape, p []tape.Var, x tape.Var) tape.Var {
	for i, l := range n.Layers {
		if i > 0 {
			x = n.Activation.Apply(t, x)
		}
		x = l.Apply(t, p, x)
	}
	return x
}
