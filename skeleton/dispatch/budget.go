package dispatch

import "slices"

// budget bounds the large bodies a runner holds, those that Take does not
// deliver: each is fetched when there is room, the oldest task's first, and freed
// when its attempt is over. A parked attempt keeps its body until an older one
// needs the room; then it is fetched again when it is offered again.
type budget struct {
	used    int
	waiting []*claim // the oldest first
}

// claim is an attempt that waits for room.
type claim struct {
	a     *attempt
	bytes int
	done  chan struct{} // closed: decided
	given bool
}

// claim reserves room for the body of an attempt. It returns false when the
// attempt was cut off or may not start any more.
func (r *runner) claim(a *attempt) bool {
	c := &claim{a: a, bytes: min(a.lease.Size, r.cfg.Bytes), done: make(chan struct{})}
	r.mu.Lock()
	if r.draining {
		r.mu.Unlock()
		return false
	}
	b := &r.budget
	at, _ := slices.BinarySearchFunc(b.waiting, a, func(x *claim, a *attempt) int { return older(x.a, a) })
	b.waiting = slices.Insert(b.waiting, at, c)
	r.grant()
	r.mu.Unlock()
	select {
	case <-c.done:
		return c.given
	case <-a.ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	r.free(a)
	return false
}

// grant gives room to those who wait, under mu: to the first as long as there is
// enough.
func (r *runner) grant() {
	for b := &r.budget; len(b.waiting) > 0; {
		c := b.waiting[0]
		if b.used+c.bytes > r.cfg.Bytes {
			r.evict(c)
		}
		if b.used+c.bytes > r.cfg.Bytes {
			return
		}
		b.waiting = slices.Delete(b.waiting, 0, 1)
		b.used += c.bytes
		c.a.claimed = c.bytes
		c.given = true
		close(c.done)
	}
}

// letPass parks an attempt whose body has come, if an older one is parked by now,
// and returns that one: who waits for room must not overtake.
func (r *runner) letPass(a *attempt) *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.claimed == 0 || r.draining {
		return a
	}
	return r.park.swap(a)
}

// evict frees bodies of parked attempts that are younger than the one that needs
// room, under mu, the youngest first.
func (r *runner) evict(c *claim) {
	var young []*attempt
	for _, a := range r.park.waiting {
		if a.claimed > 0 && older(c.a, a) < 0 {
			young = append(young, a)
		}
	}
	slices.SortFunc(young, older)
	for i := len(young) - 1; i >= 0 && r.budget.used+c.bytes > r.cfg.Bytes; i-- {
		r.budget.used -= young[i].claimed
		young[i].claimed, young[i].body = 0, nil
	}
}

// free gives back the room of an attempt, under mu.
func (r *runner) free(a *attempt) {
	a.body = nil
	r.budget.used -= a.claimed
	a.claimed = 0
	r.grant()
}

// refuse tells those who wait for room that there will be none, under mu.
func (r *runner) refuse() {
	for _, c := range r.budget.waiting {
		close(c.done)
	}
	r.budget.waiting = nil
}
