// Package metrics tells Prometheus what a controller sees and does.
//
//	farmhand_tasks{farm,state}                    tasks of the jobs that are kept, by skeleton.State
//	farmhand_oldest_wait_seconds{farm}            of the waiting tasks
//	farmhand_overdue_tasks{farm}                  waiting or running past their due
//	farmhand_decided_tasks_total{farm}            tasks with a due that ended, on time or late
//	farmhand_late_tasks_total{farm}               of them
//	farmhand_lapsed_leases_total{farm}            leases that nobody renewed: a dispatcher was lost
//	farmhand_refused_results_total{farm}          results of an old fence: counted and dropped
//	farmhand_replicas{farm,state}                 desired, ready, and starting: what is missing between them
//	farmhand_signal_age_seconds{farm}             since a dispatcher was heard of; +Inf: never
//	farmhand_conditions{farm,state}               1 where the condition holds, else 0
//	farmhand_budget_used_ratio{farm}              of the day's worker-hours, where there is a budget
//	farmhand_decisions_total{farm,policy}         by the name of the policy that counted, without parameters
//	farmhand_limited_decisions_total{farm,reason} that a limit changed, by the limit's name
//	farmhand_actions_total{farm,outcome,reason}   changes of the count, up or down; the reason is the last
//	                                              limit that changed the wish, or policy
//	farmhand_scale_calls_total{farm,outcome}      kept, clamped (the platform gave another count) or failed
//	farmhand_foreign_changes_total{farm}          of the count, by somebody else
//	farmhand_hand_backs_total{farm,reason}        of a learned policy to its rule, by guard.Causes
//	farmhand_inference_seconds{farm}              that the learned policy took for its last decision
//	farmhand_estimated_on_time_ratio{farm,policy} of the last review: actual, rule, shadow, in one model
//	farmhand_estimated_workers{farm,policy}       likewise, the mean count
//	farmhand_pulse_age_seconds                    since the controller last looked at all that was due
//
// Of several controllers each tells of the farms it decides for, so nothing is told
// twice. What is not known is left out, never 0. A farm begins at 0 and is left out
// when it was not looked at for a while: it is gone, another controller has it, or
// nothing can be read. It has 68 series at most, and one for each policy tried.
package metrics

import (
	"math"
	"strings"
	"sync"
	"time"

	"farmhand/controller"
	"farmhand/policy/guard"
)

// patience is how long a farm may go without a look, but at least three of its
// intervals.
const patience = 15 * time.Second

// byPolicy is the reason of an action that no limit changed.
const byPolicy = "policy"

// byCapacity is the limit that all farms share.
const byCapacity = "capacity"

// limits are the reasons a decision can be changed for.
var limits = []string{guard.LimitWish, guard.LimitStale, guard.LimitRule, guard.LimitWindow, guard.LimitMax, guard.LimitBudget,
	guard.LimitMin, guard.LimitActions, byCapacity}

// Outcomes of scale calls, and of actions.
const (
	kept    = "kept"
	clamped = "clamped"
	failed  = "failed"
	up      = "up"
	down    = "down"
)

// Controller counts what a controller does. It is a prometheus.Collector; its
// Looked belongs into the controller's Config.
type Controller struct {
	status func() controller.Status
	now    func() time.Time

	mu    sync.Mutex
	farms map[string]*farm // guarded by mu
}

// action is a change of the count.
type action struct{ outcome, reason string }

// farm is what is known of one farm.
type farm struct {
	look controller.Look // the last one
	at   time.Time

	used      float64 // of the budget; NaN = there is none
	why       string  // of the last decision that wanted another count
	decisions map[string]int
	limited   map[string]int
	actions   map[action]int
	calls     map[string]int
	foreign   int
	handBacks map[string]int
	inference float64 // NaN = no learned policy was asked
}

// New makes the metrics of a controller whose status is told by that function.
// The clock is for the age of looks.
func New(status func() controller.Status, now func() time.Time) *Controller {
	return &Controller{status: status, now: now, farms: map[string]*farm{}}
}

func newFarm() *farm {
	f := &farm{used: math.NaN(), why: byPolicy, decisions: map[string]int{}, limited: map[string]int{}, actions: map[action]int{},
		calls: map[string]int{kept: 0, clamped: 0, failed: 0}, handBacks: map[string]int{}, inference: math.NaN()}
	for _, cause := range guard.Causes() {
		f.handBacks[cause] = 0
	}
	for _, reason := range limits {
		f.limited[reason] = 0
	}
	for _, outcome := range []string{up, down} {
		for _, reason := range append(limits, byPolicy) {
			f.actions[action{outcome, reason}] = 0
		}
	}
	return f
}

// Looked takes over a look at a farm.
func (c *Controller) Looked(l controller.Look) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	f := c.farms[l.Farm]
	if f == nil || f.forgotten(now) {
		f = newFarm()
		c.farms[l.Farm] = f
	}
	f.at = now
	if l.Receipt != nil {
		f.count(l.Receipt)
	}
	l.Receipt = nil // it is large
	f.look = l
}

// forgotten reports whether the last look is too long ago to tell of.
func (f *farm) forgotten(now time.Time) bool {
	return now.Sub(f.at) > max(patience, 3*f.look.Interval)
}

// count counts a decision, and the scale call that ended since the one before.
func (f *farm) count(r *controller.Receipt) {
	if r.Acted != nil {
		f.acted(r.Acted)
	}
	if r.Foreign != nil {
		f.foreign++
	}
	if r.HandedBack != nil {
		f.handBacks[r.HandedBack.Cause]++
	}
	f.inference = math.NaN()
	if r.Inference > 0 {
		f.inference = r.Inference
	}
	name, _, _ := strings.Cut(r.Decider(), ":")
	f.decisions[name]++
	why := byPolicy
	for _, l := range r.Outcome.Limits {
		f.limited[l.Name]++
		why = l.Name
	}
	if r.Capacity != nil {
		f.limited[byCapacity]++
		why = byCapacity
	}
	if r.Replicas != r.Before {
		f.why = why
	}
	f.used = math.NaN()
	if budget := r.Inputs.Guard.Budget; budget > 0 {
		f.used = r.Next.Hours() / budget
	}
}

// acted counts a scale call; it is an action if it changed something.
func (f *farm) acted(a *controller.Acted) {
	switch {
	case a.Error != "":
		f.calls[failed]++
		return
	case a.ReadBack != a.To:
		f.calls[clamped]++
	default:
		f.calls[kept]++
	}
	switch {
	case a.ReadBack > a.From:
		f.actions[action{up, f.why}]++
	case a.ReadBack < a.From:
		f.actions[action{down, f.why}]++
	}
}
