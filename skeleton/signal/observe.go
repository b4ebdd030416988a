package signal

import (
	"time"

	"farmhand/policy"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// NewObservation begins the observation of a farm: what is known without
// measuring. Service is the farm's prior.
func NewObservation(f skeleton.Farm, at time.Time) policy.Observation {
	s := f.Settings
	o := policy.Observation{Version: policy.ObservationVersion, Farm: f.Name, At: at,
		Interval: s.Interval.Seconds(), Deadline: s.EffectiveDeadline().Seconds(), Target: s.Target, Timeout: s.Timeout.Seconds(),
		Slots: s.Slots, Min: s.Min, Max: s.Max, Desired: f.Target, Ready: f.Ready, Starting: max(0, f.Target-f.Ready)}
	for _, m := range []*policy.Maybe{&o.Age, &o.Draining, &o.StartupLag, &o.Waiting, &o.Running, &o.Delayed, &o.OldestWait,
		&o.Overdue, &o.NextDue, &o.RunningAge, &o.Service, &o.PeakLoad, &o.CPU, &o.Memory, &o.Busy} {
		*m = policy.Unknown
	}
	if s.Service > 0 {
		o.Service = policy.Maybe(s.Service.Seconds())
	}
	return o
}

// Gauge puts the ledger's gauges into an observation.
func Gauge(o *policy.Observation, g *ledger.Gauges) {
	o.Waiting = policy.Maybe(g.Waiting)
	o.Running = policy.Maybe(g.Leased)
	o.Delayed = policy.Maybe(g.Delayed)
	o.OldestWait = policy.Maybe(g.OldestWait.Seconds())
	o.Overdue = policy.Maybe(g.Overdue + g.RunningOverdue)
	o.RunningAge = policy.Maybe(g.RunningAge.Seconds())
	if g.Dated {
		o.NextDue = policy.Maybe(g.NextDue.Seconds())
	}
}

// Observe fills in what the Series has measured: Age, StartupLag, the windows,
// Service, the levels, PeakLoad. It reads At (by the ledger's clock), Interval,
// Slots, Ready, the gauges Running and RunningAge, and the prior in Service. It
// may be called as often as decisions are made: it looks for a change of level
// once per interval.
func (s *Series) Observe(o *policy.Observation) {
	at := o.At.UnixMicro()
	o.Age = s.Age(o.At)
	s.state.Startup.ready(at, o.Ready, o.Interval)
	o.StartupLag = s.state.Startup.lag()

	short, long := policy.Windows(o.Interval)
	to := s.known(at)
	o.Last = s.window(&s.views[0], o.Interval, to)
	o.Short = s.window(&s.views[1], short, to)
	o.Long = s.window(&s.views[2], long, to)
	o.Service = s.service(o)

	s.detect(o, to)
	s.finish()
	o.Level = s.state.Level.view(at, o.Service, o.Slots)
	o.Past = append(o.Past[:0], s.state.Past...)

	o.PeakLoad = policy.Unknown
	if rate := s.peak(&o.Short, at); rate.Known() && o.Service.Known() {
		o.PeakLoad = rate * o.Service / policy.Maybe(max(1, o.Slots))
	}
	s.slim()
}

// enough completions make a short window's mean service time good to some 6 %
// (at a coefficient of variation of 0.6).
const enough = 100

// service estimates the mean service time m: that of the completions in the
// short window, or in the long one where those are too few; else the last one
// measured; else the prior.
//
// A farm that slows down shows it first in what runs, not in what is done. By the
// inspection paradox the attempts that run at an instant are m·(1+cv²)/2 old on
// average. Where their mean age a exceeds that, and m, by a factor x, the service
// time has grown: the n completions of the short window say m, the r running
// attempts x·m, and the estimate is the mean of all, m·(n + r·x) ÷ (n + r). It
// rises with the ages and never jumps. Ages alone say nothing: they start at 0.
func (s *Series) service(o *policy.Observation) policy.Maybe {
	m := o.Service
	if s.state.Service > 0 {
		m = policy.Maybe(s.state.Service)
	}
	done := o.Short.Service
	if done.N < enough {
		done = o.Long.Service
	}
	if done.Mean > 0 {
		m = policy.Maybe(done.Mean)
		s.state.Service = done.Mean
	}
	n, r, a := o.Short.Service.N, o.Running.Or(0), o.RunningAge.Or(0)
	typical := m.Or(0) * max(1, (1+done.CV2())/2)
	if r <= 0 || typical <= 0 || a <= typical {
		return m
	}
	return m * policy.Maybe((n+r*a/typical)/(n+r))
}
