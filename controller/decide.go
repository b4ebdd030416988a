package controller

import (
	"maps"

	"farmhand/policy"
	"farmhand/policy/guard"
)

// Mode is what a controller does with a farm's decisions.
type Mode string

// The modes.
const (
	Act    Mode = "act"     // the farm's policy scales it
	Shadow Mode = "shadow"  // the rule scales it; the policy's wish is only noted
	DryRun Mode = "dry-run" // all is decided and noted, nothing is done
	Paused Mode = "paused"  // nothing is decided
)

// Inputs are all that a decision depends on.
type Inputs struct {
	Observation policy.Observation `json:"observation"`
	Mode        Mode               `json:"mode"`
	Policy      string             `json:"policy"`   // specification of the farm's policy
	Fallback    string             `json:"fallback"` // and of the rule
	Memory      Memories           `json:"memory"`
	Guard       guard.Settings     `json:"guard"`
	State       guard.State        `json:"guard_state"`
	Busy        bool               `json:"calling,omitempty"` // the last scale call has not ended
	Blocked     string             `json:"blocked,omitempty"` // why the ledger hands nothing out
}

// Memories are what the policy and the rule remember.
type Memories struct {
	Policy policy.Memory `json:"policy,omitempty"`
	Rule   policy.Memory `json:"rule,omitempty"`
}

// Verdict is what was decided.
type Verdict struct {
	Wish    policy.Decision `json:"wish"` // of the farm's policy
	Rule    policy.Decision `json:"rule"` // of the rule: what it would have done
	Outcome guard.Outcome   `json:"outcome"`
	After   Memories        `json:"-"` // what the policies remember now
	Next    guard.State     `json:"-"` // what the guard does
}

// Decide is pure: the same inputs give the same verdict, bit for bit. A policy
// that cannot be made is replaced by the rule, and the wish says so.
func Decide(in Inputs) Verdict {
	obs := &in.Observation
	v := Verdict{After: Memories{Policy: remember(in.Memory.Policy), Rule: remember(in.Memory.Rule)}}
	why := ""
	switch {
	case in.Mode == Paused:
		why = "paused"
	case in.Busy:
		why = "the last scale call has not ended"
	case in.Blocked != "":
		why = in.Blocked + ": nothing is handed out, more workers would be idle"
	}
	if why != "" {
		v.Wish, v.Rule = policy.Hold(obs, why), policy.Hold(obs, why)
		v.Outcome, _ = in.Guard.Apply(obs, v.Wish, v.Rule, in.State)
		v.Next = in.Guard.Pass(obs, in.State)
		return v
	}
	rule, err := policy.New(in.Fallback)
	if err != nil {
		v.Rule = policy.Hold(obs, err.Error())
	} else {
		v.Rule = rule.Decide(obs, v.After.Rule)
	}
	law, err := policy.New(in.Policy)
	switch {
	case in.Policy == in.Fallback:
		v.Wish, v.After.Policy = v.Rule, maps.Clone(v.After.Rule)
	case err != nil:
		v.Wish = v.Rule
		v.Wish.Reason = err.Error() + "; the rule decides: " + v.Rule.Reason
	default:
		v.Wish = law.Decide(obs, v.After.Policy)
	}
	acted := v.Wish
	if in.Mode == Shadow {
		acted = v.Rule
	}
	v.Outcome, v.Next = in.Guard.Apply(obs, acted, v.Rule, in.State)
	if in.Mode == DryRun {
		v.Next = in.Guard.Pass(obs, in.State)
	}
	return v
}

// remember copies a memory, which is never nil for a policy.
func remember(m policy.Memory) policy.Memory {
	if m == nil {
		return policy.Memory{}
	}
	return maps.Clone(m)
}

// Acts reports whether the mode lets a decision scale the farm.
func (m Mode) Acts() bool { return m == Act || m == Shadow }
