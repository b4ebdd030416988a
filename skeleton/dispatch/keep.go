package dispatch

import (
	"context"
	"sync"
	"time"

	"farmhand/skeleton/ledger"
)

const (
	beatEvery  = time.Second
	sweepEvery = 5                // beats
	maxNotices = 8                // callbacks in delivery at once
	noticeTime = 15 * time.Second // for one delivery
)

// keep looks after the farm: a heartbeat every second, a sweep now and then,
// callbacks that are owed. A store that is away is left to the next beat.
func (r *runner) keep() {
	var notices sync.WaitGroup
	defer notices.Wait()
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	slots := make(chan struct{}, maxNotices)
	for beat := int(r.cfg.Uniform() * sweepEvery); ; beat++ {
		_ = r.ledger.Beat(r.ctx, r.cfg.Owner)
		if beat%sweepEvery == 0 {
			r.sweep()
		}
		if r.cfg.Notifier != nil {
			r.notify(&notices, slots)
		}
		select {
		case <-r.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *runner) sweep() {
	for {
		more, err := r.ledger.Sweep(r.ctx)
		if err != nil && r.ctx.Err() == nil {
			r.cfg.Log.Warn("cannot sweep", "farm", r.name, "error", err)
		}
		if !more || err != nil {
			return
		}
	}
}

// notify claims callbacks, as many as may be in delivery, and delivers them.
func (r *runner) notify(notices *sync.WaitGroup, slots chan struct{}) {
	free := cap(slots) - len(slots)
	if free == 0 {
		return
	}
	due, err := r.ledger.Callbacks(r.ctx, free)
	if err != nil {
		return // the next beat tries again
	}
	for _, d := range due {
		slots <- struct{}{}
		notices.Go(func() {
			defer func() { <-slots }()
			r.deliver(d)
		})
	}
}

func (r *runner) deliver(d ledger.CallbackDue) {
	ctx, cancel := context.WithTimeout(r.ctx, noticeTime)
	defer cancel()
	again, err := r.cfg.Notifier.Notify(ctx, d)
	if err != nil {
		r.cfg.Log.Warn("callback failed", "job", d.Job.ID, "try", d.Try, "again", again, "error", err)
	}
	if r.ctx.Err() != nil {
		return // the claim runs out and another dispatcher delivers
	}
	if err := r.ledger.CallbackDone(r.ctx, d.Job.ID, again); err != nil {
		r.cfg.Log.Warn("callback delivered, but not noted: it may come again", "job", d.Job.ID, "error", err)
	}
}
