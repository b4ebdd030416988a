package policy

// Learned is a policy that was learned. It knows what it has learned from, and the
// rule that takes its place.
type Learned interface {
	Policy
	// Made is the version of the observations that it has learned from.
	Made() int
	// Rule is the rule that advises it, and decides where it may not.
	Rule() Policy
	// Judge decides as Decide does, and tells how strange the observation is to it.
	Judge(o *Observation, m Memory) (Decision, Strange)
}

// Strange is the feature of an observation that lies farthest outside of what a
// policy has learned from. The zero Strange: none lies outside.
type Strange struct {
	Feature string  `json:"feature"`
	Widths  float64 `json:"widths"` // how far, in widths of its range in training
}
