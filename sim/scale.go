package sim

// scaling is what is asked of the platform, and what it says.
type scaling struct {
	desired int  // replicas, as read back
	clamped bool // the platform was seen to give fewer than asked for

	calling  bool // a call has not taken effect
	callTo   int
	callFrom float64 // when it was made

	lowering bool // a scale-down waits for its call
	lowerTo  int
	since    float64
	seq      uint32 // of the event that tries it again

	wentDown bool // the last action was down
	downAt   float64
}

// lookTime is how often the controller looks at a farm that is not settled,
// between decisions; wakeGap, how soon after a decision it can be woken.
const (
	lookTime = 1
	wakeGap  = 0.25
)

// Calling reports whether the last scale call has not taken effect yet. The
// controller decides nothing then.
func (s *Sim) Calling() bool { return s.scale.calling }

// Scale asks for n replicas and returns how many are wanted then: what the
// platform says, which may give fewer, or, of a scale-down that is only begun, n.
// While Calling it changes nothing.
//
// Going up is called at once. Going down, the window is lowered at once; the call
// follows when what runs fits, or an interval later, as the live controller has it.
// A Blocking platform is called at once.
func (s *Sim) Scale(n int) int {
	c := &s.scale
	n = max(0, n)
	if most := s.platform.Cap; most > 0 && n > most {
		n, c.clamped = most, true
	}
	if c.calling {
		return s.window.target
	}
	switch {
	case n >= c.desired || s.platform.Blocking:
		c.lowering = false
		s.aim(n)
		if n != c.desired {
			s.call(n)
		}
	default:
		if !c.lowering || n < c.lowerTo { // the window goes first for what is more, too
			c.lowering, c.since = true, s.now
		}
		c.lowerTo = n
		s.aim(n)
	}
	return s.window.target
}

// aim sets the count that is wanted.
func (s *Sim) aim(n int) {
	s.bound(s.window.seen, n)
	s.take()
}

// tryLower calls for a scale-down that waits for its call, if it may be now: after
// a decision, and each second.
func (s *Sim) tryLower() {
	c := &s.scale
	if !c.lowering || c.calling {
		return
	}
	waited := s.now - c.since
	fits := s.live <= c.lowerTo*s.slots && (waited > 0 || s.line.n == 0)
	if fits || waited >= 0.9*s.farm.Interval {
		s.call(c.lowerTo)
		return
	}
	if next := s.now + lookTime; next < s.until-0.1*s.farm.Interval { // else the next decision comes first
		c.seq = s.agenda.plan(next, lowerIsTried)
	}
}

// call makes a scale call. What it asks for is paid from now on.
func (s *Sim) call(n int) {
	c := &s.scale
	s.count.pay(s.now, max(0, n-c.desired))
	c.calling, c.callTo, c.callFrom = true, n, s.now
	if s.platform.Call == nil {
		s.callTakes()
		return
	}
	s.agenda.plan(s.now+draw(s.platform.Call, s.draw.platform), callWorks)
}

// callTakes lets a call take effect. The platform is asked at once what it has.
func (s *Sim) callTakes() {
	c := &s.scale
	before := c.desired
	c.calling, c.lowering, c.desired = false, false, c.callTo
	s.count.actions++
	s.signal.series.Scaled(instant(c.callFrom), before, c.desired)
	if c.desired > before {
		if c.wentDown && c.callFrom-c.downAt <= 2*s.lag() {
			s.count.flaps++
		}
		for range c.desired - before {
			s.start()
		}
	} else {
		s.remove(before - c.desired)
		c.downAt = c.callFrom
	}
	c.wentDown = c.desired < before
	s.bound(len(s.fleet.ready), c.desired)
	s.take()
	if s.looks > 0 {
		s.look()
	}
}

// lag is the mean start-up time.
func (s *Sim) lag() float64 {
	if s.platform.Startup == nil {
		return 0
	}
	return s.platform.Startup.Mean()
}

// settled reports whether the last decision has taken effect in full.
func (s *Sim) settled() bool {
	f := &s.fleet
	return !s.scale.calling && f.starting == f.restarting && f.leaving == 0
}

// wake has the next decision made early where work came and nobody is ready, so
// far as is known.
func (s *Sim) wake() {
	if s.window.seen == 0 && s.line.n > 0 && !s.platform.Blocking {
		s.until = min(s.until, max(s.now, s.decided+wakeGap))
	}
}
