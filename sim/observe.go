package sim

import (
	"math"
	"time"

	"farmhand/policy"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/signal"
)

// signals are what the farm measures, as dispatchers and ledger do: counters, and
// once a second a heartbeat that writes them down.
type signals struct {
	counter signal.Counter
	series  *signal.Series
	beat    float64 // the next heartbeat
	phase   float64
	beats   int
	seconds [1]signal.Second // its memory is used again
}

// epoch is the instant 0 of all runs. Budgets count by days that begin at midnight.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func instant(at float64) time.Time {
	return epoch.Add(time.Duration(math.Round(at*1e6)) * time.Microsecond)
}

// reset begins the measuring with the last heartbeat before the run: the farm is
// there, and was quiet. When in a second the heartbeats come is chance, unless told.
func (g *signals) reset(s *Sim, beat *float64) {
	if g.series == nil {
		g.series = signal.NewSeries(signal.State{})
	}
	g.series.Reset(signal.State{})
	g.counter.Drain(&g.seconds[0].Tally)
	if g.phase = s.draw.platform.Float64(); beat != nil {
		g.phase = *beat
	}
	g.beats = -1
	s.heartbeat()
}

// heartbeat writes down what was counted since the last one.
func (s *Sim) heartbeat() {
	g := &s.signal
	at := g.phase + float64(g.beats)
	g.beats++
	g.beat = g.phase + float64(g.beats)
	sec := &g.seconds[0]
	now := instant(at)
	sec.Unix, sec.At = now.Unix(), now
	sec.Counts = ledger.Counts{Submitted: s.arrived, Waiting: s.line.n, Leased: s.live + s.coming, Delayed: s.count.delayed, Done: s.count.done, Dead: s.count.dead}
	sec.Timed, sec.Late = s.count.timed, s.count.late
	g.counter.Drain(&sec.Tally)
	g.series.Add(&signal.Reading{Now: now, Seconds: g.seconds[:]})
	s.take() // a window that recovered is looked at once a second
}

// farmName is the name of every simulated farm.
const farmName = "sim"

// Observe makes the observation of this instant, as the live controller does. It
// uses the memory that o has.
func (s *Sim) Observe(o *policy.Observation) {
	past := o.Past
	seen := s.window.seen
	*o = signal.NewObservation(skeleton.Farm{Name: farmName, Settings: s.settings, Ready: seen, Target: s.wanted()}, instant(s.now))
	o.Past = past[:0]
	if most := s.platform.Cap; s.scale.clamped && (o.Max == 0 || most < o.Max) {
		o.Max = most
	}
	g := s.gauges()
	signal.Gauge(o, &g)
	if slots := seen * s.slots; slots > 0 {
		o.Busy = policy.Maybe(min(1, float64(s.live)/float64(slots)))
	}
	s.signal.series.Observe(o)
}

// wanted is the count that the controller wants, given what the platform says.
func (s *Sim) wanted() int {
	if s.scale.lowering {
		return s.scale.lowerTo
	}
	return s.scale.desired
}

// gauges are the ledger's, of this instant.
func (s *Sim) gauges() ledger.Gauges {
	w, l := s.lookAtLine(), s.lookAtLeases()
	g := ledger.Gauges{Live: s.live, OldestWait: duration(s.now - w.oldest), Overdue: w.overdue, RunningOverdue: l.overdue, RunningAge: duration(l.age)}
	g.Waiting, g.Leased, g.Delayed = s.line.n, s.live, s.count.delayed
	if g.Dated = w.due < math.Inf(1); g.Dated {
		g.NextDue = duration(w.due - s.now)
	}
	return g
}

// running looks at the leases.
type running struct {
	age     float64 // mean time since they were handed out
	overdue int     // those whose results are on their way as well
}

func (s *Sim) lookAtLeases() (r running) {
	if s.live+s.coming == 0 {
		return r
	}
	for i := range s.leases {
		l := &s.leases[i]
		if l.task == none {
			continue
		}
		if !l.coming {
			r.age += s.now - l.taken
		}
		if s.due(l.task) < s.now {
			r.overdue++
		}
	}
	r.age /= float64(max(1, s.live))
	return r
}
