package dispatch

import (
	"time"

	"farmhand/skeleton/ledger"
)

// retryRenew is how soon a renewal is tried again that the store did not take.
const retryRenew = time.Second

// renew keeps the leases of this process, on a timer of its own: neither a busy
// handler nor a slow settle loop can make a lease lapse (P44, P45, P50). While
// the store is away calls go on; what lapses meanwhile is refused later.
func (r *runner) renew() {
	timer := time.NewTimer(r.cfg.RenewEvery)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-timer.C:
		}
		next := r.cfg.RenewEvery
		if err := r.renewAll(); err != nil && r.ctx.Err() == nil {
			next = min(next, retryRenew)
			r.cfg.Log.Warn("cannot renew leases", "farm", r.name, "error", err)
		}
		timer.Reset(next)
	}
}

func (r *runner) renewAll() error {
	r.mu.Lock()
	all := make([]*attempt, len(r.held))
	leases := make([]ledger.Lease, len(r.held))
	for i, a := range r.held {
		all[i], leases[i] = a, a.renewal()
	}
	r.mu.Unlock()
	for len(all) > 0 {
		n := min(len(all), ledger.MaxBatch)
		standings, err := r.ledger.Renew(r.ctx, leases[:n])
		if err != nil {
			return err
		}
		r.mu.Lock()
		for i, s := range standings {
			if all[i].index >= 0 {
				r.stand(all[i], s)
			}
		}
		r.mu.Unlock()
		all, leases = all[n:], leases[n:]
	}
	return nil
}

// renewal is the lease as the renew loop sends it: with the time the attempt may
// take in all, or without a limit while no worker has the task.
func (a *attempt) renewal() ledger.Lease {
	l := *a.lease
	l.Body, l.Timeout = nil, 0
	if a.state == running {
		l.Timeout = time.Duration(a.started.Load()) + a.limit + 2*overrun
	}
	return l
}

func (r *runner) stand(a *attempt, s ledger.Standing) {
	switch s {
	case ledger.WasLost:
		r.cut(a, errLost)
	case ledger.WasCancel:
		r.cut(a, errCancelled)
	case ledger.HasTimeout:
		r.cut(a, errOvertime)
	}
}
