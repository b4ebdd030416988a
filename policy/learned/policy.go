package learned

import (
	"slices"

	"farmhand/policy"
)

// Policy runs a policy file. It remembers what its rule remembers, nothing else, and
// is safe for concurrent use.
type Policy struct {
	*File
	rule policy.Policy
	name string
}

// Name is "learned:" and the first digits of the file's SHA-256.
func (p *Policy) Name() string { return p.name }

// Rule is the rule that advises.
func (p *Policy) Rule() policy.Policy { return p.rule }

// Invalid is the count that a policy wishes whose outputs are not numbers. No farm
// can have it: whoever acts on wishes refuses it.
const Invalid = -1

// Decide implements policy.Policy: the allowed action with the largest output.
func (p *Policy) Decide(o *policy.Observation, m policy.Memory) policy.Decision {
	if o.Stale() {
		return policy.Hold(o, "signals are old or unknown")
	}
	advice := Advise(p.rule, o, m)
	var x, spare buffer
	var mask [actions]bool
	advice.Mask(o, mask[:])
	Features(x[:0], o, &advice)
	action := best(p.Net.forward(&x, &spare), mask[:])
	if action < 0 {
		return policy.Decision{Replicas: Invalid, Reason: "learned: an output is not a number"}
	}
	return advice.Decide(o, action)
}

// Outputs are what the network makes of given features, one number for each action.
func (p *Policy) Outputs(features []float64) []float64 {
	var x, spare buffer
	copy(x[:], features)
	return slices.Clone(p.Net.forward(&x, &spare))
}

// Act is the action for given features: those of Features, not normalised yet.
func (p *Policy) Act(features []float64, mask []bool) int {
	var x, spare buffer
	copy(x[:], features)
	return best(p.Net.forward(&x, &spare), mask)
}

// Strange returns the feature that lies farthest outside of what training saw, in
// widths of its range there; 0 where all are inside.
func (p *Policy) Strange(o *policy.Observation, m policy.Memory) (name string, widths float64) {
	advice := Advise(p.rule, o, m)
	var x buffer
	for i, v := range Features(x[:0], o, &advice) {
		lo, hi := p.Low[i], p.High[i]
		if out := max(lo-v, v-hi) / max(hi-lo, 1e-9); out > widths {
			name, widths = p.Features[i], out
		}
	}
	return name, widths
}
