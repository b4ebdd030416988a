package sim

import (
	"math"

	"farmhand/skeleton"
)

// lease is a task that was handed out. It lives until the task has run, waits again
// or is dead; what is on its way back keeps no place in the window.
type lease struct {
	task    int32  // none: the lease is not in use
	replica int32  // that has it; none where it is parked, or the result is on its way
	coming  bool   // the result is on its way
	seq     uint32 // of the end of its attempt
	taken   float64
	began   float64 // the last attempt
	took    float64 // that attempt
}

const none = -1

// due is when a task is due; +Inf: never.
func (s *Sim) due(task int32) float64 {
	if s.deadline == nil {
		return s.at[task] + s.patience
	}
	return s.at[task] + positiveOrInf(s.deadline[task])
}

// arrive lets the next task in.
func (s *Sim) arrive() {
	task := int32(s.arrived)
	s.arrived++
	s.arrival = math.Inf(1)
	if s.arrived < len(s.at) {
		s.arrival = s.at[s.arrived]
	}
	s.count.inSystem.add(s.now, 1)
	if s.line.n == 0 && s.live < s.room() {
		s.line.head++ // of those that wait the first, and at once served
		s.hand(task)
		return
	}
	s.put(task, false)
	s.take()
	s.wake()
}

// take hands out the waiting tasks for which the window has room.
func (s *Sim) take() {
	for s.line.n > 0 && s.live < s.room() {
		s.hand(s.pull())
	}
}

// hand leases a task and offers it to the replicas. Where older ones are parked,
// the oldest goes first.
func (s *Sim) hand(task int32) {
	i := int32(len(s.leases))
	if n := len(s.spare); n > 0 {
		i, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		s.leases = append(s.leases, lease{})
	}
	s.leases[i] = lease{task: task, replica: none, taken: s.now}
	s.live++
	s.signal.counter.Starts++
	if len(s.parked) > 0 && s.parked[0].task() < task {
		i = s.parked.swap(newKey(task, i)).with()
	}
	s.offer(i)
}

// offer begins an attempt where a replica has a free slot, or parks the lease.
func (s *Sim) offer(i int32) {
	r := s.fleet.book(s.draw.balance)
	if r == none {
		s.park(i)
		return
	}
	s.nobody = 0
	l := &s.leases[i]
	l.replica, l.began = r, s.now
	l.took = min(s.service[l.task]+s.overhead, s.timeout)
	l.seq = s.agenda.plan(s.now+l.took, attemptEnds|uint32(i))
}

// endAttempt frees the slot; what has come of the attempt is known now, or, of a
// result, when it has come.
func (s *Sim) endAttempt(i int32) {
	l := &s.leases[i]
	s.count.worked += l.took
	s.leave(l.replica)
	l.replica = none
	switch {
	case s.faulty && s.fails(l):
		s.fail(i)
	case s.platform.Answer != nil:
		l.coming = true
		if !s.holds {
			s.live--
			s.coming++
		}
		s.agenda.plan(s.now+draw(s.platform.Answer, s.draw.platform), resultComes|uint32(i))
	default:
		s.accept(i)
	}
	s.take()
}

// accept takes a task's result.
func (s *Sim) accept(i int32) {
	l := &s.leases[i]
	task := l.task
	wait, sojourn := l.began-s.at[task], s.now-s.at[task]
	s.signal.counter.Done(wait, l.took, sojourn)
	s.count.done++
	s.count.sojourns.add(sojourn)
	s.count.wait += wait
	s.count.service += l.took
	s.count.maxSojourn = max(s.count.maxSojourn, sojourn)
	if due := s.due(task); due < math.Inf(1) {
		s.count.decide(due, s.now, s.now > due)
	}
	s.count.inSystem.add(s.now, -1)
	s.release(i)
}

// release ends a lease, or what is left of it.
func (s *Sim) release(i int32) {
	l := &s.leases[i]
	if l.coming && !s.holds {
		s.coming--
	} else {
		s.live--
	}
	l.task, l.replica, l.seq = none, none, 0
	s.spare = append(s.spare, i)
}

// fails says whether an attempt that has ended brought no result: it ran into its
// timeout, or the worker failed. The n-th attempt of a task fails under every
// policy, or under none.
func (s *Sim) fails(l *lease) bool {
	return s.service[l.task]+s.overhead > s.timeout ||
		s.farm.Failing > 0 && s.draw.chance(uint64(l.task), uint64(s.tries[l.task])) < s.farm.Failing
}

// fail charges an attempt to its task, which is tried again after a back-off, or
// is dead.
func (s *Sim) fail(i int32) {
	task := s.leases[i].task
	s.release(i)
	s.signal.counter.Failed++
	s.tries[task]++
	if int(s.tries[task]) >= s.farm.Attempts {
		s.die(task)
		return
	}
	s.delay(task, int(s.tries[task]))
}

// lose ends an attempt whose replica is gone.
func (s *Sim) lose(i int32) {
	l := &s.leases[i]
	task := l.task
	s.count.worked += s.now - l.began
	s.release(i)
	s.signal.counter.Lost++
	s.count.lost++
	s.losses[task]++
	if s.losses[task] > skeleton.LostBudget {
		s.die(task)
		return
	}
	s.delay(task, int(s.losses[task]))
}

func (s *Sim) delay(task int32, n int) {
	s.count.delayed++
	pause := skeleton.Backoff(n, s.draw.uniform).Seconds()
	s.agenda.plan(s.now+pause, delayEnds|uint32(task))
}

func (s *Sim) die(task int32) {
	s.count.dead++
	if due := s.due(task); due < math.Inf(1) {
		s.count.decide(due, s.now, true)
	}
	s.count.inSystem.add(s.now, -1)
}

// park keeps a lease that met busy replicas, or none, until its next offer. The
// pauses grow where nobody is there at all, as those of a dispatcher.
func (s *Sim) park(i int32) {
	s.count.busy++
	s.signal.counter.Busy++
	if len(s.fleet.ready) == 0 {
		s.nobody++
	} else {
		s.nobody = 0
	}
	s.parked.push(newKey(s.leases[i].task, i))
	pause := skeleton.BusyWait(s.draw.jitter).Seconds() * float64(min(50, 1+s.nobody/32))
	s.agenda.plan(s.now+pause, offerComes)
	s.window.refuse(s.now, s.count.done+s.count.dead)
	s.unpark()
}

// offerParked offers the oldest of the parked leases again.
func (s *Sim) offerParked() {
	if len(s.parked) > 0 {
		s.offer(s.parked.pop().with())
	}
}

// unpark lets parked tasks wait again, the youngest first, where more leases live
// than the window has room for.
func (s *Sim) unpark() {
	for len(s.parked) > 0 && s.live > s.room() {
		k := s.parked.popYoungest()
		s.release(k.with())
		s.put(k.task(), true)
	}
}
