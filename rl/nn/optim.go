package nn

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Adam is the optimiser of Kingma & Ba (arXiv 1412.6980), algorithm 1.
type Adam struct {
	Beta1, Beta2, Epsilon float64

	M, V []float64 // moving averages of the gradient and of its square
	T    int       // steps done
}

// NewAdam returns one for n parameters with the paper's β₁ = 0.9, β₂ = 0.999.
func NewAdam(n int, epsilon float64) *Adam {
	return &Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: epsilon, M: make([]float64, n), V: make([]float64, n)}
}

// Step moves the parameters w against the gradient g by a learning rate.
func (a *Adam) Step(w, g []float64, rate float64) {
	a.T++
	// α_t of section 2, with ε as in algorithm 1: m̂/(√v̂ + ε) = m·c/(√v + ε/c')
	b1, b2 := a.Beta1, a.Beta2
	root := math.Sqrt(1 - math.Pow(b2, float64(a.T)))
	rate *= root / (1 - math.Pow(b1, float64(a.T)))
	epsilon := a.Epsilon * root
	m, v := a.M[:len(w)], a.V[:len(w)]
	for i, x := range g[:len(w)] {
		m[i] = b1*m[i] + (1-b1)*x
		v[i] = b2*v[i] + (1-b2)*x*x
		w[i] -= rate * m[i] / (math.Sqrt(v[i]) + epsilon)
	}
}

// ClipNorm shortens the gradient g to a Euclidean norm of at most limit (0: none),
// and returns what the norm was.
func ClipNorm(g []float64, limit float64) float64 {
	norm := floats.Norm(g, 2)
	if limit > 0 && norm > limit {
		floats.Scale(limit/norm, g)
	}
	return norm
}

// Polyak moves target towards source: target ← (1−τ)·target + τ·source.
func Polyak(target, source []float64, tau float64) {
	for i, x := range source {
		target[i] += tau * (x - target[i])
	}
}
