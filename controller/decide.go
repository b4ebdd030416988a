package controller

import (
	"cmp"
	"maps"
	"time"

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
	Policy      string             `json:"policy"`            // specification of the farm's policy
	Fallback    string             `json:"fallback"`          // and of the rule: the law that decides where the policy may not
	Adviser     string             `json:"adviser,omitempty"` // of the learned policy; "" = the rule is
	Learned     *Choice            `json:"learned,omitempty"` // where the policy is a learned one
	Beside      *Choice            `json:"shadow,omitempty"`  // the policy that is asked beside it
	Memory      Memories           `json:"memory"`
	Hand        guard.Hand         `json:"hand,omitzero"`        // who may decide
	Trial       *guard.Trial       `json:"trial,omitempty"`      // that ended since the last decision
	Inference   float64            `json:"inference_s,omitzero"` // what the learned policy took: it is measured in deciding
	Guard       guard.Settings     `json:"guard"`
	State       guard.State        `json:"guard_state"`
	Busy        bool               `json:"calling,omitempty"` // the last scale call has not ended
	Blocked     string             `json:"blocked,omitempty"` // why the ledger hands nothing out
}

// Memories are what the policies remember, each for itself.
type Memories struct {
	Policy  policy.Memory `json:"policy,omitempty"`
	Rule    policy.Memory `json:"rule,omitempty"`
	Adviser policy.Memory `json:"adviser,omitempty"`
	Shadow  policy.Memory `json:"shadow,omitempty"`
}

// Verdict is what was decided.
type Verdict struct {
	Wish    policy.Decision `json:"wish"` // of the farm's policy
	Rule    policy.Decision `json:"rule"` // of the rule: what it would have done
	Outcome guard.Outcome   `json:"outcome"`
	By      string          `json:"by,omitempty"` // the policy whose wish counts; "" = none was asked

	HandedBack *guard.HandBack  `json:"handed_back,omitempty"` // the learned policy, by this decision
	Advice     *policy.Decision `json:"advice,omitempty"`      // of the adviser, where there is one: the least in a crisis
	ShadowWish *policy.Decision `json:"shadow_wish,omitempty"`

	After    Memories    `json:"-"` // what the policies remember now
	Next     guard.State `json:"-"` // what the guard does
	HandNext guard.Hand  `json:"-"`
}

// Decide is pure: the same inputs give the same verdict, bit for bit. The learned
// policies that the inputs name are given beside them. A policy that cannot be made is
// replaced by the rule, and the wish says so.
func Decide(in Inputs, learned ...policy.Learned) Verdict { return in.decide(learned, nil) }

// decide measures, with a watch, how long the learned policy takes, and notes it;
// without one it took what is noted.
func (in *Inputs) decide(learned []policy.Learned, watch stopwatch) Verdict {
	obs := &in.Observation
	v := Verdict{After: Memories{Policy: remember(in.Memory.Policy), Rule: remember(in.Memory.Rule),
		Adviser: maps.Clone(in.Memory.Adviser), Shadow: maps.Clone(in.Memory.Shadow)}, HandNext: in.Hand}
	if why := in.waits(); why != "" {
		v.Wish, v.Rule = policy.Hold(obs, why), policy.Hold(obs, why)
		v.Outcome, _ = in.Guard.Apply(obs, v.Wish, v.Rule, in.State)
		v.Next = in.Guard.Pass(obs, in.State)
		return v
	}
	v.Rule = in.law(in.Fallback, v.After.Rule)
	if in.Adviser != "" {
		v.After.Adviser = remember(v.After.Adviser)
		d := in.law(in.Adviser, v.After.Adviser)
		v.Advice = &d
	}
	v.By = in.Policy
	if in.Learned != nil {
		in.consult(&v, learned, watch)
	} else {
		in.ask(&v)
	}
	if in.Beside != nil {
		in.shadow(&v, learned)
	}
	acted, least, limits := v.Wish, v.Rule, in.Guard
	if in.Mode == Shadow {
		acted, v.By = v.Rule, in.Fallback
	}
	if in.Learned != nil && v.By == in.Learned.Version {
		limits.Learned = true
		if v.Advice != nil {
			least = *v.Advice
		}
	}
	v.Outcome, v.Next = limits.Apply(obs, acted, least, in.State)
	if in.Mode == DryRun {
		v.Next = in.Guard.Pass(obs, in.State)
	}
	return v
}

