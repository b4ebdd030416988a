package learned

import (
	"slices"

	"farmhand/policy"
)

// Policy runs a policy file. It remembers what its rule remembers, nothing else, and
// is safe for concurrent use.
type Policy struct {
	*File
	rule     policy.Policy
	fallback policy.Policy
	name     string
	denied   []int     // actions
	widths   []float64 // of the features' ranges in training, at least leastWidth of their bounds
}

var _ policy.Learned = (*Policy)(nil)

// leastWidth of a feature's range, as a share of its bounds: learners take deviations
// to be at least a hundredth of the bounds, and a range is six deviations wide.
const leastWidth = 0.06

// newPolicy makes a policy of a file that has been checked.
func newPolicy(f *File, rule, fallback policy.Policy, name string) *Policy {
	denied, _ := Denied(f.Only) // no error: it has been checked
	p := &Policy{File: f, rule: rule, fallback: fallback, name: name, denied: denied, widths: make([]float64, len(f.Low))}
	_, lo, hi := FeatureNames()
	for i := range p.widths {
		p.widths[i] = max(f.High[i]-f.Low[i], leastWidth*(hi[i]-lo[i]))
	}
	return p
}

// Name is "learned:" and the first digits of the file's SHA-256.
func (p *Policy) Name() string { return p.name }

// Made implements policy.Learned.
func (p *Policy) Made() int { return p.Observation }

// Rule is the rule that advises.
func (p *Policy) Rule() policy.Policy { return p.rule }

// Fallback is the law that decides where the policy may not.
func (p *Policy) Fallback() policy.Policy { return p.fallback }

// Invalid is the count that a policy wishes whose outputs are not numbers. No farm
// can have it: whoever acts on wishes refuses it.
const Invalid = -1

// Decide implements policy.Policy: the allowed action with the largest output.
func (p *Policy) Decide(o *policy.Observation, m policy.Memory) policy.Decision {
	d, _ := p.Judge(o, m)
	return d
}

// Judge implements policy.Learned. To signals that are stale it has nothing to say.
func (p *Policy) Judge(o *policy.Observation, m policy.Memory) (policy.Decision, policy.Strange) {
	if o.Stale() {
		return policy.Hold(o, "signals are old or unknown"), policy.Strange{}
	}
	advice := Advise(p.rule, o, m)
	var x, spare buffer
	var mask [actions]bool
	advice.Mask(o, p.denied, mask[:])
	strange := p.strange(Features(x[:0], o, &advice))
	action := best(p.Net.forward(&x, &spare), mask[:])
	if action < 0 {
		return policy.Decision{Replicas: Invalid, Reason: "learned: an output is not a number"}, strange
	}
	return advice.Decide(o, action), strange
}

// strange finds the feature that lies farthest outside of what training saw.
func (p *Policy) strange(features []float64) (s policy.Strange) {
	for i, v := range features {
		if v >= p.Low[i] && v <= p.High[i] {
			continue
		}
		if out := max(p.Low[i]-v, v-p.High[i]) / p.widths[i]; out > s.Widths {
			s = policy.Strange{Feature: p.Features[i], Widths: out, Value: v, Low: p.Low[i], High: p.High[i]}
		}
	}
	return s
}

// Outputs are what the network makes of given features, one number for each action.
func (p *Policy) Outputs(features []float64) []float64 {
	var x, spare buffer
	copy(x[:], features)
	return slices.Clone(p.Net.forward(&x, &spare))
}

// Act is the action for given features: those of Features, not normalised yet. It is one
// of Only, whatever else the mask allows.
func (p *Policy) Act(features []float64, mask []bool) int {
	var x, spare buffer
	var may [actions]bool
	copy(x[:], features)
	copy(may[:], mask)
	for _, i := range p.denied {
		may[i] = false
	}
	return best(p.Net.forward(&x, &spare), may[:])
}
