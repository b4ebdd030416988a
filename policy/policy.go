package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Decision is what a policy wishes. It is data: nothing happens by itself.
type Decision struct {
	Replicas int    `json:"replicas"`
	Hold     bool   `json:"hold,omitempty"` // no opinion: keep what is
	Reason   string `json:"reason"`         // for people, with the numbers that mattered
}

// Hold is the decision to change nothing, with a reason.
func Hold(o *Observation, reason string) Decision {
	return Decision{Replicas: count(float64(o.Desired)), Hold: true, Reason: reason}
}

// Memory is what a policy remembers from one decision to the next. It is kept
// with the farm's state, survives restarts, and stands in each receipt, so that
// a decision can be replayed from its receipt alone.
type Memory map[string]float64

// Policy decides for one farm. Decide depends on its arguments alone: the same
// observation and memory give the same decision and the same new memory.
type Policy interface {
	// Name is the specification that New makes the policy from.
	Name() string
	// Decide looks at one observation. It may change m, which is never nil.
	Decide(o *Observation, m Memory) Decision
}

// Param is a number that a law can be set by.
type Param struct {
	Name     string
	Doc      string // with its unit
	Default  float64
	Min, Max float64 // inclusive
}

// Law is a kind of policy.
type Law struct {
	Name   string
	Doc    string // one line: what it does and where it comes from
	Params []Param
	make   func(p Params) Policy
}

// Params are the values of a law's parameters.
type Params struct {
	spec string
	law  *Law
	by   map[string]float64
}

// Spec is the shortest specification that gives these parameters.
func (p Params) Spec() string { return p.spec }

// Get returns a parameter of the law. A name the law does not have is a mistake
// in the program.
func (p Params) Get(name string) float64 {
	if v, ok := p.by[name]; ok {
		return v
	}
	for _, q := range p.law.Params {
		if q.Name == name {
			return q.Default
		}
	}
	panic("policy: law " + p.law.Name + " has no parameter " + name)
}

// Laws lists all laws in the order of their names.
func Laws() []Law { return slices.Clone(laws) }

// longest is how many bytes a specification may have: it stands in every receipt.
const longest = 500

// New makes a policy from a specification: the name of a law, and after a colon
// parameters, as in "static:n=4" or "staffing:headroom=1.2,floor=2". The error
// names what is wrong and what would be right.
func New(spec string) (Policy, error) {
	if len(spec) > longest {
		return nil, fmt.Errorf("policy: a specification of %d bytes is not valid: want at most %d", len(spec), longest)
	}
	name, rest, _ := strings.Cut(strings.TrimSpace(spec), ":")
	i := slices.IndexFunc(laws, func(l Law) bool { return l.Name == name })
	if i < 0 {
		var names []string
		for _, l := range laws {
			names = append(names, l.Name)
		}
		return nil, fmt.Errorf("policy: %q is no law: want one of %s", name, strings.Join(names, ", "))
	}
	law := &laws[i]
	p := Params{law: law, by: map[string]float64{}}
	for item := range strings.SplitSeq(rest, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		key, text, ok := strings.Cut(item, "=")
		j := slices.IndexFunc(law.Params, func(q Param) bool { return q.Name == key })
		if !ok || j < 0 {
			return nil, fmt.Errorf("policy: %q is no parameter of %s: want %s", item, name, law.usage())
		}
		q := law.Params[j]
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || v < q.Min || v > q.Max {
			return nil, fmt.Errorf("policy: %s of %s: %q is not valid: want a number from %g to %g", key, name, text, q.Min, q.Max)
		}
		if _, twice := p.by[key]; twice {
			return nil, fmt.Errorf("policy: %s of %s stands twice: want it once", key, name)
		}
		p.by[key] = v
	}
	p.spec = law.spec(p.by)
	return law.make(p), nil
}

// spec writes the parameters that differ from their defaults, in the law's order.
func (l *Law) spec(by map[string]float64) string {
	var items []string
	for _, q := range l.Params {
		if v, ok := by[q.Name]; ok && v != q.Default {
			items = append(items, q.Name+"="+strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	if len(items) == 0 {
		return l.Name
	}
	return l.Name + ":" + strings.Join(items, ",")
}

func (l *Law) usage() string {
	if len(l.Params) == 0 {
		return "none"
	}
	var items []string
	for _, q := range l.Params {
		items = append(items, fmt.Sprintf("%s=%g…%g", q.Name, q.Min, q.Max))
	}
	return strings.Join(items, ", ")
}

// laws in the order of their names; each stands in a file of its own.
var laws = []Law{manual, reactiveAverage, reactiveMaximum, staffing, static, threshold}
