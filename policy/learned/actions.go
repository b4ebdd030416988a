// Package learned runs policies that were learned: a network looks at the
// observation and chooses one of a few actions, most of them steps from the count
// there is, some of them what a rule would do. The rule and its parameters are part
// of the policy.
//
// The learning environment has its features and actions from here, so that a
// policy meets in a farm what it met in training.
package learned

import (
	"fmt"
	"math"
	"slices"

	"farmhand/policy"
)

// The actions, in the order of the replicas that they tend to add: a network that
// has learned nothing yet has ties, which the last of them wins.
const (
	halve = iota
	down2
	down1
	hold
	up1
	up2
	double
	toRule
	toBefore
	toPeak
	actions
)

var actionNames = [actions]string{"-50%", "-2", "-1", "hold", "+1", "+2", "+50%", "rule", "rule-before", "rule-peak"}

// Actions are the names of the actions: hold, a few more or fewer, half as many more,
// half as many; and what the rule wishes now (rule), would have for the load of the
// level before this one (rule-before), and for the highest of 15 minutes (rule-peak).
func Actions() []string { return slices.Clone(actionNames[:]) }

// Hold is the action that changes nothing; it is always allowed.
const Hold = hold

// Rule is the action that does what the rule wishes.
const Rule = toRule

// Denied are the actions that a policy may not take which may only take some; the
// error says which of them is no action, or that it could not hold. None: it may take all.
func Denied(only []string) (denied []int, err error) {
	if len(only) > 0 && !slices.Contains(only, actionNames[hold]) {
		return nil, fmt.Errorf("learned: the policy may only take %v: want %q among them", only, actionNames[hold])
	}
	for _, name := range only {
		if !slices.Contains(actionNames[:], name) {
			return nil, fmt.Errorf("learned: %q is no action: want some of %v", name, Actions())
		}
	}
	for i, name := range actionNames {
		if len(only) > 0 && !slices.Contains(only, name) {
			denied = append(denied, i)
		}
	}
	return denied, nil
}

// Advice is what a rule has to say about an observation.
type Advice struct {
	Wish   policy.Decision // for now
	counts [actions]int    // of the rule's actions
	known  [actions]bool
}

// Advise asks the rule. It changes the rule's memory m.
func Advise(rule policy.Policy, o *policy.Observation, m policy.Memory) Advice {
	var a Advice
	if s, ok := rule.(policy.Sizer); ok {
		wish, sizing := s.DecideAndSize(o, m)
		a.Wish = wish
		if len(o.Past) > 0 {
			a.counts[toBefore], a.known[toBefore] = sizing.Size(o.Past[0].Load)
		}
		if o.PeakLoad.Known() {
			a.counts[toPeak], a.known[toPeak] = sizing.Size(float64(o.PeakLoad))
		}
	} else {
		a.Wish = rule.Decide(o, m)
	}
	a.counts[toRule], a.known[toRule] = a.Wish.Replicas, !a.Wish.Hold
	return a
}

// Replicas is the count that an action asks for, within the farm's bounds.
func (a *Advice) Replicas(o *policy.Observation, action int) int {
	n := o.Desired
	switch action {
	case halve:
		n -= int(math.Ceil(float64(n) / 2))
	case down2:
		n -= 2
	case down1:
		n--
	case up1:
		n++
	case up2:
		n += 2
	case double:
		n += int(math.Ceil(float64(n) / 2))
	case toRule, toBefore, toPeak:
		if a.known[action] {
			n = a.counts[action]
		}
	}
	return bounded(o, n)
}

func bounded(o *policy.Observation, n int) int {
	if o.Max > 0 {
		n = min(n, o.Max)
	}
	return max(n, o.Min, 0)
}

// Mask tells which actions do something and are not denied. Two actions that ask for the
// same are both allowed, so that the same reason may lead to the same action.
func (a *Advice) Mask(o *policy.Observation, denied []int, mask []bool) {
	for i := range mask {
		mask[i] = i == hold || a.Replicas(o, i) != o.Desired || i == toRule && a.known[toRule]
	}
	for _, i := range denied {
		mask[i] = false
	}
}

// adviceNames are the features made of an advice: how the counts of the rule compare
// with the count there is, in log(1 + n).
var adviceNames = []string{"rule", "rule_before", "rule_peak"}

const reach = 5 // a factor of 150

// Features appends what the network sees of an observation: its vector, and the
// rule's advice.
func Features(dst []float64, o *policy.Observation, a *Advice) []float64 {
	dst = o.AppendVector(dst)
	for i := toRule; i < actions; i++ {
		x := 0.0
		if a.known[i] {
			x = math.Log1p(float64(max(0, a.counts[i]))) - math.Log1p(float64(max(0, o.Desired)))
		}
		dst = append(dst, min(max(x, -reach), reach))
	}
	return dst
}

// FeatureNames are the names of the features in their order, and their bounds.
func FeatureNames() (names []string, lo, hi []float64) {
	names = append(policy.VectorNames(), adviceNames...)
	lo, hi = policy.VectorBounds()
	for range adviceNames {
		lo, hi = append(lo, -reach), append(hi, reach)
	}
	return names, lo, hi
}

// Decide is what an action comes to.
func (a *Advice) Decide(o *policy.Observation, action int) policy.Decision {
	if action == hold {
		return policy.Hold(o, "learned: hold")
	}
	d := policy.Decision{Replicas: a.Replicas(o, action)}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("learned: %s, %d to %d", actionNames[action], o.Desired, d.Replicas)
	}
	return d
}
