package dispatch

import (
	"context"
	"sync"
	"time"

	"farmhand/skeleton/ledger"
)

// Notifier tells a job's client that the job has ended.
type Notifier interface {
	// Notify delivers the callback. again is when to try next after an error; 0
	// gives up.
	Notify(ctx context.Context, due ledger.CallbackDue) (again time.Duration, err error)
}

const (
	notifyEvery = time.Second
	maxNotices  = 8                // callbacks of a farm in delivery at once
	noticeTime  = 30 * time.Second // for one delivery, less than a claim lasts
)

// notify delivers the callbacks that are owed. Each is claimed in the ledger
// first: a dispatcher that dies leaves it to another, so a callback is made at
// least once.
func (r *runner) notify() {
	if r.cfg.Notifier == nil {
		return
	}
	var notices sync.WaitGroup
	defer notices.Wait()
	retry := backoff{uniform: r.cfg.Uniform}
	slots := make(chan struct{}, maxNotices)
	ticker := time.NewTicker(notifyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-r.drained:
			return
		case <-ticker.C:
		}
		free := cap(slots) - len(slots)
		if free == 0 {
			continue
		}
		due, err := r.ledger.Callbacks(r.ctx, free)
		if err != nil {
			if r.ctx.Err() == nil {
				retry.complain(r.cfg.Log, "cannot claim callbacks", err, "farm", r.name)
				retry.n++
			}
			continue // the next tick tries again
		}
		retry.reset()
		for _, d := range due {
			slots <- struct{}{}
			notices.Go(func() {
				defer func() { <-slots }()
				r.deliver(d)
			})
		}
	}
}

func (r *runner) deliver(d ledger.CallbackDue) {
	ctx, cancel := context.WithTimeout(r.ctx, noticeTime)
	defer cancel()
	again, err := r.cfg.Notifier.Notify(ctx, d)
	if r.ctx.Err() != nil {
		return // the claim runs out and another dispatcher delivers
	}
	if err != nil {
		r.cfg.Log.Warn("callback failed", "job", d.Job.ID, "try", d.Try, "again", again, "error", err)
	}
	if err := r.ledger.CallbackDone(r.ctx, d.Job.ID, again); err != nil && r.ctx.Err() == nil {
		r.cfg.Log.Warn("the end of a callback was not noted: it comes again", "job", d.Job.ID, "error", err)
	}
}
