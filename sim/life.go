package sim

import "farmhand/sim/workload"

// This file is the life of a replica: start, ready, crash, drain, end.

// start begins the next replica. The k-th of a run takes the k-th time drawn.
func (s *Sim) start() {
	i := s.fleet.add(int32(s.count.starts))
	s.count.starts++
	s.fleet.list[i].seq = s.agenda.plan(s.now+draw(s.platform.Startup, s.draw.startup), replicaReady|uint32(i))
}

// open lets a replica serve.
func (s *Sim) open(i int32) {
	s.fleet.join(i)
	r := &s.fleet.list[i]
	r.seq = 0
	if rate := s.platform.Crashes; rate > 0 {
		r.crash = s.agenda.plan(s.now+s.draw.life(r.number, r.crashes, rate), replicaCrashes|uint32(i))
	}
}

func (s *Sim) beReady(i int32) {
	s.open(i)
	s.notice()
}

// notice lets controller and dispatcher know, after a while, how many replicas are
// ready.
func (s *Sim) notice() {
	if s.looks > 0 {
		return
	}
	if s.platform.Seen == nil {
		s.see()
		return
	}
	s.agenda.plan(s.now+draw(s.platform.Seen, s.draw.platform), readyIsSeen)
}

func (s *Sim) see() {
	s.bound(len(s.fleet.ready), s.window.target)
	s.take()
}

// look has the controller see what is ready, and look again while not all is.
func (s *Sim) look() {
	s.lookAround()
	s.take()
}

// lookAround is a look before the dispatcher hears of it.
func (s *Sim) lookAround() {
	s.bound(len(s.fleet.ready), s.window.target)
	s.looking = 0
	if s.window.seen != s.wanted() {
		s.looking = s.agenda.plan(s.now+s.looks, lookIsMade)
	}
}

// crash ends a replica with all it does. Unless it was leaving anyway it starts
// again.
func (s *Sim) crash(i int32) {
	s.count.crashes++
	r := &s.fleet.list[i]
	r.crash = 0
	gone := r.phase != ready
	if !gone {
		s.fleet.quit(i)
	}
	for k := range s.leases {
		if s.leases[k].replica == i {
			s.lose(int32(k))
		}
	}
	r.busy = 0
	if gone {
		s.endReplica(i)
	} else {
		r.phase = starting
		r.crashes++
		s.fleet.starting++
		s.fleet.restarting++
		r.seq = s.agenda.plan(s.now+draw(s.platform.Startup, s.draw.faults), replicaReady|uint32(i))
		s.notice()
	}
	s.take()
}

// remove takes replicas away: starting ones first, the youngest of them first;
// ready ones finish what they have.
func (s *Sim) remove(n int) {
	for ; n > 0 && s.fleet.starting > 0; n-- {
		i := s.fleet.youngest()
		s.fleet.unstart(&s.fleet.list[i])
		s.fleet.drop(i)
		s.count.pay(s.now, -1)
	}
	for ; n > 0; n-- {
		i := int32(none)
		if s.platform.Victim == workload.RandomVictim {
			i = s.fleet.ready[s.draw.faults.IntN(len(s.fleet.ready))]
		} else {
			i = s.fleet.idlest()
		}
		s.fleet.quit(i)
		s.fleet.leaving++
		s.fleet.list[i].phase = draining
		s.drained(i)
	}
}

// leave frees the slot of an attempt that has ended.
func (s *Sim) leave(i int32) {
	s.fleet.unbook(i)
	s.drained(i)
}

// drained ends a draining replica that has finished.
func (s *Sim) drained(i int32) {
	r := &s.fleet.list[i]
	if r.phase != draining || r.busy > 0 {
		return
	}
	r.phase, r.crash = ending, 0
	r.seq = s.agenda.plan(s.now+draw(s.platform.Stop, s.draw.platform), replicaEnds|uint32(i))
}

// endReplica ends a replica for good.
func (s *Sim) endReplica(i int32) {
	s.fleet.leaving--
	s.fleet.drop(i)
	s.count.pay(s.now, -1)
}
