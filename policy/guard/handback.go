package guard

import (
	"fmt"
	"time"

	"farmhand/policy"
)

// When a learned policy is handed back to its fallback, and for how long. What follows
// calls that law the rule.
const (
	SlowAfter    = 0.005 // seconds that an inference may take
	StrangeAfter = 0.5   // widths of a feature's range in training, outside of it
	StrangeTicks = 3     // decisions in a row

	TrialTasks  = 500              // least tasks of a past that is judged
	TrialPast   = 15 * time.Minute // its length at most
	TrialEvery  = time.Minute      // between trials
	WorseTrials = 2                // in a row
	LateMargin  = 0.01             // share of tasks, below the rule's
	CostMargin  = 0.10             // of the rule's worker-seconds, above them
	NoBetter    = 0.001            // share of tasks that is no better on-time
	FirstPause  = 30 * time.Minute // doubled each time
	LastPause   = 24 * time.Hour   // at most
	handVersion = 1                // of Hand
)

// The causes of a hand-back.
const (
	CauseNaN     = "nan"     // what it wishes is no number
	CauseSlow    = "slow"    // an inference took longer than SlowAfter
	CauseVersion = "version" // it has learned from other observations than there are
	CauseStrange = "strange" // it sees what it never saw
	CauseLate    = "late"    // the rule would have been on time more often
	CauseCostly  = "costly"  // the rule would have cost less, and been on time as often
)

// Causes are all of them.
func Causes() []string {
	return []string{CauseNaN, CauseSlow, CauseVersion, CauseStrange, CauseLate, CauseCostly}
}

// HandBack is the instant at which a learned policy is handed back to its fallback.
type HandBack struct {
	Cause  string  `json:"cause"`
	Reason string  `json:"reason"` // for people, with the numbers that mattered
	Pause  float64 `json:"pause"`  // seconds until the policy may come back
}

// Answer is what a learned policy says to an observation.
type Answer struct {
	Wish    policy.Decision
	Strange policy.Strange
	Seconds float64 // that it took; 0 where nobody looks at a clock
}

// Trial compares what was done on a farm's recent past with what the policy's fallback
// would have come to, in the same model of the farm.
type Trial struct {
	At     time.Time       `json:"at"`     // of the past's last observation
	Policy string          `json:"policy"` // that decided all of it
	Target float64         `json:"target"`
	OnTime policy.Maybe    `json:"on_time"` // as it was measured
	Actual policy.Estimate `json:"actual"`
	Rule   policy.Estimate `json:"rule"`
}

// worse says in what the policy was worse than its fallback; nothing where it was not, or
// where there was too little to judge it by.
func (t *Trial) worse() (cause, reason string) {
	if t.Actual.Tasks < TrialTasks {
		return "", ""
	}
	onTime, rule := float64(t.Actual.OnTime), float64(t.Rule.OnTime) // comparisons with NaN are false
	cost, least := t.Actual.WorkerSeconds, t.Rule.WorkerSeconds
	switch {
	case float64(t.OnTime) < t.Target && onTime < rule-LateMargin:
		return CauseLate, fmt.Sprintf("%.1f %% on time of a target of %.1f %%; in the model %.1f %%, and %.1f %% under the rule",
			100*t.OnTime, 100*t.Target, 100*onTime, 100*rule)
	case cost > (1+CostMargin)*least && !(onTime > rule+NoBetter):
		return CauseCostly, fmt.Sprintf("%.0f worker-seconds are %.0f %% more than under the rule, with %s on time, and %s under the rule",
			cost, 100*(cost/least-1), share(t.Actual.OnTime), share(t.Rule.OnTime))
	}
	return "", ""
}

func share(m policy.Maybe) string {
	if !m.Known() {
		return "nothing known to be"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(m))
}

