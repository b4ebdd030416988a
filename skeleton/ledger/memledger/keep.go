package memledger

import (
	"context"
	"time"

	"farmhand/skeleton/ledger"
	"farmhand/skeleton/order"
)

const (
	sweepJobs = 100              // expired jobs forgotten in one sweep
	beatKept  = 60 * time.Second // how long a dispatcher that is gone is remembered
)

// Sweep implements ledger.Keeper.
func (f *farm) Sweep(ctx context.Context) (more bool, err error) {
	err = f.do(ctx, func(now int64) error {
		before := f.n.Waiting
		lapsed, resumed := f.lapse(now), f.resume(now)
		if f.n.Waiting > before {
			f.wakeUp()
		}
		more = lapsed >= ledger.MaxBatch || resumed >= ledger.MaxBatch
		f.settleBooks(now)
		for s := range f.stages {
			if now-s.seen >= f.store.limits.StageIdle.Microseconds() {
				s.leave()
				s.swept = true
			}
		}
		for n := 0; ; n++ {
			m, ok := f.expiry.first()
			if !ok || m.at > now {
				break
			}
			if n == sweepJobs {
				more = true
				break
			}
			f.expiry.pop()
			switch j := m.v; {
			case j.gone || j.expires != m.at: // redriven since
			case j.live > 0: // cancelled tasks that still run: a lease is never left without its task
				j.expires = now + ledger.LeaseTime.Microseconds()
				f.expiry.push(moment[*job]{at: j.expires, v: j})
			default:
				f.forget(j)
			}
		}
		for owner, at := range f.beats {
			if now-at >= beatKept.Microseconds() {
				delete(f.beats, owner)
			}
		}
		return nil
	})
	return more, err
}

// owe makes a job's callback due at an instant.
func (f *farm) owe(j *job, at int64) {
	j.owed = at
	f.owed.push(moment[*job]{at: at, v: j})
}

// Callbacks implements ledger.Keeper.
func (f *farm) Callbacks(ctx context.Context, limit int) (due []ledger.CallbackDue, err error) {
	err = f.do(ctx, func(now int64) error {
		for len(due) < limit {
			m, ok := f.owed.first()
			if !ok || m.at > now {
				break
			}
			f.owed.pop()
			j := m.v
			if j.gone || j.owed != m.at {
				continue
			}
			j.tries++
			f.owe(j, now+ledger.CallbackLease.Microseconds())
			due = append(due, ledger.CallbackDue{Job: j.Job, Try: j.tries})
		}
		return nil
	})
	return due, err
}

// CallbackDone implements ledger.Keeper.
func (f *farm) CallbackDone(ctx context.Context, id string, again time.Duration) error {
	if err := f.owns(id); err != nil {
		return err
	}
	return f.do(ctx, func(now int64) error {
		j := f.jobs[id]
		if j == nil || j.owed == 0 {
			return nil
		}
		if j.owed = 0; again > 0 {
			f.owe(j, now+again.Microseconds())
		}
		return nil
	})
}

// Gauges implements ledger.Keeper.
func (f *farm) Gauges(ctx context.Context) (g ledger.Gauges, err error) {
	err = f.do(ctx, func(now int64) error {
		g = ledger.Gauges{Counts: f.n, Live: f.live, Window: f.win.size(now), Factor: f.win.factor(now), QueueBytes: f.queueBytes,
			KeptBytes: f.keptBytes, Late: f.late, Timed: f.timed, Refused: f.refused, Lapsed: f.lapsed, Beats: map[string]time.Duration{}}
		if g.Waiting > 0 && g.KeptBytes >= f.store.limits.KeptBytes {
			g.Blocked = reasonBlocked
		}
		oldest := now
		f.queue.All(func(_ order.Handle, e order.Entry[*run]) bool {
			oldest = min(oldest, e.Accepted)
			if e.Due > 0 {
				if left := span(e.Due - now); !g.Dated || left < g.NextDue {
					g.Dated, g.NextDue = true, left
				}
			}
			if e.Due > 0 && e.Due < now {
				g.Overdue += e.N
			}
			return true
		})
		running, age := 0, int64(0)
		for _, m := range f.leases.list[f.leases.start:] {
			if t := m.v; t.state == leased && t.at == m.at {
				if t.at > now+ledger.Renewed.Microseconds() {
					running++
					age += now - t.taken
				}
				if t.run.due > 0 && t.run.due < now {
					g.RunningOverdue++
				}
			}
		}
		if running > 0 {
			g.RunningAge = span(age / int64(running))
		}
		g.OldestWait = span(now - oldest)
		for owner, at := range f.beats {
			g.Beats[owner] = span(now - at)
		}
		return nil
	})
	return g, err
}
