package guard

import (
	"errors"
	"fmt"
	"math"

	"farmhand/policy"
)

// The defaults of Settings, and what is not set.
const (
	DefaultActionsPerHour = 480
	DefaultBurst          = 10

	// Ceiling bounds a farm that has no max.
	Ceiling = 10_000
	// AlarmShare of the budget raises the alarm.
	AlarmShare = 0.8
)

// Settings say how a farm is guarded. Its min, max, deadline and interval are
// those of the observation, which the policies see as well.
type Settings struct {
	Budget         float64 `json:"budget,omitempty"`           // worker-hours a UTC day; 0 = none
	Learned        bool    `json:"learned,omitempty"`          // the wish is a learned policy's
	ActionsPerHour float64 `json:"actions_per_hour,omitempty"` // 0 = DefaultActionsPerHour
	Burst          int     `json:"burst,omitempty"`            // actions at once; 0 = DefaultBurst
}

// Validate reports what the guard could not keep.
func (s Settings) Validate() error {
	var errs []error
	if !(s.Budget >= 0) || math.IsInf(s.Budget, 0) {
		errs = append(errs, fmt.Errorf("guard: budget: %g is not valid: want worker-hours a day, 0 for none", s.Budget))
	}
	if !(s.ActionsPerHour >= 0) || math.IsInf(s.ActionsPerHour, 0) {
		errs = append(errs, fmt.Errorf("guard: actions per hour: %g is not valid: want a number from 0", s.ActionsPerHour))
	}
	if s.Burst < 0 {
		errs = append(errs, fmt.Errorf("guard: burst: %d is not valid: want actions at once, from 1", s.Burst))
	}
	return errors.Join(errs...)
}

// filled has the defaults in the place of what is not set, or not valid.
func (s Settings) filled() Settings {
	if !(s.ActionsPerHour > 0) {
		s.ActionsPerHour = DefaultActionsPerHour
	}
	if s.Burst < 1 {
		s.Burst = DefaultBurst
	}
	return s
}

// The names of the limits, in their order.
const (
	LimitWish    = "wish"
	LimitStale   = "stale"
	LimitRule    = "rule"
	LimitWindow  = "window"
	LimitMax     = "max"
	LimitBudget  = "budget"
	LimitMin     = "min"
	LimitActions = "actions"
)

// Limit is a limit that bound: it changed a count to another.
type Limit struct {
	Name   string `json:"name"`
	From   int    `json:"from"`
	To     int    `json:"to"`
	Reason string `json:"reason"` // for people, with the numbers that mattered
}

// Outcome is what is to be done.
type Outcome struct {
	Replicas int     `json:"replicas"`
	Hold     bool    `json:"hold,omitempty"`         // Replicas is the count there is: nothing to call
	Limits   []Limit `json:"limits,omitempty"`       // that bound, in their order
	Alarm    bool    `json:"budget_alarm,omitempty"` // AlarmShare of the day's budget is used
}

// Bound reports whether the named limit bound.
func (o Outcome) Bound(name string) bool {
	for _, l := range o.Limits {
		if l.Name == name {
			return true
		}
	}
	return false
}

// bind sets the count to n and, where that changes it, notes the limit.
func (o *Outcome) bind(name string, n int, format string, args ...any) {
	if n != o.Replicas {
		o.Limits = append(o.Limits, Limit{Name: name, From: o.Replicas, To: n, Reason: fmt.Sprintf(format, args...)})
		o.Replicas = n
	}
}

