package platform

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// function is one deployed function: what is wanted of it and the replicas
// there are. Whatever changes either calls reconcile.
type function struct {
	p       *Platform
	name    string
	created time.Time
	calls   atomic.Uint64 // finished invocations

	mu       sync.Mutex // guards the rest, and the state of the replicas
	spec     *spec
	gen      int // raised by each update that needs new processes
	desired  int
	closed   bool          // deleted, or the platform stops: no replica is wanted
	replicas []*replica    // all that have not ended, oldest first
	starts   uint64        // ever
	changed  chan struct{} // closed when the replicas have changed
	waiting  int           // calls held until a replica is ready
	turn     int           // where the next search for a free replica begins

	failures int         // starts in a row that did not come to last
	probing  bool        // after a failed start one replica at a time is tried
	retry    *time.Timer // set while no start may happen
}

func newFunction(p *Platform, s *spec, desired int, created time.Time) *function {
	return &function{p: p, name: s.Service, created: created, spec: s, desired: desired, changed: make(chan struct{})}
}

// notify wakes the held calls. The mutex is held.
func (f *function) notify() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// reconcile starts and ends replicas until there are as many of the current
// generation as wanted. Older ones serve until newer ones are ready. The mutex
// is held.
func (f *function) reconcile() {
	want := f.desired
	if f.closed || f.p.ctx.Err() != nil {
		want = 0
	}
	var current, older []*replica
	up, serving := 0, 0
	for _, r := range f.replicas {
		switch {
		case r.state == draining:
		case r.gen != f.gen:
			older = append(older, r)
		default:
			current = append(current, r)
			if r.state == ready {
				serving++
			} else {
				up++
			}
		}
	}
	for n := len(current); n < want && f.retry == nil && (!f.probing || up == 0); n++ {
		f.start()
		up++
	}
	for len(current) > want {
		i := victim(current)
		f.drain(current[i])
		current = append(current[:i:i], current[i+1:]...)
	}
	for len(older) > 0 && len(older)+serving > want {
		i := victim(older)
		f.drain(older[i])
		older = append(older[:i:i], older[i+1:]...)
	}
}

// victim picks the replica to end: one that does not serve yet, else an idle
// one, else any; of several the newest.
func victim(list []*replica) int {
	rank := func(r *replica) int {
		switch {
		case r.state != ready && r.inflight == 0:
			return 0
		case r.inflight == 0:
			return 1
		}
		return 2
	}
	best := len(list) - 1
	for i := len(list) - 2; i >= 0; i-- {
		if rank(list[i]) < rank(list[best]) {
			best = i
		}
	}
	return best
}

// start begins a replica. The mutex is held.
func (f *function) start() {
	r := &replica{
		id: fmt.Sprintf("%s-%s", f.name, uuid.NewString()[:8]), gen: f.gen, spec: f.spec, state: starting, begun: time.Now(),
		delay: f.p.cold.delay(f.name, f.starts), hold: f.failures == 0,
		drain: make(chan struct{}), idle: make(chan struct{}), ask: make(chan struct{}, 1),
	}
	f.starts++
	f.replicas = append(f.replicas, r)
	f.p.work.Add(1)
	go func() {
		defer f.p.work.Done()
		f.ended(r, f.live(r))
	}()
}

// drain takes a replica out of the routing, for good. The mutex is held.
func (f *function) drain(r *replica) {
	r.state = draining
	close(r.drain)
	if r.inflight == 0 {
		close(r.idle)
	}
}

func (f *function) becomeReady(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.state != starting {
		return
	}
	if r.readyAt.IsZero() {
		r.readyAt = time.Now()
		f.p.log.Info("replica ready", "replica", r.id, "took", time.Since(r.begun).Round(time.Millisecond))
	}
	r.state = ready
	f.probing = false
	f.notify()
	f.reconcile()
}

// suspect takes a replica that broke a connection out of the routing until it
// answers a probe: as a rule its process is just ending.
func (f *function) suspect(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.state != ready {
		return
	}
	r.state = starting
	select {
	case r.ask <- struct{}{}:
	default:
	}
}

func (f *function) becomeUnready(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.state == ready {
		f.p.log.Warn("replica not ready any more", "replica", r.id)
		r.state = starting
		f.notify()
	}
}

// ended removes a replica whose process is gone, or never was. A replica that
// ended by itself is replaced, after a pause if that keeps happening.
func (f *function) ended(r *replica, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, other := range f.replicas {
		if other == r {
			f.replicas = append(f.replicas[:i:i], f.replicas[i+1:]...)
			break
		}
	}
	if err == nil || r.state == draining || f.closed {
		f.p.log.Info("replica ended", "replica", r.id)
	} else {
		if r.gen == f.gen {
			f.failed(r)
		}
		f.p.log.Warn("replica lost", "replica", r.id, "cause", err, "failures", f.failures)
	}
	r.state = draining // whoever still holds it sees that it is gone
	f.notify()
	f.reconcile()
	f.tidy()
}

// scale sets the wanted number of replicas, or as many as are allowed, and
// returns it: whoever scales reads back what became of it. The label
// com.openfaas.scale.max binds them. com.openfaas.scale.min does not: it is the
// number a function begins with, also from zero, and who asks for fewer by name
// gets fewer, down to none.
func (f *function) scale(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return n // to nobody
	}
	f.desired = f.p.bound(f.spec, n)
	f.reconcile()
	return f.desired
}

// update takes a new spec. Only what a process is started with needs new
// processes.
func (f *function) update(s *spec) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.spec.same(s) {
		f.gen++
		f.failures, f.probing = 0, false
		f.pauseOver()
	}
	f.spec = s
	if f.desired > 0 {
		f.desired = f.p.bound(s, max(f.desired, s.min))
	}
	f.notify()
	f.reconcile()
}

// close ends all replicas; none is started any more.
func (f *function) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.pauseOver()
	f.notify()
	f.reconcile()
	f.tidy()
}

// tidy drops the log of a function that was deleted, once its last replica has
// ended. The mutex is held.
func (f *function) tidy() {
	if f.closed && len(f.replicas) == 0 && f.p.ctx.Err() == nil {
		f.p.dropLog(f.name)
	}
}
