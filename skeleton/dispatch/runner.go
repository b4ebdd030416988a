package dispatch

import (
	"context"
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
	room   waitingRoom

	ctx      context.Context // ends everything
	end      context.CancelFunc
	taking   context.Context // ends taking
	endTake  context.CancelFunc
	calls    context.Context // ends running calls
	endCalls context.CancelFunc
	loops    sync.WaitGroup // all but the attempts and the settle loop
	attempts sync.WaitGroup
	settled  chan struct{} // closed when the settle loop has ended

	wake     chan struct{} // something may be taken
	busyWake chan struct{} // busy answers to report
	outcomes chan outcome
	busy     atomic.Int64 // busy answers not reported yet
	starting sync.RWMutex // held for reading from a take until its tasks were started

	mu   sync.Mutex
	farm skeleton.Farm       // guarded by mu
	held map[string]*attempt // by ref; guarded by mu
}

// outcome is an ended attempt on its way to the ledger.
type outcome struct {
	ledger.Outcome
	a *attempt
}

func startRunner(cfg Config, f skeleton.Farm) *runner {
	r := &runner{
		cfg: cfg, name: f.Name, ledger: cfg.Store.Farm(f.Name), farm: f,
		settled: make(chan struct{}), wake: make(chan struct{}, 1), busyWake: make(chan struct{}, 1),
		outcomes: make(chan outcome, 2*ledger.MaxBatch), held: map[string]*attempt{},
	}
	r.room.uniform = cfg.Uniform
	r.ctx, r.end = context.WithCancel(context.Background())
	r.taking, r.endTake = context.WithCancel(r.ctx)
	r.calls, r.endCalls = context.WithCancel(r.ctx)
	r.loops.Go(func() {
		_ = r.ledger.Watch(r.ctx, r.event) // ends with the context
	})
	r.loops.Go(r.take)
	r.loops.Go(r.renew)
	r.loops.Go(r.keep)
	var settling sync.WaitGroup
	for range lanes {
		settling.Go(r.settle)
	}
	go func() { defer close(r.settled); settling.Wait() }()
	return r
}

// update takes over what the roster says of the farm now.
func (r *runner) update(f skeleton.Farm) {
	r.mu.Lock()
	r.farm = f
	gone := f.Missing >= r.cfg.Missing
	r.mu.Unlock()
	if gone {
		r.room.releaseAll() // they find the worker deleted
	}
	poke(r.wake)
}

func (r *runner) deleted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.farm.Missing >= r.cfg.Missing
}

// timeout of an attempt at a task: its own, at most the farm's.
func (r *runner) timeout(t skeleton.Task) time.Duration {
	r.mu.Lock()
	limit := r.farm.Settings.Timeout
	r.mu.Unlock()
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
			a.cancel(errCancelled)
		}
	}
}

func (r *runner) drain() { r.endTake() }

// stop returns the number of leases that could not be ended.
func (r *runner) stop(ctx context.Context) int {
	r.drain()
	r.starting.Lock() // what was being taken has been started: it is waited for below
	r.starting.Unlock()
	r.room.releaseAll()
	finished := make(chan struct{})
	go func() { r.attempts.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
		r.endCalls()
		<-finished // callers return soon after their context has ended
	}
	r.end()
	r.loops.Wait() // nobody takes any more
	r.attempts.Wait()
	close(r.outcomes)
	<-r.settled
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held)
}

func (r *runner) hold(a *attempt) {
	r.mu.Lock()
	r.held[a.lease.Ref] = a
	r.mu.Unlock()
}

// drop forgets ended attempts.
func (r *runner) drop(ended []*attempt) {
	r.mu.Lock()
	for _, a := range ended {
		if r.held[a.lease.Ref] == a {
			delete(r.held, a.lease.Ref)
		}
	}
	r.mu.Unlock()
}

func (r *runner) free() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cfg.Running - len(r.held)
}

func (r *runner) running() []Running {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Running, 0, len(r.held))
	for _, a := range r.held {
		started, busy := a.progress()
		run := Running{Job: a.lease.Job, Index: a.lease.Index, Attempt: a.lease.Attempt, Busy: busy}
		if !started.IsZero() {
			run.For = time.Since(started)
		}
		list = append(list, run)
	}
	return list
}