// Hand is who decides for a farm with a learned policy: the policy, or, for a while,
// its fallback. It is kept with the farm, as State is, survives restarts and stands in
// each receipt. Like a State it holds no moment to wait for: a pause is what is left
// of it. The zero Hand has never seen a policy.
type Hand struct {
	Version int       `json:"version"`
	Policy  string    `json:"policy"` // another one begins anew
	At      time.Time `json:"at"`     // of the last observation
	Cause   string    `json:"cause,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Left    float64   `json:"left,omitempty"`    // seconds until the policy may decide again; 0 = it does
	Pause   float64   `json:"pause,omitempty"`   // seconds of the last hand-back
	Asked   string    `json:"asked,omitempty"`   // what the farm is asked to keep, where that may have been strange
	Strange int       `json:"strange,omitempty"` // strange observations in a row
	Worse   int       `json:"worse,omitempty"`   // lost trials in a row
}

// Back reports whether the fallback decides.
func (h Hand) Back() bool { return h.Left > 0 }

// Consult asks a learned policy what it wishes, unless it is handed back, and hands it
// back where the answer or the trial calls for it; trial is nil where there is none
// that was not looked at before. Then the wish is the fallback's. Ask is called once
// or not at all.
func (h Hand) Consult(obs *policy.Observation, p policy.Learned, fallback policy.Decision, trial *Trial, ask func() Answer) (wish policy.Decision, next Hand, back *HandBack) {
	h = h.advance(obs, p.Name())
	if !h.Back() {
		if p.Made() != obs.Version {
			h, back = h.back(CauseVersion, "it has learned from observations of version %d, these are of version %d", p.Made(), obs.Version)
		} else {
			a := ask()
			wish = a.Wish
			h, back = h.judge(obs, a, trial)
		}
	}
	if h.Back() {
		wish = fallback
		if !obs.Quiet {
			wish.Reason = fmt.Sprintf("%s is handed back for %s, %s: %s; the rule decides: %s", p.Name(), time.Duration(h.Left*1e9).Round(time.Second), h.Cause, h.Reason, fallback.Reason)
		}
	}
	return wish, h, back
}

// advance brings the state to the observation: time passes, and a policy that was
// promoted begins anew, as does one to which the farm was strange that is asked for
// something else now.
func (h Hand) advance(obs *policy.Observation, name string) Hand {
	at := obs.At.UTC() // the wall clock alone, as after JSON
	if h.Version != handVersion || h.Policy != name || h.Cause == CauseStrange && h.Asked != asked(obs) {
		return Hand{Version: handVersion, Policy: name, At: at}
	}
	elapsed := at.Sub(h.At).Seconds()
	h.At = at
	if h.Left > 0 && elapsed > 0 {
		if h.Left -= elapsed; h.Left <= 0 {
			h.Left, h.Cause, h.Reason, h.Asked, h.Strange, h.Worse = 0, "", "", "", 0, 0
		}
	}
	return h
}

// judge looks at an answer, and at a trial.
func (h Hand) judge(obs *policy.Observation, a Answer, trial *Trial) (Hand, *HandBack) {
	switch {
	case !a.Wish.Hold && !sane(a.Wish.Replicas):
		return h.back(CauseNaN, "it wishes %d replicas: what it computes is no number", a.Wish.Replicas)
	case a.Seconds > SlowAfter:
		return h.back(CauseSlow, "it took %.1f ms to decide, more than %g", 1000*a.Seconds, 1000*SlowAfter)
	}
	switch {
	case obs.Stale() || obs.Ready == 0:
		// Stale signals say nothing, and a farm that wakes from zero is not known yet.
	case a.Strange.Widths > StrangeAfter:
		h.Strange++
	default:
		h.Strange = 0
	}
	if h.Strange >= StrangeTicks {
		return h.strange(obs, &a.Strange)
	}
	if trial == nil || trial.Policy != h.Policy {
		return h, nil
	}
	cause, reason := trial.worse()
	if cause == "" {
		h.Worse = 0
		return h, nil
	}
	if h.Worse++; h.Worse >= WorseTrials {
		return h.back(cause, "%s, %d times running", reason, h.Worse)
	}
	return h, nil
}

// strange hands back for what training never saw, until the farm is asked for something else.
func (h Hand) strange(obs *policy.Observation, s *policy.Strange) (Hand, *HandBack) {
	h.Asked = asked(obs)
	return h.back(CauseStrange, "%s is %.3g for %d decisions, and was %.3g to %.3g in training", s.Feature, s.Value, h.Strange, s.Low, s.High)
}

// asked is what a farm is asked to keep, as text.
func asked(o *policy.Observation) string {
	return fmt.Sprintf("interval %g, deadline %g, target %g, slots %d, min %d, max %d", o.Interval, o.Deadline, o.Target, o.Slots, o.Min, o.Max)
}

// back hands back, for twice as long as the last time.
func (h Hand) back(cause, format string, args ...any) (Hand, *HandBack) {
	h.Pause = min(max(FirstPause.Seconds(), 2*h.Pause), LastPause.Seconds())
	h.Cause, h.Reason, h.Left = cause, fmt.Sprintf(format, args...), h.Pause
	return h, &HandBack{Cause: h.Cause, Reason: h.Reason, Pause: h.Pause}
}
