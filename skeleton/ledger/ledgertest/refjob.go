package ledgertest

import (
	"slices"
	"time"

	"farmhand/skeleton"
)

type refResult struct {
	task                    *refTask
	state                   skeleton.State
	body                    int
	reason                  string
	attempt, lost           int
	late, gone, acked       bool
	wait, sojourn, finished time.Duration
	status                  int
	service                 time.Duration
}

type refJob struct {
	id, callback          string
	open, ordered, cancel bool
	tasks                 []*refTask
	stream                []*refResult
	base                  int // acknowledged: results of the stream, or tasks of an ordered job
	late                  int
	ended, expires        time.Duration // 0 = not
	owed                  time.Duration // 0 = not
	tries                 int
	keys                  []string
}

// books ends the jobs that are over.
func (r *reference) books() {
	for _, j := range r.jobs {
		if j.open || j.ended > 0 || j.count(skeleton.Waiting, skeleton.Leased, skeleton.Delayed) > 0 {
			continue
		}
		keep := r.limits.Retention
		if j.count(skeleton.Dead) > 0 {
			keep = r.limits.DeadRetains
		}
		j.ended, j.expires = r.now, r.now+keep
		if j.callback != "" {
			j.owed = r.now
		}
	}
}

func (j *refJob) count(states ...skeleton.State) (n int) {
	for _, t := range j.tasks {
		if slices.Contains(states, t.state) {
			n++
		}
	}
	return n
}

func (j *refJob) cancelAll(r *reference) {
	if j.ended > 0 {
		return
	}
	j.cancel, j.open = true, false
	for _, t := range j.tasks {
		switch t.state {
		case skeleton.Waiting:
			r.leave(t)
			t.state = skeleton.Cancelled
		case skeleton.Delayed, skeleton.Leased:
			t.state = skeleton.Cancelled
		}
	}
	r.books()
}

// expire forgets jobs.
func (r *reference) expire() {
	r.jobs = slices.DeleteFunc(r.jobs, func(j *refJob) bool {
		if j.expires == 0 || j.expires > r.now {
			return false
		}
		for _, k := range j.keys {
			delete(r.keys, k)
		}
		for k, receipt := range r.receipts {
			if receipt.job == j {
				delete(r.receipts, k)
			}
		}
		return true
	})
}

// bytes returns the bytes of a job's unfinished tasks, and those kept for its
// client.
func (j *refJob) bytes() (queued, kept int) {
	for _, t := range j.tasks {
		switch t.state {
		case skeleton.Waiting, skeleton.Leased, skeleton.Delayed:
			queued += t.body
		case skeleton.Dead:
			kept += t.body
		}
	}
	for _, res := range j.stream {
		if res.state == skeleton.Done && !res.acked {
			kept += res.body
		}
	}
	return queued, kept
}

// acknowledge drops what stands before a cursor now. What is redriven to a
// place before it later is kept, though a reader is past it.
func (j *refJob) acknowledge(to int) {
	for at, res := range j.stream {
		if j.ordered {
			at = res.task.index
		}
		if at >= j.base && at < to {
			res.acked = true
		}
	}
	j.base = to
}

// results lists what a reader of the job gets, and whether that is all.
func (j *refJob) results() (list []*refResult, end bool) {
	if !j.ordered {
		for _, res := range j.stream[j.base:] {
			if !res.gone {
				list = append(list, res)
			}
		}
		return list, j.ended > 0
	}
	for _, t := range j.tasks[j.base:] {
		at := slices.IndexFunc(j.stream, func(res *refResult) bool { return res.task == t && !res.gone })
		if at >= 0 {
			list = append(list, j.stream[at])
		} else if j.ended == 0 {
			return list, false
		}
	}
	return list, j.ended > 0
}