// waits says why nothing is decided; "" = it is.
func (in *Inputs) waits() string {
	switch {
	case in.Mode == Paused:
		return "paused"
	case in.Busy:
		return "the last scale call has not ended"
	case in.Blocked != "":
		return in.Blocked + ": nothing is handed out, more workers would be idle"
	case in.Learned != nil && in.Learned.Loading:
		return "the farm's champion is being read"
	}
	return ""
}

// law is what a law wishes; one that cannot be made holds.
func (in *Inputs) law(spec string, m policy.Memory) policy.Decision {
	law, err := policy.New(spec)
	if err != nil {
		return policy.Hold(&in.Observation, err.Error())
	}
	return law.Decide(&in.Observation, m)
}

// ask asks the law that the farm's policy is.
func (in *Inputs) ask(v *Verdict) {
	law, err := policy.New(in.Policy)
	switch {
	case in.Policy == in.Fallback:
		v.Wish, v.After.Policy = v.Rule, maps.Clone(v.After.Rule)
	case err != nil:
		v.By, v.Wish = in.Fallback, v.instead(err.Error())
	default:
		v.Wish = law.Decide(&in.Observation, v.After.Policy)
	}
}

// instead is the rule's wish in the place of a policy's.
func (v *Verdict) instead(why string) policy.Decision {
	d := v.Rule
	d.Reason = why + "; the rule decides: " + d.Reason
	return d
}

// consult asks the learned policy, if there is one that may decide.
func (in *Inputs) consult(v *Verdict, list []policy.Learned, watch stopwatch) {
	v.By = in.Fallback
	p := find(list, in.Learned.Version)
	if p == nil {
		v.Wish = v.instead(cmp.Or(in.Learned.Note, in.Learned.Version+" is not at hand"))
		return
	}
	obs, before := &in.Observation, v.After.Policy
	v.Wish, v.HandNext, v.HandedBack = in.Hand.Consult(obs, p, v.Rule, in.Trial, func() (a guard.Answer) {
		if watch == nil {
			a.Seconds = in.Inference
			a.Wish, a.Strange = p.Judge(obs, v.After.Policy)
			return a
		}
		a.Seconds = watch(func() {
			v.After.Policy = maps.Clone(before)
			a.Wish, a.Strange = p.Judge(obs, v.After.Policy)
		})
		in.Inference = a.Seconds
		return a
	})
	if v.HandNext.Back() {
		v.After.Policy = policy.Memory{} // it begins anew when it comes back
	} else {
		v.By = p.Name()
	}
}

// shadow asks the policy beside the farm's own.
func (in *Inputs) shadow(v *Verdict, list []policy.Learned) {
	var p policy.Policy
	if in.Beside.Learned() {
		l := find(list, in.Beside.Version)
		if l == nil {
			return
		}
		p = l
	} else if law, err := policy.New(in.Beside.Spec); err == nil {
		p = law
	} else {
		return
	}
	v.After.Shadow = remember(v.After.Shadow)
	d := p.Decide(&in.Observation, v.After.Shadow)
	v.ShadowWish = &d
}

func find(list []policy.Learned, name string) policy.Learned {
	for _, p := range list {
		if p != nil && name != "" && p.Name() == name {
			return p
		}
	}
	return nil
}

// stopwatch runs what it is given, and returns how many seconds that took.
type stopwatch func(ask func()) float64

// clocked is the stopwatch of live decisions. What took too long is run once more, and
// the shorter time counts: the processor may have been with somebody else.
func clocked(ask func()) float64 {
	once := func() float64 {
		begun := time.Now()
		ask()
		return time.Since(begun).Seconds()
	}
	took := once()
	if took > guard.SlowAfter {
		took = min(took, once())
	}
	return took
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
