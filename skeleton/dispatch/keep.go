package dispatch

import "time"

const (
	beatEvery  = time.Second
	sweepEvery = 5 * time.Second // with jitter, so that dispatchers take turns
)

// beat says once a second that this dispatcher is alive, until it drains: no
// heartbeat means that nothing is known of the farm. A store that is away is
// left to the next beat.
func (r *runner) beat() {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		_ = r.ledger.Beat(r.ctx, r.cfg.Owner)
		select {
		case <-r.drained:
			return
		case <-ticker.C:
		}
	}
}

// sweep ends what no other dispatcher ends: lapsed leases, delays, silent
// stages, expired jobs.
func (r *runner) sweep() {
	timer := time.NewTimer(time.Duration(r.cfg.Uniform() * float64(sweepEvery)))
	defer timer.Stop()
	retry := backoff{uniform: r.cfg.Uniform}
	for {
		select {
		case <-r.drained:
			return
		case <-timer.C:
		}
		more, err := r.ledger.Sweep(r.ctx)
		if err != nil && r.ctx.Err() == nil {
			retry.complain(r.cfg.Log, "cannot sweep", err, "farm", r.name)
			retry.n++
		} else {
			retry.reset()
		}
		next := time.Duration((0.5 + r.cfg.Uniform()) * float64(sweepEvery))
		if more && err == nil {
			next = minNap // a bounded amount per call, but not all at once
		}
		timer.Reset(next)
	}
}
