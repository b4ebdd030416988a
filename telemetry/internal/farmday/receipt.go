package farmday

import (
	"encoding/json"
	"time"

	"farmhand/policy"
	"farmhand/policy/guard"
)

// receipt has the shape of a controller's receipts: all that a decision depended on.
type receipt struct {
	Farm        string                   `json:"farm"`
	At          time.Time                `json:"at"`
	Seq         int64                    `json:"seq"`
	Controller  string                   `json:"controller"`
	Fence       int64                    `json:"fence"`
	Observation *policy.Observation      `json:"observation"`
	Mode        string                   `json:"mode"`
	Policy      string                   `json:"policy"`
	Rule        string                   `json:"rule"`
	Memory      map[string]policy.Memory `json:"memory"`
	Guard       guard.Settings           `json:"guard"`
	State       guard.State              `json:"guard_state"`
	Wish        policy.Decision          `json:"wish"`
	RuleWish    policy.Decision          `json:"rule_wish"`
	Outcome     guard.Outcome            `json:"outcome"`
	Replicas    int                      `json:"replicas"`
	Before      int                      `json:"before"`
	Laws        []law                    `json:"laws"`
}

type law struct {
	Name string          `json:"name"`
	Wish policy.Decision `json:"wish"`
}

// Receipts writes a receipt for each observation.
type Receipts struct {
	seq      int64
	laws     []policy.Policy
	memories []policy.Memory
	state    guard.State
}

// NewReceipts returns receipts of decisions by all laws.
func NewReceipts() *Receipts {
	r := &Receipts{}
	for _, spec := range []string{"staffing", "reactive-average", "reactive-maximum", "threshold", "static:n=4"} {
		p, err := policy.New(spec)
		if err != nil {
			panic(err)
		}
		r.laws = append(r.laws, p)
		r.memories = append(r.memories, policy.Memory{})
	}
	return r
}

// Next decides on an observation and returns the receipt, in JSON.
func (r *Receipts) Next(o *policy.Observation) []byte {
	r.seq++
	rec := receipt{Farm: o.Farm, At: o.At, Seq: r.seq, Controller: "01JQ4ZK8T3F0V6X1M2N3P4Q5R6", Fence: 41, Observation: o,
		Mode: "act", Policy: r.laws[0].Name(), Rule: r.laws[1].Name(), State: r.state, Before: o.Desired}
	before, err := json.Marshal(map[string]policy.Memory{"policy": r.memories[0], "rule": r.memories[1]})
	if err == nil {
		err = json.Unmarshal(before, &rec.Memory)
	}
	for i, p := range r.laws {
		rec.Laws = append(rec.Laws, law{p.Name(), p.Decide(o, r.memories[i])})
	}
	rec.Wish, rec.RuleWish = rec.Laws[0].Wish, rec.Laws[1].Wish
	rec.Outcome, r.state = rec.Guard.Apply(o, rec.Wish, rec.RuleWish, r.state)
	rec.Replicas = rec.Outcome.Replicas
	raw, err2 := json.Marshal(rec)
	if err != nil || err2 != nil {
		panic("farmday: a receipt is always JSON")
	}
	return raw
}
