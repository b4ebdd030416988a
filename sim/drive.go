package sim

import (
	"context"
	"errors"

	"farmhand/policy"
	"farmhand/policy/guard"
)

// Driver decides for a simulated farm as the controller does for a live one: the
// policy wishes, the guard limits. Where there is a guard, a policy.Learned is limited
// as learned, whatever Guard.Learned says, and is handed back to its fallback as there:
// for what is no number, for observations of another version and for strange ones. How
// long an inference takes is not looked at, since a run must not depend on the machine,
// and there are no trials: a run would play its own past again in the simulator that it
// is played in.
type Driver struct {
	Policy policy.Policy
	Rule   policy.Policy   // least in a crisis; nil: the policy itself, or the rule that advises it
	Guard  *guard.Settings // nil: no guard but the bounds of the farm
	Step   func(*Step)     // nil; called after each decision, with memory that is used again
}

// Step is one decision of a run.
type Step struct {
	At          float64
	Observation *policy.Observation
	Wish, Rule  policy.Decision // of the policy, and of what decides where it may not
	Outcome     guard.Outcome
	HandedBack  *guard.HandBack // in this step; nil = it was not
}

// Run plays a scenario from the beginning to the horizon.
func Run(ctx context.Context, cfg Config, d Driver) (Result, error) {
	s, err := New(cfg)
	if err != nil {
		return Result{}, err
	}
	return s.Play(ctx, d)
}

// Play runs a Sim from where it is to the horizon. Where the context ends before,
// the result is that of the run so far.
func (s *Sim) Play(ctx context.Context, d Driver) (Result, error) {
	if d.Policy == nil {
		return Result{}, errors.New("sim: Driver.Policy: nil is not valid: want a policy")
	}
	p := NewPilot(d)
	var o policy.Observation
	for more := true; more; more = s.Advance() {
		if err := ctx.Err(); err != nil {
			return s.Result(), err
		}
		s.Observe(&o)
		o.Quiet = d.Step == nil // nobody reads the reasons
		step := p.Decide(&o, s.Calling())
		step.At = s.now
		if step.HandedBack != nil {
			s.count.handBacks++
		}
		n := s.wanted()
		if !step.Outcome.Hold {
			n = step.Outcome.Replicas
		}
		s.Scale(n)
		if d.Step != nil {
			d.Step(step)
		}
	}
	return s.Result(), nil
}

// Pilot makes the decisions of a Driver, and remembers for it.
type Pilot struct {
	d       Driver
	state   guard.State
	learned policy.Learned // nil where the policy is none, or nothing guards it
	adviser policy.Policy  // of the learned policy; nil where it is its fallback, too
	hand    guard.Hand
	step    Step

	wish, rule, advice policy.Memory
}

// NewPilot returns a Pilot that has decided nothing yet.
func NewPilot(d Driver) *Pilot {
	p := &Pilot{d: d, wish: policy.Memory{}, rule: policy.Memory{}, advice: policy.Memory{}}
	if l, ok := d.Policy.(policy.Learned); ok && d.Guard != nil {
		limits := *d.Guard
		limits.Learned = true // handed back, its wish is the rule's, and the limit cannot bind
		p.d.Guard = &limits
		p.learned, p.adviser, p.d.Rule = l, d.Rule, l.Fallback()
		if p.adviser == nil {
			p.adviser = l.Rule()
		}
		if p.adviser.Name() == p.d.Rule.Name() {
			p.adviser = nil
		}
	}
	return p
}

// Decide decides once, as the controller's Decide. While a scale call is under way
// nothing is decided, and time goes on. The Step is used again.
func (p *Pilot) Decide(o *policy.Observation, calling bool) *Step {
	p.step = Step{Observation: o}
	st := &p.step
	if calling {
		st.Wish = policy.Hold(o, "the last scale call has not ended")
		st.Rule = st.Wish
		st.Outcome = guard.Outcome{Replicas: o.Desired, Hold: true}
		if p.d.Guard != nil {
			p.state = p.d.Guard.Pass(o, p.state)
		}
		return st
	}
	if p.d.Rule != nil {
		st.Rule = p.d.Rule.Decide(o, p.rule)
	}
	if p.learned != nil {
		p.consult(o)
	} else {
		st.Wish = p.d.Policy.Decide(o, p.wish)
	}
	if p.d.Rule == nil {
		st.Rule = st.Wish
	}
	if p.d.Guard == nil {
		st.Outcome = bounded(o, st.Wish)
		return st
	}
	least := st.Rule
	if p.adviser != nil {
		if advice := p.adviser.Decide(o, p.advice); !p.hand.Back() {
			least = advice
		}
	}
	st.Outcome, p.state = p.d.Guard.Apply(o, st.Wish, least, p.state)
	return st
}

// consult asks the learned policy. What it remembers ends with a hand-back.
func (p *Pilot) consult(o *policy.Observation) {
	st := &p.step
	st.Wish, p.hand, st.HandedBack = p.hand.Consult(o, p.learned, st.Rule, nil, func() (a guard.Answer) {
		a.Wish, a.Strange = p.learned.Judge(o, p.wish)
		return a
	})
	if st.HandedBack != nil {
		clear(p.wish)
	}
}

// bounded is a wish between min and max.
func bounded(o *policy.Observation, wish policy.Decision) guard.Outcome {
	n := wish.Replicas
	if wish.Hold {
		n = o.Desired
	}
	most := o.Max
	if most <= 0 {
		most = guard.Ceiling
	}
	n = max(min(n, most), min(o.Min, most))
	return guard.Outcome{Replicas: n, Hold: n == o.Desired}
}
