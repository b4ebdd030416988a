package evaluate

import (
	"math"

	"farmhand/policy"
	"farmhand/sim/workload"
)

// Family is a set of contenders that differ in the values of some parameters.
type Family struct {
	Name string
	Free []policy.Tunable
	Make func(values []float64) (Contender, error)
	// Counted: the one parameter is a count of replicas that never change, of which
	// more are never later.
	Counted bool
}

// LawFamily is the family of a specification: what it does not set is free.
func LawFamily(spec string) (Family, error) {
	base, err := Law(spec, Given)
	if err != nil {
		return Family{}, err
	}
	free, err := policy.Tunables(spec)
	if err != nil {
		return Family{}, err
	}
	return Family{Name: base.Spec, Free: free, Counted: base.Spec == "static", Make: func(values []float64) (Contender, error) {
		tuned, err := policy.Tune(spec, values)
		if err != nil {
			return Contender{}, err
		}
		c, err := Law(tuned, Calibrated)
		c.Free = len(free)
		return c, err
	}}, nil
}

// bounded is the family where no count of replicas goes beyond what the farms of
// the scenarios may have.
func (f Family) bounded(scenarios []*workload.Scenario) Family {
	most := 0
	for _, s := range scenarios {
		n := s.Farm.Max
		if s.Platform.Cap > 0 {
			n = min(n, s.Platform.Cap)
		}
		most = max(most, n)
	}
	free := append([]policy.Tunable(nil), f.Free...)
	for i := range free {
		if free[i].Replicas && most > 0 {
			free[i].Max = max(free[i].Min, min(free[i].Max, float64(most)))
		}
	}
	f.Free = free
	return f
}

// values are those of a point of the unit cube.
func (f *Family) values(point []float64) []float64 {
	v := make([]float64, len(point))
	for i, t := range f.Free {
		if t.Log {
			v[i] = t.Fit(t.Min * math.Pow(t.Max/t.Min, point[i]))
		} else {
			v[i] = t.Fit(t.Min + point[i]*(t.Max-t.Min))
		}
	}
	return v
}

// point is where values lie in the unit cube.
func (f *Family) point(values []float64) []float64 {
	p := make([]float64, len(values))
	for i, t := range f.Free {
		v := t.Fit(values[i])
		switch {
		case t.Max <= t.Min:
		case t.Log:
			p[i] = math.Log(v/t.Min) / math.Log(t.Max/t.Min)
		default:
			p[i] = (v - t.Min) / (t.Max - t.Min)
		}
	}
	return p
}

// defaults is the point of the default values, or of those of the range that are
// nearest.
func (f *Family) defaults() []float64 {
	v := make([]float64, len(f.Free))
	for i, t := range f.Free {
		v[i] = t.Default
	}
	return f.point(v)
}

// Default is the member with the default parameters.
func (f *Family) Default() (Contender, error) {
	c, err := f.Make(f.values(f.defaults()))
	c.Free = 0
	return c, err
}
