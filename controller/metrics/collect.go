package metrics

import (
	"math"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"farmhand/controller"
	"farmhand/policy"
	"farmhand/skeleton"
)

// metric is a family of series.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// all are the families that are told.
var all []metric

func gauge(name, help string, labels ...string) metric {
	return add(prometheus.GaugeValue, name, help, labels)
}

func counter(name, help string, labels ...string) metric {
	return add(prometheus.CounterValue, name, help, labels)
}

func add(kind prometheus.ValueType, name, help string, labels []string) metric {
	m := metric{prometheus.NewDesc(name, help, labels, nil), kind}
	all = append(all, m)
	return m
}

var (
	tasks     = gauge("farmhand_tasks", "Tasks of the jobs that are kept, by state.", "farm", "state")
	oldest    = gauge("farmhand_oldest_wait_seconds", "How long the first waiting task has waited.", "farm")
	overdue   = gauge("farmhand_overdue_tasks", "Waiting and running tasks past their due.", "farm")
	decided   = counter("farmhand_decided_tasks_total", "Tasks with a due that ended.", "farm")
	late      = counter("farmhand_late_tasks_total", "Tasks with a due that ended late.", "farm")
	lapsed    = counter("farmhand_lapsed_leases_total", "Leases that lapsed.", "farm")
	refused   = counter("farmhand_refused_results_total", "Results that an old fence kept out.", "farm")
	replicas  = gauge("farmhand_replicas", "Replicas of the worker: desired, ready, starting.", "farm", "state")
	signalAge = gauge("farmhand_signal_age_seconds", "Time since a dispatcher was heard of.", "farm")
	condition = gauge("farmhand_conditions", "1 where the condition holds.", "farm", "state")
	budget    = gauge("farmhand_budget_used_ratio", "Share of the day's budget that is used.", "farm")
	decisions = counter("farmhand_decisions_total", "Decisions, by policy.", "farm", "policy")
	limited   = counter("farmhand_limited_decisions_total", "Decisions that a limit changed.", "farm", "reason")
	actions   = counter("farmhand_actions_total", "Changes of the number of replicas.", "farm", "outcome", "reason")
	calls     = counter("farmhand_scale_calls_total", "Scale calls, by what came of them.", "farm", "outcome")
	foreign   = counter("farmhand_foreign_changes_total", "Changes of the count by somebody else.", "farm")
	handBacks = counter("farmhand_hand_backs_total", "Hand-backs of a learned policy to its rule.", "farm", "reason")
	inference = gauge("farmhand_inference_seconds", "What the learned policy took for its last decision.", "farm")
	onTime    = gauge("farmhand_estimated_on_time_ratio", "Tasks on time in the last minutes, as a model says: actual, under the rule, under the shadow.", "farm", "policy")
	workers   = gauge("farmhand_estimated_workers", "Mean count in the last minutes, as a model says: actual, under the rule, under the shadow.", "farm", "policy")
	pulseAge  = gauge("farmhand_pulse_age_seconds", "Time since the controller last looked at all that was due.")
)

var kinds = []string{controller.Healthy, controller.Scaling, controller.Limited, controller.Fallback, controller.PausedBy}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range all {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(ch chan<- prometheus.Metric) {
	now := c.now()
	tell := func(m metric, x float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, x, labels...)
	}
	age := math.Inf(1) // before the first pulse
	if at := c.status().Updated; !at.IsZero() {
		age = max(0, now.Sub(at).Seconds())
	}
	tell(pulseAge, age)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, f := range c.farms {
		if f.forgotten(now) {
			delete(c.farms, name)
			continue
		}
		f.collect(name, now, tell)
	}
}

func (f *farm) collect(name string, now time.Time, tell func(m metric, x float64, labels ...string)) {
	l := &f.look
	if g := l.Gauges; g != nil {
		for state, n := range map[skeleton.State]int{skeleton.Waiting: g.Waiting, skeleton.Leased: g.Leased, skeleton.Delayed: g.Delayed,
			skeleton.Done: g.Done, skeleton.Dead: g.Dead, skeleton.Cancelled: g.Cancelled} {
			tell(tasks, float64(n), name, string(state))
		}
		tell(oldest, g.OldestWait.Seconds(), name)
		tell(overdue, float64(g.Overdue+g.RunningOverdue), name)
		tell(decided, float64(g.Timed), name)
		tell(late, float64(g.Late), name)
		tell(lapsed, float64(g.Lapsed), name)
		tell(refused, float64(g.Refused), name)
	}
	tell(replicas, float64(l.Desired), name, "desired")
	tell(replicas, float64(l.Ready), name, "ready")
	tell(replicas, float64(max(0, l.Desired-l.Ready)), name, "starting")
	age := math.Inf(1)
	if l.Age.Known() {
		age = max(0, float64(l.Age)+now.Sub(f.at).Seconds())
	}
	tell(signalAge, age, name)
	for _, kind := range kinds {
		if c, ok := l.Conditions[kind]; ok {
			holds := 0.0
			if c.Status {
				holds = 1
			}
			tell(condition, holds, name, strings.ToLower(kind))
		}
	}
	if !math.IsNaN(f.used) {
		tell(budget, f.used, name)
	}
	for law, n := range f.decisions {
		tell(decisions, float64(n), name, law)
	}
	for reason, n := range f.limited {
		tell(limited, float64(n), name, reason)
	}
	for a, n := range f.actions {
		tell(actions, float64(n), name, a.outcome, a.reason)
	}
	for outcome, n := range f.calls {
		tell(calls, float64(n), name, outcome)
	}
	tell(foreign, float64(f.foreign), name)
	for cause, n := range f.handBacks {
		tell(handBacks, float64(n), name, cause)
	}
	if !math.IsNaN(f.inference) {
		tell(inference, f.inference, name)
	}
	if r := l.Review; r != nil && r.Problem == "" {
		for who, e := range map[string]*policy.Estimate{"actual": &r.Actual, "rule": r.Rule, "shadow": r.Shadow} {
			if e == nil || e.Seconds <= 0 {
				continue
			}
			tell(workers, e.WorkerSeconds/e.Seconds, name, who)
			if e.OnTime.Known() {
				tell(onTime, float64(e.OnTime), name, who)
			}
		}
	}
}
