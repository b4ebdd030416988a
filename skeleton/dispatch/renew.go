package dispatch

import (
	"time"

	"farmhand/skeleton/ledger"
)

// retryRenew is how soon a renewal is tried again that the store did not take.
const retryRenew = time.Second

// renew keeps the leases of running tasks, on a timer of its own: neither a
// busy handler nor a slow settle loop can make a lease lapse (P50).
func (r *runner) renew() {
	timer := time.NewTimer(ledger.RenewEvery)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-timer.C:
		}
		next := ledger.RenewEvery
		if err := r.renewAll(); err != nil {
			next = retryRenew
			if r.ctx.Err() == nil {
				r.cfg.Log.Warn("cannot renew leases", "farm", r.name, "error", err)
			}
		}
		timer.Reset(next)
	}
}

func (r *runner) renewAll() error {
	r.mu.Lock()
	all := make([]*attempt, 0, len(r.held))
	for _, a := range r.held {
		all = append(all, a)
	}
	r.mu.Unlock()
	for len(all) > 0 {
		n := min(len(all), ledger.MaxBatch)
		leases := make([]ledger.Lease, n)
		for i, a := range all[:n] {
			leases[i] = a.renewal()
		}
		standings, err := r.ledger.Renew(r.ctx, leases)
		if err != nil {
			return err
		}
		for i, s := range standings {
			switch s {
			case ledger.WasLost:
				all[i].cancel(errLost)
			case ledger.WasCancel:
				all[i].cancel(errCancelled)
			case ledger.HasTimeout:
				all[i].cancel(errTimeout)
			}
		}
		all = all[n:]
	}
	return nil
}
