// Package sim simulates a farm and the platform it runs on, event by event.
//
// A Sim plays the tasks of a workload.Scenario against replicas that start, crash
// and drain. Whoever drives it (Run, the learning environment, an oracle) looks
// at an observation, which the live farm's own code makes of what was measured,
// asks for a number of replicas, and lets it run to the next decision. The same
// scenario, tasks and seed give the same trajectory.
//
// It models what the live farm has: the order of service, the window of the
// ledger, leases, back-off, the two steps of a scale-down, ready replicas that are
// seen late, heartbeats once a second. What it leaves out: the time to live of a
// task that meets nothing but busy workers (an hour), limits in bytes, cancelled
// jobs, lapsed leases, and the rounding of observations to four digits.
package sim

import (
	"math"
	"slices"

	"farmhand/sim/workload"
	"farmhand/skeleton"
)

// Config of a Sim.
type Config struct {
	Scenario *workload.Scenario
	Tasks    *workload.Tasks // shared by runs that are compared, not changed; nil: drawn from Seed
	Seed     uint64          // of the platform: start-ups, crashes, balancing …
	Beat     *float64        // when in a second the heartbeats come, from 0 to below 1; nil: drawn
}

// Sim is a simulated farm. Decisions are due at 0, after each interval, and, as
// in the live farm, early where tasks arrive and no replica is ready. It belongs
// to one goroutine.
type Sim struct {
	farm     workload.Farm
	platform workload.Platform
	settings skeleton.Settings
	horizon  float64
	slots    int

	// The tasks. Task i is due after deadline[i], or else after patience.
	at, service, deadline []float64
	work                  work
	patience              float64 // +Inf: no due
	overhead, timeout     float64
	faulty                bool // attempts may fail, so that tries and losses are counted
	tries, losses         []uint8

	now     float64
	decided float64 // when the last decision was due
	until   float64 // when the next one is
	agenda  agenda
	arrived int     // tasks so far
	arrival float64 // of the next task; +Inf: none is left
	line    line

	leases []lease
	spare  []int32 // leases that are not in use
	live   int     // leases in use
	coming int     // results on their way
	parked keys    // leases that met busy replicas
	nobody int     // offers in a row that met no replica at all

	holds   bool    // a task keeps its place in the window until its result is accepted
	looks   float64 // the controller looks so often at what is ready; 0: it hears of it
	looking uint32  // event of the next look

	fleet  fleet
	window window
	scale  scaling
	count  counts
	signal signals
	draw   draws
}

// New makes a Sim of a scenario. The error names the field that cannot be, and
// what would be right.
func New(cfg Config) (*Sim, error) {
	s := &Sim{}
	if err := s.Reset(cfg); err != nil {
		return nil, err
	}
	return s, nil
}

// Reset begins a run, in the memory of the one before.
func (s *Sim) Reset(cfg Config) error { return s.reset(cfg, false) }

// reset begins a run. With ordered set, tasks stand in the queue of order even
// where a plain line serves them in the same order.
func (s *Sim) reset(cfg Config, ordered bool) error {
	if err := cfg.check(); err != nil {
		return err
	}
	t := cfg.Tasks
	if t == nil {
		t = cfg.Scenario.Draw(cfg.Seed)
	}
	work, err := checkTasks(t, cfg.Scenario.Farm.Interval)
	if err != nil {
		return err
	}
	s.farm, s.platform = cfg.Scenario.Farm, cfg.Scenario.Platform
	s.work = work
	s.load(t)
	f := &s.farm
	s.line.reset(t, ordered || !f.FIFO && (t.Class != nil || t.Tenant != nil || t.Deadline != nil))
	s.begin(cfg.Seed, cfg.Beat)
	return nil
}

// load takes over what of farm and tasks is looked at all the time.
func (s *Sim) load(t *workload.Tasks) {
	f := &s.farm
	s.settings = settings(*f)
	s.slots = s.settings.Slots
	f.Attempts = orElse(f.Attempts, skeleton.DefaultAttempts)
	s.horizon, s.at, s.service, s.deadline = t.Horizon, t.At, t.Service, t.Deadline
	s.patience = positiveOrInf(f.Deadline)
	s.overhead, s.timeout = s.platform.Overhead, positiveOrInf(f.Timeout)
	looks, _ := s.platform.Seen.(workload.Looks)
	s.looks = looks.Every
	_, s.holds = s.platform.Answer.(workload.Held)
	s.faulty = f.Failing > 0 || s.platform.Crashes > 0 || s.work.longest+s.overhead > s.timeout
	if s.faulty {
		s.tries = zeroed(s.tries, len(t.At))
		s.losses = zeroed(s.losses, len(t.At))
	}
}

