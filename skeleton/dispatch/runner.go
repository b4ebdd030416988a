package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// runner dispatches one farm.
type runner struct {
	cfg    Config
	name   string
	ledger ledger.Ledger
	farm   atomic.Pointer[skeleton.Farm]

	ctx   context.Context // ends everything
	end   context.CancelFunc
	loops sync.WaitGroup

	drained chan struct{} // closed: take no more
	wake    chan struct{} // something may be taken
	ended   chan struct{} // something may be settled
	called  chan struct{} // a lane's pause is over
	empty   chan struct{} // nothing is held any more
	stopped chan struct{} // closed: a stop has ended
	once    sync.Once     // closes stopped
	alarm   alarm
	waiting atomic.Int64 // tasks in the queue when the ledger last told

	mu       sync.Mutex
	draining bool       // guarded by mu
	held     []*attempt // guarded by mu; every lease of this process, in no order
	asked    int        // guarded by mu; leases the ledger was asked for and has not answered
	pace     pace       // guarded by mu
	denied   bool       // guarded by mu; there was no room to ask, which may have missed a wake
	over     int        // guarded by mu; held ones that are over
	outbox   []*attempt // guarded by mu; held ones that wait to be settled
	park     park       // guarded by mu; held ones that met busy workers
	busy     int        // guarded by mu; busy answers not reported yet
	watching bool       // guarded by mu; the overtime watch is set
	memory   memory     // guarded by mu
	budget   budget     // guarded by mu
}

func startRunner(cfg Config, f skeleton.Farm) *runner {
	r := &runner{cfg: cfg, name: f.Name, ledger: cfg.Store.Farm(f.Name), drained: make(chan struct{}),
		wake: make(chan struct{}, 1), ended: make(chan struct{}, 1), called: make(chan struct{}, 1), empty: make(chan struct{}, 1), stopped: make(chan struct{})}
	r.farm.Store(&f)
	r.ctx, r.end = context.WithCancel(context.Background())
	r.loops.Go(func() {
		persist(r.ctx, cfg, "cannot watch the farm", func() error { return r.ledger.Watch(r.ctx, r.event) })
	})
	for range lanes {
		r.loops.Go(r.settle)
	}
	for _, role := range []func(){r.take, r.renew, r.beat, r.sweep, r.notify} {
		r.loops.Go(role)
	}
	poke(r.wake)
	return r
}

// update takes over what the roster says of the farm now.
func (r *runner) update(f skeleton.Farm) {
	r.farm.Store(&f)
	if r.deleted() {
		r.clearPark(ledger.Rejected, reasonDeleted)
	}
	poke(r.wake)
}

// deleted reports whether the platform's lists have lacked the worker for so
// long that its tasks are dead letters (P54).
func (r *runner) deleted() bool { return r.farm.Load().Missing >= r.cfg.Missing }

// timeout of an attempt at a task: its own, at most the farm's.
func (r *runner) timeout(t *skeleton.Task) time.Duration {
	limit := r.farm.Load().Settings.Timeout
	if limit <= 0 {
		limit = skeleton.DefaultTimeout
	}
	if t.Timeout > 0 && t.Timeout < limit {
		return t.Timeout
	}
	return limit
}

// event is called by the ledger; it must not block.
func (r *runner) event(e ledger.Event) {
	if e.Kind != ledger.Cancel {
		poke(r.wake)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.held {
		if a.lease.Job == e.Job {
			r.cut(a, errCancelled)
		}
	}
}

// begin notes that an attempt is handed to a worker, and returns its timeout. If
// it was cut off or may not start any more, the attempt is over instead.
func (r *runner) begin(a *attempt) (time.Duration, bool) {
	deleted, timeout := r.deleted(), r.timeout(&a.lease.Task)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case a.ctx.Err() != nil:
		r.endLocked(a, ending{kind: ledger.Released, reason: context.Cause(a.ctx).Error()})
	case r.draining:
		r.close(a, ending{kind: ledger.Released, reason: errStopped.Error()})
	case deleted:
		r.close(a, ending{kind: ledger.Rejected, reason: reasonDeleted})
	default:
		a.state, a.limit = running, timeout
		a.started.Store(max(1, int64(time.Since(a.taken))))
		return timeout, true
	}
	return 0, false
}

