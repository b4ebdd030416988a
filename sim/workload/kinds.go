package workload

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// A law or an arrival process stands in a scenario file as a mapping of its kind
// to its parameters: {lognormal: {mean: 0.04, cv: 0.6}}.
type kind[T any] struct {
	name string
	read func(f *fields) T
}

// choose reads what stands at a node as one of the kinds.
func choose[T any](s *source, node ast.Node, what string, kinds []kind[T]) (T, error) {
	var none T
	f := s.fields(node, what)
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	want := "want one of " + strings.Join(names, ", ") + ", as in {" + names[0] + ": {…}}"
	if f.err != nil {
		return none, s.wrong(f.line, "%s: %s: %s", what, show(node), want)
	}
	if len(f.values) != 1 {
		return none, s.wrong(f.line, "%s: %d kinds: %s", what, len(f.values), want)
	}
	for name, v := range f.values {
		for _, k := range kinds {
			if k.name == name {
				g := s.fields(v.node, name)
				x := k.read(g)
				return x, g.done()
			}
		}
		return none, s.wrong(v.line, "%s: no kind %q: %s", what, name, want)
	}
	return none, nil
}

// law asks for a law of durations. A number or a duration is a constant.
func (f *fields) law(name string, otherwise Law) Law {
	v, ok := f.get(name)
	if !ok {
		if otherwise == nil {
			f.fail(f.line, "%s is missing", name)
		}
		return otherwise
	}
	l, err := f.file.law(v, f.what+": "+name)
	f.keep(err)
	return l
}

// maybeLaw asks for a law; a time of 0, or null, is none.
func (f *fields) maybeLaw(name string, otherwise Law, more ...kind[Law]) Law {
	v, ok := f.get(name)
	if !ok {
		return otherwise
	}
	if _, null := v.node.(*ast.NullNode); null {
		return nil
	}
	l, err := f.file.law(v, f.what+": "+name, more...)
	f.keep(err)
	if l == (Constant{}) {
		return nil
	}
	return l
}

// law reads a law, which may be of further kinds.
func (s *source) law(v field, what string, more ...kind[Law]) (Law, error) {
	if x, ok := duration(v.node); ok {
		if err := isNumber(x); err != nil {
			return nil, s.wrong(v.line, "%s: %w", what, err)
		}
		return Constant{x}, nil
	}
	l, err := choose(s, v.node, what, append(laws[:len(laws):len(laws)], more...))
	if _, isText := v.node.(ast.ScalarNode); isText && err != nil {
		return nil, fmt.Errorf("%w; or a time: seconds, or a duration such as 150ms", err)
	}
	return l, err
}

// seen is the law of how ready replicas are seen, which may also be by looks.
func (f *fields) seen(otherwise Law) Law {
	return f.maybeLaw("seen", otherwise, kind[Law]{"looks", func(f *fields) Law { return Looks{f.seconds("every", required, positive)} }})
}

// answer is the law of a result's way, which may also hold the task's place.
func (f *fields) answer(otherwise Law) Law {
	return f.maybeLaw("answer", otherwise, kind[Law]{"held", func(f *fields) Law { return Held{f.seconds("value", required, positive)} }})
}

// laws of durations.
var laws = []kind[Law]{
	{"constant", func(f *fields) Law { return Constant{f.seconds("value", required, atLeast0)} }},
	{"exponential", readExponential},
	{"gamma", readGamma},
	{"lognormal", readLogNormal},
	{"uniform", readUniform},
	{"pareto", readPareto},
	{"quantiles", readQuantiles},
	{"paper-image", func(*fields) Law { return PaperImage{} }},
}

func readExponential(f *fields) Law {
	l := Exponential{Average: f.seconds("mean", required, positive), Shift: f.seconds("shift", 0, atLeast0)}
	if l.Shift > l.Average {
		f.fail(f.line, "shift %g: want at most the mean, %g", l.Shift, l.Average)
	}
	return l
}

func readGamma(f *fields) Law {
	if f.either("mean", "cv", "shape", "scale") {
		return Gamma{Shape: f.number("shape", required, positive), Scale: f.seconds("scale", required, positive)}
	}
	return GammaOf(f.seconds("mean", required, positive), f.number("cv", required, positive))
}

func readLogNormal(f *fields) Law {
	if f.either("mean", "cv", "mu", "sigma") {
		return LogNormal{Mu: f.number("mu", required, anything), Sigma: f.number("sigma", required, atLeast0)}
	}
	return LogNormalOf(f.seconds("mean", required, positive), f.number("cv", required, atLeast0))
}

// either says whether a law is given by the second pair of parameters, not the first.
func (f *fields) either(a1, a2, b1, b2 string) (second bool) {
	a := f.has(a1)
	a = f.has(a2) || a
	b := f.has(b1)
	b = f.has(b2) || b
	if a == b {
		f.fail(f.line, "want %s and %s, or %s and %s", a1, a2, b1, b2)
	}
	return b
}

func readUniform(f *fields) Law {
	l := Uniform{f.seconds("min", required, atLeast0), f.seconds("max", required, positive)}
	if l.Min > l.Max {
		f.fail(f.line, "min %g: want at most max, %g", l.Min, l.Max)
	}
	return l
}

func readPareto(f *fields) Law {
	l := BoundedPareto{f.number("alpha", required, positive), f.seconds("min", required, positive), f.seconds("max", required, positive)}
	if l.Min > l.Max {
		f.fail(f.line, "min %g: want at most max, %g", l.Min, l.Max)
	}
	return l
}

func readQuantiles(f *fields) Law {
	var l *Quantiles
	var err error
	switch {
	case f.has("file"):
		l, err = ReadQuantiles(f.file.path(f.text("file", "")))
	case f.has("name"):
		l, err = f.file.quantiles(f.text("name", ""))
	default:
		l, err = NewQuantiles(f.numbers("at", 2, share), f.numbers("values", 2, atLeast0))
	}
	if f.err != nil {
		return nil
	}
	if err == nil && l.Mean() <= 0 {
		err = fmt.Errorf("all values are 0: want a mean above 0")
	}
	if err != nil {
		f.fail(f.line, "%w", err)
		return nil
	}
	if mean := f.seconds("mean", 0, atLeast0); mean > 0 {
		l = l.scaled(mean / l.Mean())
	}
	return l
}
