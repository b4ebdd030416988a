package policy

// Learned is a policy that was learned. It knows what it has learned from, the rule
// that advises it, and the law that takes its place.
type Learned interface {
	Policy
	// Made is the version of the observations that it has learned from.
	Made() int
	// Rule is the rule that advises it, and the least that it may ask for in a crisis.
	Rule() Policy
	// Fallback decides where it may not, and is what it is compared with. It may be
	// the rule.
	Fallback() Policy
	// Judge decides as Decide does, and tells how strange the observation is to it.
	Judge(o *Observation, m Memory) (Decision, Strange)
}

// Strange is the feature of an observation that lies farthest outside of what a
// policy has learned from. The zero Strange: none lies outside.
type Strange struct {
	Feature string  `json:"feature"`
	Widths  float64 `json:"widths"` // how far, in widths of its range in training
	Value   float64 `json:"value"`  // what it is
	Low     float64 `json:"low"`    // its range in training
	High    float64 `json:"high"`
}
