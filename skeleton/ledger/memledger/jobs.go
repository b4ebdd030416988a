package memledger

import (
	"context"
	"slices"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/order"
)

// create adds an empty job.
func (f *farm) create(now int64, from skeleton.Job) *job {
	j := &job{Job: skeleton.Job{ID: from.ID, Farm: f.name, Ordered: from.Ordered, Callback: from.Callback, Open: from.Open, Created: instant(now)}}
	f.jobs[j.ID] = j
	at, _ := slices.BinarySearch(f.ids, j.ID)
	f.ids = slices.Insert(f.ids, at, j.ID)
	return j
}

// Job implements ledger.Producer.
func (f *farm) Job(ctx context.Context, id string) (skeleton.Job, error) {
	return f.with(ctx, id, func(int64, *job) {})
}

// with runs fn on a job and returns the job as it is afterwards.
func (f *farm) with(ctx context.Context, id string, fn func(now int64, j *job)) (out skeleton.Job, err error) {
	err = f.do(ctx, func(now int64) error {
		j, err := f.job(id)
		if err != nil {
			return err
		}
		fn(now, j)
		f.settleBooks(now)
		out = j.Job
		return nil
	})
	return out, err
}

// Jobs implements ledger.Producer.
func (f *farm) Jobs(ctx context.Context, after string, limit int) (jobs []skeleton.Job, err error) {
	err = f.do(ctx, func(int64) error {
		at := len(f.ids)
		if after != "" {
			if err := f.owns(after); err != nil {
				return err
			}
			at, _ = slices.BinarySearch(f.ids, after)
		}
		for ; at > 0 && len(jobs) < limit; at-- {
			jobs = append(jobs, f.jobs[f.ids[at-1]].Job)
		}
		return nil
	})
	return jobs, err
}

// Close implements ledger.Producer.
func (f *farm) Close(ctx context.Context, id string) (skeleton.Job, error) {
	return f.with(ctx, id, func(_ int64, j *job) {
		if j.Open {
			j.Open = false
			f.touch(j)
		}
	})
}

// Cancel implements ledger.Producer. It is never cut off.
func (f *farm) Cancel(ctx context.Context, id string) (skeleton.Job, error) {
	return f.with(ctx, id, func(_ int64, j *job) {
		if !j.Ended.IsZero() {
			return
		}
		if !j.Cancel {
			j.Cancel, j.Open = true, false
			f.tell("", ledger.Event{Kind: ledger.Cancel, Job: id})
		}
		f.touch(j)
		for _, r := range j.runs {
			f.cancel(r)
		}
	})
}

// cancel cancels the unfinished tasks of a run.
func (f *farm) cancel(r *run) {
	if r.entry != 0 {
		f.n.Waiting -= f.queue.Remove(r.entry).N
		for i := r.next; i < len(r.tasks); i++ {
			f.discard(&r.tasks[i])
		}
		r.entry = 0
	}
	for i := range r.tasks[:r.next] {
		t := &r.tasks[i]
		if t.run != r {
			continue // redriven
		}
		switch t.state {
		case alone:
			f.queue.Remove(order.Handle(t.slot))
			f.n.Waiting--
			f.discard(t)
		case delayed:
			f.n.Delayed--
			f.discard(t)
		case leased:
			f.n.Leased--
			t.state = ghost
			f.forfeit(t)
		}
	}
	r.next = len(r.tasks)
}

// WatchJob implements ledger.Producer.
func (f *farm) WatchJob(ctx context.Context, id string, fn func()) error {
	if err := f.owns(id); err != nil {
		return err
	}
	return f.hub.watch(ctx, id, func(ledger.Event) { fn() })
}

// compact forgets what an ended job will not need again: nothing of it can be
// redriven, so of each task only the place of its result is kept.
func (f *farm) compact(j *job) {
	if j.Dead > 0 || j.live > 0 {
		return
	}
	j.places = make([]int32, j.Total)
	for _, p := range j.pieces {
		for i := range p.tasks {
			j.places[p.first+i] = -1
			if p.tasks[i].state == done {
				j.places[p.first+i] = p.tasks[i].slot
			}
		}
	}
	for _, r := range j.runs {
		delete(f.runs, r.seq)
	}
	j.pieces, j.runs = nil, nil
}

// forget removes a job and everything of it.
func (f *farm) forget(j *job) {
	j.gone = true
	delete(f.jobs, j.ID)
	if at, ok := slices.BinarySearch(f.ids, j.ID); ok {
		f.ids = slices.Delete(f.ids, at, at+1)
	}
	for _, key := range j.keys {
		delete(f.keys, key)
	}
	for _, key := range j.receipts {
		delete(f.receipts, key)
	}
	for _, r := range j.runs {
		for i := range r.tasks {
			if t := &r.tasks[i]; t.run == r && t.state == dead {
				f.dead.remove(t)
			}
		}
		delete(f.runs, r.seq)
	}
	f.n.Submitted -= j.Total
	f.n.Done -= j.Done
	f.n.Dead -= j.Dead
	f.n.Cancelled -= j.Cancelled
	f.shift(j, -j.BodyBytes, -j.KeptBytes)
}
