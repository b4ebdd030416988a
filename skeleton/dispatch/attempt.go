package dispatch

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Why an attempt's calls are cut off.
var (
	errCancelled = errors.New("the job was cancelled")
	errLost      = errors.New("the lease was lost")
	errOvertime  = errors.New("the attempt is over its time")
	errStopped   = errors.New("the dispatcher was stopped")
	errOver      = errors.New("the attempt has ended")
)

// Reasons of dead letters that no worker gave.
const (
	reasonDeleted  = "worker deleted"
	reasonCapacity = "no capacity"
)

// overrun is how much longer than the attempt's timeout the dispatcher waits
// for an answer: the worker and the gateway end it first, if they can.
const overrun = 5 * time.Second

// state is where an attempt is. fresh and running have a goroutine, parked and
// over have none.
type state int

const (
	fresh   state = iota // its body is being fetched, or it is about to be handed over
	running              // a worker has it
	parked               // it met a busy worker and waits for its next offer
	over                 // it waits to be settled
)

// attempt runs one leased task.
type attempt struct {
	r      *runner
	lease  *ledger.Lease
	ctx    context.Context
	cancel context.CancelCauseFunc
	body   []byte
	taken  time.Time // by our clock
	met    time.Time // the first busy answer; zero = none

	claimed int           // bytes of the budget; guarded by runner.mu
	index   int           // in runner.held, -1 = not there; guarded by runner.mu
	state   state         // guarded by runner.mu
	limit   time.Duration // of the call under way; guarded by runner.mu
	started atomic.Int64  // last hand-over, as time since taken

	end    ending // written by whoever makes the state over
	spoilt int    // how often the ledger could not take end; of whoever took it from the outbox
}

// ending is an outcome without its lease.
type ending struct {
	kind    ledger.Kind
	status  int
	typ     string
	body    []byte
	reason  string
	delay   time.Duration
	service time.Duration
}

func (a *attempt) outcome() ledger.Outcome {
	e := &a.end
	return ledger.Outcome{Lease: *a.lease, Kind: e.kind, Status: e.status, Type: e.typ, Body: e.body, Reason: e.reason, Delay: e.delay,
		Started: a.handed(), Service: e.service, Waited: time.Duration(a.started.Load())}
}

// handed is when the task was last handed to a worker. Both it and taken carry
// the monotonic clock: no difference of theirs is ever negative (P79).
func (a *attempt) handed() time.Time { return a.taken.Add(time.Duration(a.started.Load())) }

// run makes one call, after which the attempt is over or parked.
func (a *attempt) run() {
	r := a.r
	if a.body == nil {
		body, end, ok := a.fetch()
		if !ok {
			r.finish(a, end)
			return
		}
		a.body = body
		if first := r.letPass(a); first != a {
			first.run()
			return
		}
	}
	timeout, ok := r.begin(a)
	if !ok {
		return
	}
	call := r.cfg.Caller.Call(a.ctx, a.lease.Task, a.body, timeout)
	call.Timeout = timeout
	call.Elapsed = time.Since(a.taken) - time.Duration(a.started.Load())
	if call.Failure != skeleton.NoFailure && call.Failure != skeleton.Refused { // refused: no worker has it
		if cause := context.Cause(a.ctx); errors.Is(cause, errOvertime) {
			call.Failure = skeleton.Overtime
		} else if cause != nil {
			r.finish(a, cutOff(cause))
			return
		}
	}
	meaning, reason, wait := skeleton.Classify(call)
	r.cfg.Observer.Answered(r.name, meaning, call.Elapsed)
	if meaning == skeleton.IsBusy {
		r.metBusy(a, call.Failure != skeleton.NoFailure)
		return
	}
	r.finish(a, a.conclude(&call, meaning, reason, wait))
}

// fetch gets a body that Take did not deliver, when there is room for it. A store that is away is waited
// for; the lease tells when that is pointless.
func (a *attempt) fetch() ([]byte, ending, bool) {
	if a.lease.Locator == "" {
		return a.lease.Body, ending{}, true
	}
	if !a.r.claim(a) {
		cause := context.Cause(a.ctx)
		if cause == nil {
			cause = errStopped
		}
		return nil, ending{kind: ledger.Released, reason: cause.Error()}, false
	}
	retry := backoff{uniform: a.r.cfg.Uniform}
	for {
		body, err := a.r.ledger.Body(a.ctx, *a.lease)
		if err == nil {
			return body, ending{}, true
		}
		if cause := context.Cause(a.ctx); cause != nil {
			return nil, ending{kind: ledger.Released, reason: cause.Error()}, false
		}
		if !errors.Is(err, ledger.ErrUnavailable) {
			// Charged, or a body that cannot be read would come back for ever.
			return nil, ending{kind: ledger.Failed, reason: "the task's body cannot be read: " + err.Error(),
				delay: skeleton.Backoff(a.lease.Attempt, a.r.cfg.Uniform)}, false
		}
		retry.wait(a.ctx.Done())
	}
}

// cutOff says what an attempt comes to whose call was ended from outside before
// there was a full answer. At a stop the worker may still run it, and nobody will
// hear: lost. When the job was cancelled the ledger knows that it is, whatever we
// say; when the lease was lost see finish.
func cutOff(cause error) ending {
	e := ending{kind: ledger.Released, reason: cause.Error()}
	if errors.Is(cause, errStopped) {
		e.kind = ledger.Lost
	}
	return e
}

// conclude turns the meaning of an answer into what the ledger is told.
func (a *attempt) conclude(call *skeleton.Call, m skeleton.Meaning, reason string, wait time.Duration) ending {
	e := ending{status: call.Status, typ: call.Type, body: call.Body, reason: reason, service: call.Elapsed}
	uniform := a.r.cfg.Uniform
	switch m {
	case skeleton.IsResult:
		e.kind = ledger.Success
	case skeleton.IsLost:
		e.kind = ledger.Lost
		e.delay = skeleton.Backoff(a.lease.Lost+1, uniform) // a task that kills workers must not hammer (P53)
	case skeleton.IsTimedOut:
		e.kind, e.delay = ledger.TimedOut, skeleton.Backoff(a.lease.Attempt, uniform)
	case skeleton.IsFailed:
		e.kind, e.delay = ledger.Failed, wait
		if wait == 0 {
			e.delay = skeleton.Backoff(a.lease.Attempt, uniform)
		}
	default:
		e.kind = ledger.Rejected
		if call.Failure != skeleton.NoFailure {
			e.body = nil
		} else if text := clip(call.Body); text != "" {
			e.reason += ": " + text
		}
	}
	return e
}

// maxReason is how much of a worker's answer becomes the reason of a dead letter.
const maxReason = 1 << 10

func clip(b []byte) string {
	s := strings.TrimSpace(strings.ToValidUTF8(string(b[:min(len(b), maxReason)]), ""))
	if len(b) > maxReason {
		s += "…"
	}
	return s
}
