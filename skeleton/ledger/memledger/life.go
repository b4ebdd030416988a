package memledger

import (
	"bytes"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/order"
)

// What can become of a task that is not waiting any more.

// Reasons of dead letters that no outcome gave.
const (
	reasonLost    = "worker lost"
	reasonUnknown = "unknown outcome"
	reasonBlocked = "results not collected"
)

// maxAnswer is how much of a failed attempt's last answer is kept.
const maxAnswer = 1 << 10

// rest lets a task wait: at its old place, or first for a delay.
func (f *farm) rest(t *task, now, delay int64) {
	if delay > 0 {
		t.state, t.at = delayed, now+delay
		f.n.Delayed++
		f.delays.push(moment[*task]{at: t.at, seq: t.run.seq, index: t.index, v: t})
		return
	}
	t.state = alone
	t.slot = int32(f.push(t.run, int(t.index), 1))
	f.n.Waiting++
}

// push makes n tasks of a run wait.
func (f *farm) push(r *run, index, n int) order.Handle {
	return f.queue.Push(order.Entry[*run]{Class: r.shape.class, Tenant: r.shape.tenant, Due: r.due, Accepted: r.accepted,
		Seq: r.seq, Index: index, N: n, Value: r})
}

// lose charges the lost budget of a task whose lease is gone.
func (f *farm) lose(t *task, now, delay int64) {
	t.lost++
	switch {
	case t.run.shape.noRetry:
		f.die(t, now, death{reason: reasonUnknown})
	case int(t.lost) > skeleton.LostBudget:
		f.die(t, now, death{reason: reasonLost})
	default:
		f.rest(t, now, delay)
	}
}

// death says why a task is given up.
type death struct {
	reason string
	status int
	answer []byte
}

// die makes a dead letter of a task. Its body is kept, so that it can be
// redriven, and counts as kept from now on.
func (f *farm) die(t *task, now int64, d death) {
	j := t.run.job
	t.state, t.at = dead, now
	late := t.run.due > 0 // without a due nothing is late
	l := &letter{task: t, seq: t.run.seq, index: t.index, died: now, job: j.ID, reason: d.reason, status: d.status,
		attempts: int(t.failures), lost: int(t.lost), answer: clip(d.answer)}
	f.dead.add(l)
	t.slot = int32(j.out.add(result{index: t.index, state: dead, status: int32(d.status), attempt: t.failures, lost: t.lost,
		late: late, meta: t.meta, letter: l, sojourn: now - t.run.accepted, finished: now}))
	f.n.Dead++
	f.shift(j, -len(t.body), len(t.body))
	j.Dead++
	if late {
		f.timed++
		f.late++
		j.Late++
	}
	j.Position++
	f.touch(j)
}

// shift moves bytes from the queue to what is kept for the client.
func (f *farm) shift(j *job, queue, kept int) {
	f.queueBytes += queue
	j.BodyBytes += queue
	f.keptBytes += kept
	j.KeptBytes += kept
}

// discard makes a task cancelled that held no lease.
func (f *farm) discard(t *task) {
	t.state = dropped
	f.forfeit(t)
}

// forfeit books a task as cancelled and frees its body.
func (f *farm) forfeit(t *task) {
	j := t.run.job
	f.n.Cancelled++
	j.Cancelled++
	f.shift(j, -len(t.body), 0)
	t.body = nil
	f.touch(j)
}

// release ends the lease of a task.
func (f *farm) release(t *task) {
	f.live--
	t.run.job.live--
}

// lapse ends leases that are over and reports how many.
func (f *farm) lapse(now int64) int {
	ended := f.leases.over(now, ledger.MaxBatch)
	for _, t := range ended {
		f.release(t)
		if t.state == ghost {
			t.state = dropped
			continue
		}
		f.n.Leased--
		f.lapsed++
		f.lose(t, now, 0)
	}
	return len(ended)
}

// resume ends delays that are over and reports how many.
func (f *farm) resume(now int64) int {
	n := 0
	for n < ledger.MaxBatch {
		m, ok := f.nextDelay()
		if !ok || m.at > now {
			break
		}
		f.delays.pop()
		f.n.Delayed--
		f.rest(m.v, now, 0)
		n++
	}
	return n
}

// nextDelay returns the delay that ends first.
func (f *farm) nextDelay() (moment[*task], bool) {
	for {
		m, ok := f.delays.first()
		if !ok || (m.v.state == delayed && m.v.at == m.at) {
			return m, ok
		}
		f.delays.pop()
	}
}

// clip shortens an answer that is kept only to be read by people.
func clip(b []byte) string {
	if len(b) > maxAnswer {
		b = b[:maxAnswer]
	}
	return string(bytes.ToValidUTF8(b, []byte("�")))
}

// arena copies small byte slices into blocks, one allocation for many.
type arena struct{ block []byte }

const arenaBlock = 64 << 10

// keep returns a copy of b. expect is how many more bytes the caller is about
// to keep, b included.
func (a *arena) keep(b []byte, expect int) []byte {
	if len(b) == 0 {
		return nil
	}
	if len(b) > ledger.MaxInline {
		return bytes.Clone(b)
	}
	if cap(a.block)-len(a.block) < len(b) {
		a.block = make([]byte, 0, max(len(b), min(arenaBlock, expect)))
	}
	at := len(a.block)
	a.block = append(a.block, b...)
	return a.block[at:len(a.block):len(a.block)]
}