// Apply limits a wish for the observed farm, given what the rule that advises a learned
// policy wishes (the wish itself where a law decides). The state returned must be saved before
// the platform is called; an outcome that is no hold has spent its token already.
func (s Settings) Apply(obs *policy.Observation, wish, rule policy.Decision, st State) (Outcome, State) {
	s = s.filled()
	st = st.advance(obs, s.ActionsPerHour)
	count, stale := max(0, obs.Desired), obs.Stale()
	lo, hi := bounds(obs)

	out := Outcome{Replicas: wish.Replicas}
	if wish.Hold {
		out.Replicas = count
	}
	if !sane(out.Replicas) {
		out.bind(LimitWish, count, "%d replicas cannot be meant", out.Replicas)
	}
	asleep := count == 0 && hi > 0 && obs.Waiting.Known() && obs.Waiting > 0 // tasks wait, and there is nobody
	if stale {
		out.bind(LimitStale, count, "%s", staleness(obs))
		if asleep && (s.Budget == 0 || st.Hours() < s.Budget) {
			out.bind(LimitStale, 1, "tasks wait and there is no worker: one, though %s", staleness(obs))
		}
	} else {
		if s.Learned && pressed(obs) {
			out.bind(LimitRule, max(out.Replicas, floor(rule, count)), "%s", pressure(obs))
		}
		if !st.warm(obs) {
			out.bind(LimitWindow, max(out.Replicas, count), "%.0f s of data since the last gap", st.Steady)
		}
		out.bind(LimitMax, min(out.Replicas, hi), "%d is the most", hi)
		if s.Budget > 0 && st.Hours() >= s.Budget {
			hi = lo
			out.bind(LimitBudget, min(out.Replicas, hi), "%.2f of the day's %g worker-hours are used", st.Hours(), s.Budget)
		}
	}
	out.bind(LimitMin, max(out.Replicas, lo), "%d is the least", lo)

	rescue := asleep
	inside := lo <= count && count <= hi
	if inside && !rescue && !st.token(s.Burst) {
		out.bind(LimitActions, count, "the next action is due in %.1f s", st.nextToken(s.ActionsPerHour, s.Burst))
	}
	if out.Hold = out.Replicas == count; !out.Hold {
		st = st.spend(s.Burst)
	}
	out.Alarm = s.Budget > 0 && st.Hours() >= AlarmShare*s.Budget
	return out, st
}

// Pass lets time go on where nothing is decided, or nothing done about it: the state is
// brought to the observation, and no token is spent.
func (s Settings) Pass(obs *policy.Observation, st State) State {
	return st.advance(obs, s.filled().ActionsPerHour)
}

// bounds are the least and the most replicas that the farm may be asked for.
func bounds(obs *policy.Observation) (lo, hi int) {
	if hi = obs.Max; hi <= 0 {
		hi = Ceiling
	}
	return min(max(0, obs.Min), hi), hi
}

// sane reports whether a count can be meant. NaN and the infinities, made an
// integer, are outside on amd64; a law that divides has to look for itself.
func sane(n int) bool { return n >= 0 && n <= math.MaxInt32 }

// floor is the count that a learned policy may not go below under pressure: the
// rule's wish, or the count there is where the rule would keep it.
func floor(rule policy.Decision, count int) int {
	switch {
	case rule.Hold:
		return count
	case sane(rule.Replicas):
		return rule.Replicas
	}
	return 0
}

// pressed reports whether a learned policy may not go below the rule: a task is
// overdue or has waited for over half the deadline, or it is unknown whether.
func pressed(obs *policy.Observation) bool {
	return !obs.Overdue.Known() || obs.Overdue > 0 || !obs.OldestWait.Known() ||
		obs.Deadline > 0 && float64(obs.OldestWait) > obs.Deadline/2
}

func pressure(obs *policy.Observation) string {
	switch {
	case obs.Overdue > 0:
		return fmt.Sprintf("%.0f tasks are overdue", obs.Overdue)
	case obs.Overdue.Known() && obs.OldestWait.Known():
		return fmt.Sprintf("a task has waited %.3g s of its %.3g s", obs.OldestWait, obs.Deadline)
	}
	return "it is unknown what is overdue"
}

func staleness(obs *policy.Observation) string {
	if obs.Age.Known() && obs.Waiting.Known() && obs.Running.Known() {
		return fmt.Sprintf("the newest signal is %.1f s old", obs.Age)
	}
	return "signals are unknown"
}
