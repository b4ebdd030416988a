package dispatch

import (
	"cmp"
	"container/heap"
	"context"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// park is where tasks wait that met busy workers. Each brings an offer, due
// after 2 to 20 ms, but an offer goes to the oldest task, not to the one that
// brought it: no task keeps hitting busy workers while younger ones pass (P69).
type park struct {
	waiting seats
	refused int // calls in a row that reached nobody
}

// swap exchanges a new task for the oldest one that waits, if there is any.
func (p *park) swap(a *attempt) *attempt {
	if len(p.waiting) == 0 || older(a, p.waiting[0]) < 0 {
		return a
	}
	oldest := p.waiting[0]
	oldest.state, a.state = fresh, parked
	p.waiting[0] = a
	heap.Fix(&p.waiting, 0)
	return oldest
}

// pause is how long to wait for the next offer. Busy workers free up one by one,
// so the offers keep coming; but where nobody listens at all, no task can gain by
// asking, and the pauses grow up to fiftyfold.
func (p *park) pause(uniform func() float64) time.Duration {
	return skeleton.BusyWait(uniform) * time.Duration(min(50, 1+p.refused/32))
}

// metBusy parks an attempt, unless it has met nothing but busy workers for too
// long or may wait no longer.
func (r *runner) metBusy(a *attempt, nobody bool) {
	now := time.Now()
	if a.met.IsZero() {
		a.met = now
	}
	deleted := r.deleted()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy++
	poke(r.ended) // the settle loop reports it
	if nobody {
		r.park.refused++
	} else {
		r.park.refused = 0
	}
	switch cause := context.Cause(a.ctx); {
	case cause != nil:
		r.endLocked(a, ending{kind: ledger.Released, reason: cause.Error()}) // no worker has it
	case r.draining:
		r.close(a, ending{kind: ledger.Released, reason: errStopped.Error()})
	case deleted:
		r.close(a, ending{kind: ledger.Rejected, reason: reasonDeleted})
	case now.Sub(a.met) >= r.cfg.TimeToLive:
		r.close(a, ending{kind: ledger.Rejected, reason: reasonCapacity})
	default:
		a.state = parked
		heap.Push(&r.park.waiting, a)
		r.grant() // its body may be in the way
		time.AfterFunc(r.park.pause(r.cfg.Uniform), r.offer)
	}
}

// offer hands the oldest parked task to the workers again.
func (r *runner) offer() {
	r.mu.Lock()
	if len(r.park.waiting) == 0 {
		r.mu.Unlock()
		return
	}
	a := heap.Pop(&r.park.waiting).(*attempt)
	a.state = fresh
	r.mu.Unlock()
	a.run()
}

// clearPark ends all parked attempts.
func (r *runner) clearPark(kind ledger.Kind, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.park.waiting) > 0 {
		r.close(r.park.waiting[len(r.park.waiting)-1], ending{kind: kind, reason: reason})
	}
}

// shrink gives parked tasks back to the queue, the youngest first, when more
// leases live than the window allows. Running ones are left alone; those about to
// be settled count as gone.
func (r *runner) shrink(window, live int) {
	if live <= window || r.deleted() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := live - window - r.over; n > 0 && len(r.park.waiting) > 0; n-- {
		youngest := r.park.waiting[0]
		for _, a := range r.park.waiting {
			if older(youngest, a) < 0 {
				youngest = a
			}
		}
		r.memory.note(youngest, r.cfg.TimeToLive)
		r.close(youngest, ending{kind: ledger.Released, reason: "the window shrank"})
	}
}

// older orders attempts by the age of their tasks. Classes do not count here:
// what was taken was next, and must not starve.
func older(x, y *attempt) int {
	return cmp.Or(x.lease.Accepted.Compare(y.lease.Accepted), cmp.Compare(x.lease.Job, y.lease.Job), cmp.Compare(x.lease.Index, y.lease.Index))
}

// seats is a heap of attempts, oldest first. An attempt is found by its state
// and a search: it leaves out of turn only when its job is cancelled or the
// window shrinks.
type seats []*attempt

func (s seats) Len() int           { return len(s) }
func (s seats) Less(i, j int) bool { return older(s[i], s[j]) < 0 }
func (s seats) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }

// Push implements heap.Interface.
func (s *seats) Push(x any) { *s = append(*s, x.(*attempt)) }

// Pop implements heap.Interface.
func (s *seats) Pop() any {
	old := *s
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return last
}

func (s *seats) remove(a *attempt) {
	for i, x := range *s {
		if x == a {
			heap.Remove(s, i)
			return
		}
	}
}

// memory keeps, of tasks given back because the window shrank, since when they
// meet busy workers, so that being given back does not lengthen their time to
// live. It is bounded; what it forgets starts anew.
type memory map[string]trace

// trace is what a task looked like when it was given back. One that was run or
// redriven since, here or elsewhere, looks different, and starts anew; so does one
// that was not taken for a time to live.
type trace struct {
	met, noted, accepted time.Time
	attempt, lost        int
}

const maxMemory = 4096

func (m *memory) note(a *attempt, ttl time.Duration) {
	now := time.Now()
	if *m == nil || len(*m) >= maxMemory {
		kept := memory{}
		for ref, t := range *m {
			if len(kept) < maxMemory/2 && now.Sub(t.noted) < ttl {
				kept[ref] = t
			}
		}
		*m = kept
	}
	l := a.lease
	(*m)[l.Ref] = trace{met: a.met, noted: now, accepted: l.Accepted, attempt: l.Attempt, lost: l.Lost}
}

func (m *memory) recall(l *ledger.Lease, ttl time.Duration) time.Time {
	t, ok := (*m)[l.Ref]
	if !ok {
		return time.Time{}
	}
	delete(*m, l.Ref)
	if time.Since(t.noted) >= ttl || !t.accepted.Equal(l.Accepted) || t.attempt != l.Attempt || t.lost != l.Lost {
		return time.Time{}
	}
	return t.met
}
