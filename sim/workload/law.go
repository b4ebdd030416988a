package workload

import (
	"math"
	"math/rand/v2"
)

// Constant is the same each time.
type Constant struct{ Value float64 }

// Draw returns the value.
func (l Constant) Draw(*rand.Rand) float64 { return l.Value }

// Mean of the law.
func (l Constant) Mean() float64 { return l.Value }

func (l Constant) String() string { return flow("constant", "value", l.Value) }

// Looks says of Platform.Seen how the live controller comes to know what is ready:
// it looks after each scale call, then so often until all is ready, and at each
// decision. All replicas that became ready since are seen at once.
type Looks struct{ Every float64 }

// Draw from the time until the next look.
func (l Looks) Draw(r *rand.Rand) float64 { return l.Every * r.Float64() }

// Mean of the law.
func (l Looks) Mean() float64 { return l.Every / 2 }

func (l Looks) String() string { return flow("looks", "every", l.Every) }

// Held says of Platform.Answer that a result takes so long to be accepted, and
// that its task keeps its place in the window meanwhile, as a live lease does.
type Held struct{ Value float64 }

// Draw returns the value.
func (l Held) Draw(*rand.Rand) float64 { return l.Value }

// Mean of the law.
func (l Held) Mean() float64 { return l.Value }

func (l Held) String() string { return flow("held", "value", l.Value) }

// Exponential has no memory. With a shift it is that much longer: P(X > shift + x)
// = exp(−x/(mean − shift)).
type Exponential struct {
	Average float64 // with the shift
	Shift   float64
}

// Draw from the law.
func (l Exponential) Draw(r *rand.Rand) float64 {
	return l.Shift + (l.Average-l.Shift)*r.ExpFloat64()
}

// Mean of the law.
func (l Exponential) Mean() float64 { return l.Average }

func (l Exponential) String() string {
	if l.Shift == 0 {
		return flow("exponential", "mean", l.Average)
	}
	return flow("exponential", "mean", l.Average, "shift", l.Shift)
}

// Uniform lies between two bounds.
type Uniform struct{ Min, Max float64 }

// Draw from [Min, Max).
func (l Uniform) Draw(r *rand.Rand) float64 { return l.Min + (l.Max-l.Min)*r.Float64() }

// Mean of the law.
func (l Uniform) Mean() float64 { return (l.Min + l.Max) / 2 }

func (l Uniform) String() string { return flow("uniform", "min", l.Min, "max", l.Max) }

// LogNormal is exp(Mu + Sigma Z) with Z standard normal: its median is exp(Mu).
type LogNormal struct{ Mu, Sigma float64 }

// LogNormalOf has a mean and a coefficient of variation cv = sd/mean:
// σ² = ln(1 + cv²), μ = ln(mean) − σ²/2.
func LogNormalOf(mean, cv float64) LogNormal {
	v := math.Log1p(cv * cv)
	return LogNormal{Mu: math.Log(mean) - v/2, Sigma: math.Sqrt(v)}
}

// Draw from the law.
func (l LogNormal) Draw(r *rand.Rand) float64 { return math.Exp(l.Mu + l.Sigma*r.NormFloat64()) }

// Mean of the law.
func (l LogNormal) Mean() float64 { return math.Exp(l.Mu + l.Sigma*l.Sigma/2) }

// String writes mean and cv where the law was made from round ones.
func (l LogNormal) String() string {
	mean, cv := round(l.Mean()), round(math.Sqrt(math.Expm1(l.Sigma*l.Sigma)))
	if LogNormalOf(mean, cv) == l {
		return flow("lognormal", "mean", mean, "cv", cv)
	}
	return flow("lognormal", "mu", l.Mu, "sigma", l.Sigma)
}

// Gamma has the density x^(Shape−1) exp(−x/Scale), normalised.
type Gamma struct{ Shape, Scale float64 }

// GammaOf has a mean and a coefficient of variation: shape 1/cv², scale mean cv².
func GammaOf(mean, cv float64) Gamma { return Gamma{Shape: 1 / (cv * cv), Scale: mean * cv * cv} }

// Draw by the rejection of Marsaglia and Tsang (ACM TOMS 26, 2000); below shape 1
// by their boost with U^(1/shape).
func (l Gamma) Draw(r *rand.Rand) float64 {
	shape, boost := l.Shape, 1.0
	if shape < 1 {
		boost = math.Pow(r.Float64(), 1/shape)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		u := 1 - r.Float64() // its logarithm is finite
		if u < 1-0.0331*x*x*x*x || math.Log(u) < 0.5*x*x+d*(1-v+math.Log(v)) {
			return d * v * boost * l.Scale
		}
	}
}

// Mean of the law.
func (l Gamma) Mean() float64 { return l.Shape * l.Scale }

func (l Gamma) String() string { return flow("gamma", "shape", l.Shape, "scale", l.Scale) }

// BoundedPareto has a tail like x^−Alpha between two bounds above zero.
type BoundedPareto struct{ Alpha, Min, Max float64 }

// Draw by inverse transform.
func (l BoundedPareto) Draw(r *rand.Rand) float64 {
	tail := math.Pow(l.Min/l.Max, l.Alpha)
	return l.Min * math.Pow(1-r.Float64()*(1-tail), -1/l.Alpha)
}

// Mean of the law.
func (l BoundedPareto) Mean() float64 {
	a, ratio := l.Alpha, l.Min/l.Max
	if l.Min == l.Max {
		return l.Min
	}
	norm := 1 - math.Pow(ratio, a)
	if a == 1 {
		return l.Min * math.Log(1/ratio) / norm
	}
	return l.Min * a / (a - 1) * (1 - math.Pow(ratio, a-1)) / norm
}

func (l BoundedPareto) String() string {
	return flow("pareto", "alpha", l.Alpha, "min", l.Min, "max", l.Max)
}
