package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Why an attempt's calls are cut off.
var (
	errCancelled = errors.New("the job was cancelled")
	errLost      = errors.New("the lease was lost")
	errTimeout   = errors.New("the attempt is over its time")
)

// Reasons of dead letters that no worker gave.
const (
	reasonDeleted  = "worker deleted"
	reasonCapacity = "no capacity"
	reasonStopped  = "the dispatcher was stopped"
)

// overrun is how much longer than the attempt's timeout the dispatcher waits
// for an answer: the worker and the gateway end it first, if they can.
const overrun = 5 * time.Second

// attempt runs one leased task.
type attempt struct {
	r      *runner
	lease  ledger.Lease
	taken  time.Time // by our clock
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	started time.Time     // guarded by mu; last hand-over
	waited  time.Duration // guarded by mu; lease taken → hand-over
	busy    bool          // guarded by mu
}

func newAttempt(r *runner, l ledger.Lease) *attempt {
	a := &attempt{r: r, lease: l, taken: time.Now()}
	a.ctx, a.cancel = context.WithCancelCause(r.calls)
	return a
}

func (a *attempt) progress() (started time.Time, busy bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.started, a.busy
}

// renewal is the lease as the renew loop sends it: with the time the attempt
// may take in all, or without a limit while no worker has the task.
func (a *attempt) renewal() ledger.Lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.lease
	l.Body = nil
	l.Timeout = 0
	if !a.busy && !a.started.IsZero() {
		l.Timeout = a.waited + a.r.timeout(a.lease.Task) + 2*overrun
	}
	return l
}

// run returns the outcome, or false if the lease was lost.
func (a *attempt) run() (ledger.Outcome, bool) {
	defer a.cancel(nil)
	o := ledger.Outcome{Lease: a.lease}
	body, err := a.body()
	if err != nil {
		o.Kind, o.Reason = ledger.Released, err.Error()
		return o, !errors.Is(context.Cause(a.ctx), errLost)
	}
	timeout := a.r.timeout(a.lease.Task)
	for {
		if a.r.deleted() {
			o.Kind, o.Reason = ledger.Rejected, reasonDeleted
			return o, true
		}
		call := a.call(body, timeout, &o)
		if done, keep := a.cutOff(&o); done {
			return o, keep
		}
		meaning, reason, wait := skeleton.Classify(call)
		if meaning == skeleton.IsBusy {
			if over := a.offerAgain(&o); over {
				return o, !errors.Is(context.Cause(a.ctx), errLost)
			}
			continue
		}
		a.conclude(&o, call, meaning, reason, wait)
		return o, true
	}
}

// body fetches a body that Take did not deliver. A store that is away is waited
// for; the lease tells when that is pointless.
func (a *attempt) body() ([]byte, error) {
	if a.lease.Locator == "" {
		return a.lease.Body, nil
	}
	retry := newBackoff(a.r.cfg.Uniform)
	for {
		body, err := a.r.ledger.Body(a.ctx, a.lease)
		if err == nil || !errors.Is(err, ledger.ErrUnavailable) {
			return body, err
		}
		if !retry.wait(a.ctx) {
			return nil, err
		}
	}
}

// call makes one call and notes its times.
func (a *attempt) call(body []byte, timeout time.Duration, o *ledger.Outcome) skeleton.Call {
	started := time.Now()
	a.mu.Lock()
	a.started, a.waited, a.busy = started, started.Sub(a.taken), false
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(a.ctx, timeout+overrun)
	defer cancel()
	call := a.r.cfg.Caller.Call(ctx, a.lease.Task, body, timeout)
	call.Elapsed, call.Timeout = time.Since(started), timeout
	if call.Failure != skeleton.NoFailure && a.ctx.Err() == nil && ctx.Err() != nil {
		call.Failure = skeleton.Overtime
	}
	o.Started, o.Waited, o.Service = started, started.Sub(a.taken), call.Elapsed
	return call
}

// cutOff says what an attempt comes to whose calls were ended from outside.
func (a *attempt) cutOff(o *ledger.Outcome) (done, keep bool) {
	if a.ctx.Err() == nil {
		return false, false
	}
	switch cause := context.Cause(a.ctx); {
	case errors.Is(cause, errLost):
		return true, false
	case errors.Is(cause, errCancelled):
		o.Kind, o.Reason = ledger.Released, cause.Error() // the ledger knows better: it is cancelled
	case errors.Is(cause, errTimeout):
		o.Kind, o.Reason = ledger.TimedOut, cause.Error()
		o.Delay = skeleton.Backoff(a.lease.Attempt, a.r.cfg.Uniform)
	default:
		// We are being stopped while the worker may still run: as if it was lost.
		o.Kind, o.Reason = ledger.Lost, reasonStopped
	}
	return true, true
}

// offerAgain waits for the task's next turn at busy workers. It reports whether
// the attempt is over instead.
func (a *attempt) offerAgain(o *ledger.Outcome) (over bool) {
	a.mu.Lock()
	a.busy = true
	a.mu.Unlock()
	a.r.busy.Add(1)
	poke(a.r.busyWake)
	if time.Since(a.taken) > a.r.cfg.TimeToLive {
		o.Kind, o.Reason = ledger.Rejected, reasonCapacity
		return true
	}
	if a.r.taking.Err() != nil {
		o.Kind, o.Reason = ledger.Released, reasonStopped
		return true
	}
	if a.r.room.wait(a) == giveBack {
		o.Kind, o.Reason = ledger.Released, "the window shrank"
		return true
	}
	if a.ctx.Err() != nil {
		a.cutOff(o)
		if o.Kind == ledger.Lost {
			o.Kind = ledger.Released // no worker had it
		}
		return true
	}
	return false
}

// conclude turns the meaning of an answer into an outcome.
func (a *attempt) conclude(o *ledger.Outcome, call skeleton.Call, m skeleton.Meaning, reason string, wait time.Duration) {
	o.Status, o.Type, o.Body, o.Reason = call.Status, call.Type, call.Body, reason
	uniform := a.r.cfg.Uniform
	switch m {
	case skeleton.IsResult:
		o.Kind = ledger.Success
	case skeleton.IsLost:
		o.Kind = ledger.Lost
		o.Delay = skeleton.Backoff(a.lease.Lost+1, uniform) // a task that kills workers must not hammer
	case skeleton.IsTimedOut:
		o.Kind = ledger.TimedOut
		o.Delay = skeleton.Backoff(a.lease.Attempt, uniform)
	case skeleton.IsFailed:
		o.Kind = ledger.Failed
		o.Delay = max(wait, skeleton.Backoff(a.lease.Attempt, uniform))
	default:
		o.Kind = ledger.Rejected
		if len(call.Body) > 0 && call.Failure == skeleton.NoFailure {
			o.Reason = reason + ": " + clip(call.Body)
		}
	}
}

// maxReason is how much of a worker's answer becomes the reason of a dead letter.
const maxReason = 1 << 10

func clip(b []byte) string {
	if len(b) > maxReason {
		return string(b[:maxReason]) + "…"
	}
	return string(b)
}
