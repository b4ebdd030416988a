package policy

import "fmt"

// static keeps a fixed number of replicas whatever happens: the baseline that
// every other law has to beat. It looks at nothing, so it holds on nothing: a
// farm whose signals are missing keeps its number too.
var static = Law{
	Name:   "static",
	Doc:    "a fixed number of replicas",
	Params: []Param{{Name: "n", Doc: "replicas; 0 = the farm's minimum", Default: 0, Min: 0, Max: 10_000, Integer: true, Search: Range{1, 256, true, true}}},
	make:   func(p Params) Policy { return fixed{spec: p.Spec(), n: int(p.Get("n"))} },
}

type fixed struct {
	spec string
	n    int
}

func (f fixed) Name() string { return f.spec }

func (f fixed) Decide(o *Observation, _ Memory) Decision {
	n := f.n
	if n == 0 {
		n = count(float64(o.Min))
	}
	d := Decision{Replicas: n}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("fixed at %d", n)
	}
	return d
}