// finish makes an attempt over.
func (r *runner) finish(a *attempt, e ending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked(a, e)
}

// endLocked is finish under mu. Where the lease was lost before there was a full
// answer, nothing is left to say; with one it is sent, to be refused and counted.
func (r *runner) endLocked(a *attempt, e ending) {
	if e.kind == ledger.Released && errors.Is(context.Cause(a.ctx), errLost) {
		r.leave(a)
		r.drop(a)
		poke(r.wake)
		return
	}
	r.close(a, e)
}

// leave takes an attempt out of whatever it waits in, under mu.
func (r *runner) leave(a *attempt) {
	if a.state == parked {
		r.park.waiting.remove(a)
	}
	if a.state != over {
		a.state = over
		r.over++
		r.free(a)
	}
}

// close puts an attempt into the outbox, under mu.
func (r *runner) close(a *attempt, e ending) {
	r.leave(a)
	if e.status != 0 {
		r.park.refused = 0
	}
	a.end = e
	a.cancel(errOver)
	r.outbox = append(r.outbox, a)
	poke(r.ended)
}

// cut ends an attempt from outside, under mu: a running one by its context.
func (r *runner) cut(a *attempt, cause error) {
	switch a.state {
	case over:
	case parked:
		a.cancel(cause)
		r.endLocked(a, ending{kind: ledger.Released, reason: cause.Error()})
	default:
		a.cancel(cause)
	}
}

// drop forgets attempts.
func (r *runner) drop(as ...*attempt) {
	for _, a := range as {
		last := len(r.held) - 1
		r.held[a.index] = r.held[last]
		r.held[a.index].index = a.index
		r.held[last] = nil
		r.over--
		r.held = r.held[:last]
		a.index = -1
		a.end = ending{} // others of the same Take keep the attempt in memory
	}
	r.freed()
}

// freed tells those who wait for room, under mu.
func (r *runner) freed() {
	if r.denied {
		r.denied = false
		poke(r.wake)
	}
	if len(r.held) == 0 && r.asked == 0 {
		poke(r.empty)
	}
}

// ask reserves room for leases: as many as this process may still hold, when
// leaving ones are gone, and none when it drains. The caller gives it back with
// answered, after what came was started: so a stop knows of every lease.
func (r *runner) ask(leaving int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(ledger.MaxBatch, r.cfg.Running-len(r.held)-r.asked+leaving)
	if r.draining || n <= 0 {
		r.denied = true
		return 0
	}
	r.asked += n
	return n
}

func (r *runner) answered(n int) {
	r.mu.Lock()
	r.asked -= n
	r.freed()
	r.mu.Unlock()
}

// overtimeEvery is how often running calls are compared with their timeouts:
// one scan instead of a timer per task.
const overtimeEvery = 100 * time.Millisecond

// watchOvertime ends calls that last longer than they may (P49).
func (r *runner) watchOvertime() {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.held {
		if a.state == running && now.Sub(a.handed()) >= a.limit+overrun {
			r.cut(a, errOvertime)
		}
	}
	if r.watching = len(r.held) > 0 && r.ctx.Err() == nil; r.watching {
		time.AfterFunc(overtimeEvery, r.watchOvertime)
	}
}

func (r *runner) running() []Running {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	held := slices.SortedFunc(slices.Values(r.held), older)
	list := make([]Running, len(held))
	for i, a := range held {
		list[i] = Running{Job: a.lease.Job, Index: a.lease.Index, Attempt: a.lease.Attempt, Busy: a.state == parked}
		if a.state == running {
			list[i].For = max(0, now.Sub(a.handed()))
		}
	}
	return list
}
