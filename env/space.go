package env

import (
	"fmt"
	"math"
)

// Box is the space of vectors with bounds.
type Box struct {
	Names     []string  // of the numbers, in their order
	Low, High []float64 // inclusive; may be infinite
}

// Len returns how many numbers an observation has.
func (b *Box) Len() int { return len(b.Low) }

// Contains reports whether x has the right length and each number is within its
// bounds. NaN never is.
func (b *Box) Contains(x []float64) bool { return b.Check(x) == nil }

// Check returns nil for what the box contains; the error names the first number
// that is outside.
func (b *Box) Check(x []float64) error {
	if len(x) != b.Len() {
		return fmt.Errorf("env: an observation of %d numbers: want %d", len(x), b.Len())
	}
	for i, v := range x {
		if !(b.Low[i] <= v && v <= b.High[i]) {
			return fmt.Errorf("env: observation %s is %g: want %g to %g", b.name(i), v, b.Low[i], b.High[i])
		}
	}
	return nil
}

// Bounded reports whether every bound is finite.
func (b *Box) Bounded() bool {
	for i := range b.Low {
		if math.IsInf(b.Low[i], 0) || math.IsInf(b.High[i], 0) {
			return false
		}
	}
	return true
}

func (b *Box) name(i int) string {
	if i < len(b.Names) {
		return b.Names[i]
	}
	return fmt.Sprint(i)
}

func (b *Box) validate() error {
	n := b.Len()
	if n == 0 || len(b.High) != n || len(b.Names) != n {
		return fmt.Errorf("env: a box of %d names, %d lows and %d highs: want as many of each, and at least one",
			len(b.Names), n, len(b.High))
	}
	for i := range n {
		if !(b.Low[i] <= b.High[i]) {
			return fmt.Errorf("env: observation %s has the bounds %g and %g: want low ≤ high", b.name(i), b.Low[i], b.High[i])
		}
	}
	return nil
}

// Discrete is the space of the actions 0 … N−1.
type Discrete struct {
	Names []string // of the actions, in their order
}

// N returns how many actions there are.
func (d *Discrete) N() int { return len(d.Names) }

// Contains reports whether a is an action.
func (d *Discrete) Contains(a int) bool { return 0 <= a && a < d.N() }

// Options are what an episode is asked to be like, by name. What is left out has
// its default.
type Options map[string]float64

// Option is one thing that Reset can be asked for.
type Option struct {
	Name     string
	Doc      string // with its unit
	Default  float64
	Min, Max float64 // inclusive
}

// CheckOptions returns an error that names the option an environment does not
// have, or the value that it does not take.
func (s *Spec) CheckOptions(options Options) error {
next:
	for name, v := range options {
		for _, o := range s.Options {
			if o.Name != name {
				continue
			}
			if !(o.Min <= v && v <= o.Max) {
				return fmt.Errorf("env: option %s of %s is %g: want %g to %g", name, s.ID, v, o.Min, o.Max)
			}
			continue next
		}
		return fmt.Errorf("env: %s has no option %s", s.ID, name)
	}
	return nil
}

// Option returns an option's value, or its default.
func (s *Spec) Option(options Options, name string) float64 {
	if v, ok := options[name]; ok {
		return v
	}
	for _, o := range s.Options {
		if o.Name == name {
			return o.Default
		}
	}
	panic("env: " + s.ID + " has no option " + name)
}

// Validate checks the description itself.
func (s *Spec) Validate() error {
	if s.ID == "" {
		return fmt.Errorf("env: an environment has no id: want one such as Farm-v0")
	}
	if s.Action.N() == 0 {
		return fmt.Errorf("env: %s has no actions", s.ID)
	}
	if err := s.Observation.validate(); err != nil {
		return fmt.Errorf("%w (%s)", err, s.ID)
	}
	for _, o := range s.Options {
		if !(o.Min <= o.Default && o.Default <= o.Max) {
			return fmt.Errorf("env: option %s of %s has the default %g: want it within %g to %g", o.Name, s.ID, o.Default, o.Min, o.Max)
		}
	}
	return nil
}
