package rl

import (
	"math/rand/v2"

	"farmhand/env"
	"farmhand/rl/nn"
	"farmhand/rl/tape"
)

// qNet is Q(s,·): a trunk of hidden layers, and linear outputs.
type qNet struct {
	activation nn.Activation
	trunk      []nn.Linear
	advantage  nn.Linear // Q itself, unless dueling
	value      nn.Linear
	dueling    bool
}

func newQNet(p *nn.Params, rng *rand.Rand, cfg *DQNConfig, spec *env.Spec) qNet {
	widths := append(append([]int{spec.Observation.Len()}, cfg.Hidden...), spec.Action.N())
	m := nn.NewMLP(p, rng, "q", cfg.Activation, 1, widths...)
	last := len(m.Layers) - 1
	n := qNet{activation: cfg.Activation, trunk: m.Layers[:last], advantage: m.Layers[last], dueling: cfg.Dueling}
	if n.dueling {
		n.value = nn.NewLinear(p, rng, "value", widths[last], 1, nn.Orthogonal(1))
	}
	return n
}

// apply is Q of each row of x; dueling: Q(s,a) = V(s) + A(s,a) − mean_b A(s,b).
func (n qNet) apply(t *tape.Tape, p []tape.Var, x tape.Var) tape.Var {
	for _, l := range n.trunk {
		x = n.activation.Apply(t, l.Apply(t, p, x))
	}
	a := n.advantage.Apply(t, p, x)
	if !n.dueling {
		return a
	}
	return t.Add(a, t.Sub(n.value.Apply(t, p, x), t.RowMean(a)))
}
