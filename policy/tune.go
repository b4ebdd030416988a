package policy

import (
	"fmt"
	"maps"
	"math"
	"strconv"
)

// Range is where calibration looks for a parameter's value: from Min to Max, evenly
// in the logarithm where Log is set (Min is above 0 then). It lies within what the
// parameter may be, and holds what makes sense: a window of an hour is allowed, but
// nobody searches there.
type Range struct {
	Min, Max float64
	Log      bool
	Replicas bool // a count of replicas: nothing changes beyond the farm's max
}

// Tunable is a parameter that is free to be calibrated.
type Tunable struct {
	Name    string
	Default float64 // may lie outside of the range, as "none" does
	Integer bool
	Range
}

// Tunables are the free parameters of a specification, in the order of the law:
// those that calibration may search and the specification does not set. The law's
// name alone leaves all of them free. A law without any has none.
func Tunables(spec string) ([]Tunable, error) {
	p, err := parse(spec)
	if err != nil {
		return nil, err
	}
	return p.free(), nil
}

func (p Params) free() (list []Tunable) {
	for _, q := range p.law.Params {
		if _, set := p.by[q.Name]; !set && q.Search != (Range{}) {
			list = append(list, Tunable{q.Name, q.Default, q.Integer, q.Search})
		}
	}
	return list
}

// Tune is the specification with its free parameters set, one value for each of
// Tunables(spec). A value outside of its range is brought to the nearer end, and
// rounded where the parameter is whole, so that a search need not know about it;
// four digits stay.
func Tune(spec string, values []float64) (string, error) {
	p, err := parse(spec)
	if err != nil {
		return "", err
	}
	free := p.free()
	if len(values) != len(free) {
		return "", fmt.Errorf("policy: %s: %d values for %d free parameters", spec, len(values), len(free))
	}
	by := maps.Clone(p.by)
	for i, t := range free {
		by[t.Name] = t.Fit(values[i])
	}
	return p.law.spec(by), nil
}

// Fit is the value of the range that is nearest to v, with four digits; NaN is its
// least.
func (t Tunable) Fit(v float64) float64 {
	v = clip(v, t.Min, t.Max)
	if t.Integer {
		v = math.Round(v)
	} else if r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64); err == nil {
		v = r
	}
	return clip(v, t.Min, t.Max)
}
