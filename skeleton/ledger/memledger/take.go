package memledger

import (
	"context"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Take implements ledger.Dispatch.
func (f *farm) Take(ctx context.Context, _ string, max int) (t ledger.Taken, err error) {
	err = f.do(ctx, func(now int64) error { t = f.take(now, max, false); return nil })
	return t, err
}

// TakeAny implements ledger.Dispatch.
func (f *farm) TakeAny(ctx context.Context, _ string, max int) (t ledger.Taken, err error) {
	err = f.do(ctx, func(now int64) error { t = f.take(now, max, true); return nil })
	return t, err
}

func (f *farm) take(now int64, max int, anyway bool) ledger.Taken {
	f.lapse(now)
	f.resume(now)
	out := ledger.Taken{Window: f.win.size(now)}
	n := min(max, ledger.MaxBatch)
	if !anyway {
		n = min(n, out.Window-f.live)
		if f.keptBytes >= f.store.limits.KeptBytes {
			n, out.Blocked = 0, reasonBlocked
		}
	}
	if n = min(n, f.queue.Len()); n > 0 {
		out.Leases = f.hand(now, n)
	}
	out.Live, out.Waiting = f.live, f.n.Waiting
	if out.Waiting == 0 {
		out.Blocked = ""
	}
	out.Next = f.nextEnd(now)
	return out
}

// hand leases n of the waiting tasks in the order of service.
func (f *farm) hand(now int64, n int) []ledger.Lease {
	leases := make([]ledger.Lease, n)
	refs := make([]byte, 0, n*refLen)
	end, taken := now+ledger.LeaseTime.Microseconds(), instant(now)
	f.leases.trim(f.live)
	for k := 0; k < n; {
		e, ok := f.queue.Take(now, n-k)
		if !ok {
			panic("memledger: fewer tasks wait than were counted")
		}
		r := e.Value
		accepted, due := instant(r.accepted), instant(r.due)
		for i := e.Index - r.first; i < e.Index-r.first+e.N; i++ {
			t := &r.tasks[i]
			if t.state == inRun {
				r.next = i + 1
			}
			f.fence++
			t.state, t.fence, t.at, t.taken, t.slot = leased, f.fence, end, now, 0
			f.leases.add(end, t)
			refs = appendRef(refs, r.seq, t.index)
			l := &leases[k]
			l.Fence, l.Taken, l.Accepted, l.Due = t.fence, taken, accepted, due
			f.describe(t, &l.Task)
			k++
		}
		if r.next == len(r.tasks) {
			r.entry = 0
		}
		r.job.live += e.N
	}
	text := string(refs)
	for i := range leases {
		leases[i].Ref = text[i*refLen : (i+1)*refLen]
	}
	f.live += n
	f.n.Waiting -= n
	f.n.Leased += n
	return leases
}

// describe fills in what a dispatcher has to know of a task.
func (f *farm) describe(t *task, out *skeleton.Task) {
	s, m := &t.run.shape, t.meta
	out.Body, out.Size = t.body, len(t.body)
	out.Type, out.Key, out.Stage, out.Parent, out.Timeout = m.typ, m.key, m.stage, m.parent, m.timeout
	out.Class, out.Tenant, out.Attempts, out.NoRetry = s.class, s.tenant, s.attempts, s.noRetry
	out.Farm, out.Job, out.Index = f.name, t.run.job.ID, int(t.index)
	out.Attempt, out.Lost = 1+int(t.failures), int(t.lost)
}

// nextEnd is the time until the next delay or lease is over; never 0, which
// means that there is none.
func (f *farm) nextEnd(now int64) (next time.Duration) {
	f.leases.trim(f.live)
	if l := &f.leases; l.start < len(l.list) {
		next = span(max(1, l.list[l.start].at-now))
	}
	if m, ok := f.nextDelay(); ok {
		if d := span(max(1, m.at-now)); next == 0 || d < next {
			next = d
		}
	}
	return next
}

// Body implements ledger.Dispatch: Take delivers all bodies.
func (f *farm) Body(ctx context.Context, l ledger.Lease) ([]byte, error) {
	return l.Task.Body, ctx.Err()
}

// Renew implements ledger.Dispatch.
func (f *farm) Renew(ctx context.Context, list []ledger.Lease) ([]ledger.Standing, error) {
	out := make([]ledger.Standing, len(list))
	err := f.do(ctx, func(now int64) error {
		f.leases.trim(f.live)
		for i := range list {
			out[i] = f.renew(now, &list[i])
		}
		return nil
	})
	return out, err
}

func (f *farm) renew(now int64, l *ledger.Lease) ledger.Standing {
	t := f.find(l.Ref)
	if t == nil || t.fence != l.Fence || (t.state != leased && t.state != ghost) {
		return ledger.WasLost
	}
	if end := now + ledger.LeaseTime.Microseconds(); end != t.at {
		t.at = end
		f.leases.add(end, t)
	}
	switch {
	case t.state == ghost:
		return ledger.WasCancel
	case l.Timeout > 0 && now-t.taken > l.Timeout.Microseconds():
		return ledger.HasTimeout
	}
	return ledger.Held
}

// Watch implements ledger.Dispatch.
func (f *farm) Watch(ctx context.Context, fn func(ledger.Event)) error {
	return f.hub.watch(ctx, "", fn)
}

// Beat implements ledger.Dispatch.
func (f *farm) Beat(ctx context.Context, owner string) error {
	return f.do(ctx, func(now int64) error { f.beats[owner] = now; return nil })
}