// begin puts everything to the instant 0.
func (s *Sim) begin(seed uint64, beat *float64) {
	s.now, s.decided, s.until = 0, 0, 0
	s.agenda.reset()
	s.arrived, s.arrival = 0, math.Inf(1)
	if len(s.at) > 0 {
		s.arrival = s.at[0]
	}
	s.leases, s.spare, s.live, s.coming, s.parked, s.nobody = s.leases[:0], s.spare[:0], 0, 0, s.parked[:0], 0
	s.draw.reset(seed)
	s.count.reset(s.horizon, s.farm.Interval)
	s.signal.reset(s, beat)
	s.scale, s.looking = scaling{desired: s.farm.Start}, 0
	s.fleet.reset(s.slots, s.platform.Balance)
	s.count.pay(0, s.farm.Start)
	for i := range s.farm.Start {
		s.open(s.fleet.add(int32(-1 - i)))
	}
	s.window.reset()
	s.bound(s.farm.Start, s.farm.Start)
}

// Now is the instant of the decision that is due, in seconds since the beginning.
func (s *Sim) Now() float64 { return s.now }

// Advance runs to the next decision: an interval later, or after that, where the
// platform is Blocking; earlier, where tasks arrive and no replica is ready. It
// returns false at the horizon, where there is none.
func (s *Sim) Advance() bool {
	if s.now >= s.horizon {
		return false
	}
	s.decided = s.now
	s.until = s.now + s.farm.Interval
	if s.until > s.horizon-1e-9*s.farm.Interval { // sums of intervals are not quite round
		s.until = s.horizon
	}
	s.tryLower()
	if s.looks > 0 {
		s.take() // what a look before the decision saw serves after it
	}
	for s.run(); s.platform.Blocking && !s.settled() && s.now < s.horizon; s.run() {
		s.until = min(s.horizon, max(s.agenda.next().at, s.now))
	}
	if s.looks > 0 {
		s.lookAround()
	}
	return s.now < s.horizon
}

// run lets happen what is to happen until the next decision. What is planned comes
// before what arrives at the same instant: who leaves makes room for who comes.
func (s *Sim) run() {
	for {
		limit := min(s.until, s.signal.beat)
		e := s.agenda.next()
		switch {
		case e.at <= s.arrival && e.at <= limit:
			s.now = e.at
			s.agenda.take()
			s.happen(*e)
		case s.arrival <= limit:
			s.now = s.arrival
			s.arrive()
		default:
			s.now = limit
			if s.signal.beat > s.until {
				return
			}
			s.heartbeat()
		}
	}
}

// happen lets an event happen, unless what it is about has ended since.
func (s *Sim) happen(e event) {
	i := int32(e.id & maxIndex)
	switch e.id &^ maxIndex {
	case attemptEnds:
		if s.leases[i].seq == e.seq {
			s.endAttempt(i)
		}
	case resultComes:
		s.accept(i)
		if s.holds {
			s.take()
		}
	case delayEnds:
		s.count.delayed--
		s.put(i, true)
		s.take()
		s.wake()
	case offerComes:
		s.offerParked()
	case replicaReady:
		if s.fleet.list[i].seq == e.seq {
			s.beReady(i)
		}
	case replicaCrashes:
		if s.fleet.list[i].crash == e.seq {
			s.crash(i)
		}
	case replicaEnds:
		if s.fleet.list[i].seq == e.seq {
			s.endReplica(i)
		}
	case callWorks:
		s.callTakes()
	case readyIsSeen:
		s.see()
		s.take()
	case lookIsMade:
		if s.looking == e.seq {
			s.look()
		}
	case lowerIsTried:
		if s.scale.lowering && s.scale.seq == e.seq {
			s.tryLower()
		}
	}
}

// zeroed is a slice of n zeros, in the memory of another one where that is enough.
func zeroed[T any](list []T, n int) []T {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

func positiveOrInf(x float64) float64 {
	if x > 0 {
		return x
	}
	return math.Inf(1)
}
