package registry

import "farmhand/policy"

// Outcome of a gate, or of one of its checks.
type Outcome string

// The outcomes. Only Promoted lets a version become champion.
const (
	Promoted     Outcome = "promoted"     // of a check: the limit is kept
	Rejected     Outcome = "rejected"     // the limit is missed
	Inconclusive Outcome = "inconclusive" // the interval holds the limit
)

// Verdict is what a gate found about a version, for a farm.
type Verdict struct {
	Outcome  Outcome  `json:"outcome"`
	Champion string   `json:"champion,omitempty"` // that it was compared with; "" = none
	Rule     string   `json:"rule"`               // specification of the rule that it was compared with
	Checks   []Check  `json:"checks"`
	Notes    []string `json:"notes,omitempty"` // what could not be looked at, and why
}

// Check is one comparison: a mean over n paired runs with its 95 % interval, and the
// limit that the whole interval has to keep.
type Check struct {
	Metric  string       `json:"metric"`
	Work    string       `json:"work"`    // what was served: a scenario, or the farm's last traffic
	Against string       `json:"against"` // policy that served it too
	Value   policy.Maybe `json:"value"`
	Lo      policy.Maybe `json:"lo"`
	Hi      policy.Maybe `json:"hi"`
	Limit   float64      `json:"limit"`
	AtLeast bool         `json:"at_least"` // the limit is the least that is good, not the most
	N       int          `json:"n"`
	Outcome Outcome      `json:"outcome"`
}

// Judge sets the outcome by where the interval lies.
func (c *Check) Judge() {
	limit := policy.Maybe(c.Limit)
	kept, missed := c.Hi <= limit, c.Lo > limit // of what is unknown, neither
	if c.AtLeast {
		kept, missed = c.Lo >= limit, c.Hi < limit
	}
	switch {
	case kept:
		c.Outcome = Promoted
	case missed:
		c.Outcome = Rejected
	default:
		c.Outcome = Inconclusive
	}
}

// Conclude sets the outcome of all checks together: one that is missed rejects, and
// only where all are kept the version is promoted.
func (v *Verdict) Conclude() {
	v.Outcome = Promoted
	if len(v.Checks) == 0 {
		v.Outcome = Inconclusive
	}
	for _, c := range v.Checks {
		switch {
		case c.Outcome == Rejected:
			v.Outcome = Rejected
			return
		case c.Outcome != Promoted:
			v.Outcome = Inconclusive
		}
	}
}
