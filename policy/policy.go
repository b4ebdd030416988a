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
	Min, Max float64  // inclusive
	Integer  bool     // whole numbers only
	Choices  []string // where there are any, values have names: the number is an index
	Search   Range    // where calibration looks; the zero Range: nowhere
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
	return p.fallback(name)
}

// fallback is the default of a parameter.
func (p Params) fallback(name string) float64 {
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
	p, err := parse(spec)
	if err != nil {
		return nil, err
	}
	return p.law.make(p), nil
}

// parse reads a specification.
func parse(spec string) (Params, error) {
	if len(spec) > longest {
		return Params{}, fmt.Errorf("policy: a specification of %d bytes is not valid: want at most %d", len(spec), longest)
	}
	name, rest, _ := strings.Cut(strings.TrimSpace(spec), ":")
	i := slices.IndexFunc(laws, func(l Law) bool { return l.Name == name })
	if i < 0 {
		var names []string
		for _, l := range laws {
			names = append(names, l.Name)
		}
		return Params{}, fmt.Errorf("policy: %q is no law: want one of %s", name, strings.Join(names, ", "))
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
			return Params{}, fmt.Errorf("policy: %q is no parameter of %s: want %s", item, name, law.usage())
		}
		v, ok := law.Params[j].parse(text)
		if !ok {
			return Params{}, fmt.Errorf("policy: %s of %s: %q is not valid: want %s", key, name, text, law.Params[j].valid())
		}
		if _, twice := p.by[key]; twice {
			return Params{}, fmt.Errorf("policy: %s of %s stands twice: want it once", key, name)
		}
		p.by[key] = v
	}
	p.spec = law.spec(p.by)
	return p, nil
}

// parse reads a value; ok is false where it is not valid.
func (q *Param) parse(text string) (v float64, ok bool) {
	if len(q.Choices) > 0 {
		i := slices.Index(q.Choices, text)
		return float64(i), i >= 0
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && v >= q.Min && v <= q.Max && (!q.Integer || v == math.Trunc(v))
}

// valid says what is.
func (q *Param) valid() string {
	switch {
	case len(q.Choices) > 0:
		return "one of " + strings.Join(q.Choices, ", ")
	case q.Integer:
		return "a whole number from " + plain(q.Min) + " to " + plain(q.Max)
	}
	return "a number from " + plain(q.Min) + " to " + plain(q.Max)
}

// plain writes a number without an exponent.
func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// text writes a value so that parse reads it.
func (q *Param) text(v float64) string {
	if len(q.Choices) > 0 {
		return q.Choices[int(v)]
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// spec writes the parameters that differ from their defaults, in the law's order.
func (l *Law) spec(by map[string]float64) string {
	var items []string
	for _, q := range l.Params {
		if v, ok := by[q.Name]; ok && v != q.Default {
			items = append(items, q.Name+"="+q.text(v))
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
		if len(q.Choices) > 0 {
			items = append(items, q.Name+"="+strings.Join(q.Choices, "|"))
			continue
		}
		items = append(items, q.Name+"="+plain(q.Min)+"…"+plain(q.Max))
	}
	return strings.Join(items, ", ")
}

// laws in the order of their names; each stands in a file of its own.
var laws = []Law{
	daskAdaptive, forecast, hpa, keda, kpa, manual, mpc, openfaasCE, openfaasPro, reactiveAverage, reactiveMaximum,
	staffing, static, stepScaling, targetTracking, threshold, timer,
}
