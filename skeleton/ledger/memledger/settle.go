package memledger

import (
	"context"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Settle implements ledger.Dispatch.
func (f *farm) Settle(ctx context.Context, outcomes []ledger.Outcome, busy int) (s ledger.Settled, err error) {
	err = f.do(ctx, func(now int64) error { s = f.settle(now, outcomes, busy); return nil })
	return s, err
}

// Exchange implements ledger.Dispatch.
func (f *farm) Exchange(ctx context.Context, _ string, outcomes []ledger.Outcome, busy, max int) (s ledger.Settled, t ledger.Taken, err error) {
	err = f.do(ctx, func(now int64) error {
		s = f.settle(now, outcomes, busy)
		f.settleBooks(now)
		t = f.take(now, max, false)
		return nil
	})
	return s, t, err
}

func (f *farm) settle(now int64, outcomes []ledger.Outcome, busy int) ledger.Settled {
	s := ledger.Settled{Verdicts: make([]ledger.Verdict, len(outcomes))}
	var bodies arena
	bytes := 0
	for i := range outcomes {
		if n := len(outcomes[i].Body); n <= ledger.MaxInline {
			bytes += n
		}
	}
	before := f.n.Waiting
	for i := range outcomes {
		o := &outcomes[i]
		t := f.find(o.Lease.Ref)
		if t == nil || t.fence != o.Lease.Fence || (t.state != leased && t.state != ghost) {
			f.refused++
			s.Verdicts[i] = ledger.Refused
			continue
		}
		f.release(t)
		switch {
		case t.state == ghost:
			t.state = dropped
		case o.Kind == ledger.Success:
			f.n.Leased--
			f.succeed(t, now, o, bodies.keep(o.Body, bytes))
		default:
			f.n.Leased--
			f.fail(t, now, o)
		}
		if len(o.Body) <= ledger.MaxInline {
			bytes -= len(o.Body)
		}
		s.Verdicts[i] = verdicts[t.state]
	}
	if f.n.Waiting > before {
		f.wakeUp()
	}
	if busy > 0 {
		f.win.refuse(now, busy, f.n.Done+f.n.Dead)
	}
	s.Window, s.Live, s.Waiting = f.win.size(now), f.live, f.n.Waiting
	return s
}

var verdicts = [...]ledger.Verdict{alone: ledger.Verdict(skeleton.Waiting), delayed: ledger.Verdict(skeleton.Delayed),
	done: ledger.Verdict(skeleton.Done), dead: ledger.Verdict(skeleton.Dead), dropped: ledger.Verdict(skeleton.Cancelled)}

// succeed accepts the result of a task whose lease has ended.
func (f *farm) succeed(t *task, now int64, o *ledger.Outcome, body []byte) {
	r := t.run
	j := r.job
	late := r.due > 0 && now > r.due
	t.state = done
	t.slot = int32(j.out.add(result{index: t.index, state: done, status: int32(o.Status), attempt: t.failures + 1, lost: t.lost, late: late,
		meta: t.meta, typ: o.Type, body: body, wait: t.taken - r.accepted + o.Waited.Microseconds(), service: o.Service.Microseconds(),
		sojourn: now - r.accepted, finished: now}))
	f.n.Done++
	f.shift(j, -len(t.body), len(body))
	t.body = nil
	j.Done++
	j.Position++
	if r.due > 0 {
		f.timed++
	}
	if late {
		f.late++
		j.Late++
	}
	f.touch(j)
}

// fail ends an attempt that brought no result.
func (f *farm) fail(t *task, now int64, o *ledger.Outcome) {
	delay := max(0, o.Delay.Microseconds())
	switch o.Kind {
	case ledger.Released:
		f.rest(t, now, 0)
		return
	case ledger.Lost:
		f.lose(t, now, delay)
		return
	case ledger.Failed, ledger.TimedOut:
		t.failures++
	}
	reason := o.Reason
	if reason == "" {
		reason = string(o.Kind)
	}
	unknown := o.Kind == ledger.TimedOut && t.run.shape.noRetry
	if unknown {
		reason = reasonUnknown
	}
	if o.Kind == ledger.Rejected || unknown || int(t.failures) >= t.run.shape.attempts {
		f.die(t, now, death{reason: reason, status: o.Status, answer: o.Body})
		return
	}
	f.rest(t, now, delay)
}
