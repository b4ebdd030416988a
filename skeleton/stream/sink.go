package stream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/ledger"
)

// Published is a result as it is published to ResultsPrefix+WORKER: that of the
// job API, and whose it is.
type Published struct {
	Worker string `json:"worker"`
	Job    string `json:"job"`
	jobapi.Result
	// Omitted is the size of a body that is too large for the broker. The job API
	// has it: GET /jobs/{job}/results.
	Omitted int `json:"omitted_bytes,omitempty"`
}

// How much is read and published at once.
const (
	pageResults = 500
	pageBytes   = 1 << 20
)

// teller publishes the results of one farm's stream. Of all dispatchers one is
// elected to do it.
type teller struct {
	s    *Stream
	jobs *journal
	farm string

	mu        sync.Mutex
	following map[string]bool // guarded by mu
	cursors   map[string]int  // how far each job was published; guarded by mu
}

// run follows each job there is, while it is this process's turn.
func (t *teller) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	tick := time.NewTicker(t.s.cfg.Tick)
	defer tick.Stop()
	for look := 0; ; look++ {
		if t.s.cfg.Sink.Ready(ctx) != nil {
			return
		}
		jobs := t.jobs.jobs()
		if look%60 != 0 && len(jobs) > 3 { // older ones get a result only when something is redriven
			jobs = jobs[len(jobs)-3:]
		}
		for _, id := range jobs {
			t.look(ctx, id, &work)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-t.jobs.changed:
		}
	}
}

// look begins to follow a job that has results which are not published.
func (t *teller) look(ctx context.Context, id string, work *sync.WaitGroup) {
	t.mu.Lock()
	busy, cursor := t.following[id], t.cursors[id]
	t.mu.Unlock()
	if busy {
		return
	}
	job, err := t.jobs.l.Job(ctx, id)
	if err != nil {
		if !errors.Is(err, ledger.ErrNotFound) && ctx.Err() == nil {
			t.s.cfg.Log.Warn("a job of a channel cannot be read", "job", id, "error", err)
		}
		return
	}
	t.jobs.note(id)
	if !job.Ended.IsZero() && job.Position <= cursor {
		return
	}
	t.mu.Lock()
	t.following[id] = true
	t.mu.Unlock()
	work.Go(func() {
		cursor := t.follow(ctx, id, cursor)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.following, id)
		if t.cursors == nil {
			t.cursors = map[string]int{}
		}
		t.cursors[id] = cursor
	})
}

// follow publishes a job's results from a cursor on until the job has ended, and
// returns how far it came. Where the ledger has forgotten the results before, it
// begins with the first it has.
func (t *teller) follow(ctx context.Context, id string, cursor int) int {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	changed := make(chan struct{}, 1)
	watch.Go(func() {
		for ctx.Err() == nil {
			if err := t.jobs.l.WatchJob(ctx, id, func() { kick(changed) }); err != nil {
				kick(changed) // look, since nobody tells
			}
			sleep(ctx, time.Second)
		}
	})
	keep := false // the ledger has what the broker could not take
	for try := 1; ; {
		if t.s.cfg.Sink.Ready(ctx) != nil {
			return cursor
		}
		page, err := t.jobs.l.Results(ctx, id, ledger.Query{Cursor: cursor, Limit: pageResults, MaxBytes: pageBytes})
		if err == nil && len(page.Results) > 0 {
			var omitted bool
			omitted, err = t.publish(id, page.Results)
			if keep = keep || omitted; err == nil && !keep {
				err = t.jobs.l.Acknowledge(ctx, id, false, page.Next)
			}
		}
		switch {
		case errors.Is(err, ledger.ErrNotFound):
			t.jobs.forget(id)
			return cursor
		case err != nil:
			if ctx.Err() != nil {
				return cursor
			}
			t.s.cfg.Log.Warn("results could not be published: trying on", "job", id, "error", err)
			if !sleep(ctx, pause(try)) {
				return cursor
			}
			try++
			continue
		}
		try, cursor = 1, page.Next
		if page.End {
			return cursor
		}
		if len(page.Results) == 0 {
			select {
			case <-ctx.Done():
				return cursor
			case <-changed:
			}
		}
	}
}

// publish sends results, and says whether a body was left out.
func (t *teller) publish(id string, results []skeleton.Result) (omitted bool, err error) {
	most := t.s.cfg.Sink.MaxMessage()
	list := make([][]byte, 0, len(results))
	for _, r := range results {
		p := Published{Worker: t.farm, Job: id, Result: jobapi.ViewResult(r)}
		raw, err := json.Marshal(p)
		if err == nil && most > 0 && len(raw) > most {
			omitted = true
			p.Body, p.Base64, p.Omitted = nil, nil, len(r.Body)
			raw, err = json.Marshal(p)
			t.s.cfg.Log.Warn("a result is too large for the broker: the job API has it", "job", id, "index", r.Index, "bytes", len(r.Body))
		}
		if err != nil {
			return omitted, err
		}
		list = append(list, raw)
	}
	if err := t.s.cfg.Sink.Publish(ResultsPrefix+t.farm, list); err != nil {
		return omitted, err
	}
	t.s.count(func(c *Stats) { c.Published += len(list) })
	return omitted, nil
}
