package stream

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// journal keeps the jobs that a farm's tasks are collected in: one for each span
// of time, whose id follows from farm and span, so that all dispatchers use the
// same without a word. When its span is over a job is closed, also that of a
// dispatcher that died.
type journal struct {
	cfg  Config
	farm string
	l    ledger.Ledger

	mu      sync.Mutex
	next    int64           // the earliest span that may still be open; guarded by mu
	known   map[string]bool // jobs there may be, by id; guarded by mu
	changed chan struct{}   // a job was made
}

func newJournal(c Config, farm string) *journal {
	return &journal{cfg: c, farm: farm, l: c.Store.Farm(farm), known: map[string]bool{}, changed: make(chan struct{}, 1)}
}

// grace is how long after its span a job is closed: clocks differ.
const grace = time.Minute

// skips is how many spans ahead are tried when one's job is closed, such as by a
// user.
const skips = 10

// span is the number of the span that a time lies in.
func (j *journal) span(t time.Time) int64 { return t.UnixMilli() / j.cfg.Span.Milliseconds() }

// id is the job of a span.
func (j *journal) id(span int64) string {
	var u ulid.ULID
	if err := u.SetTime(uint64(span * j.cfg.Span.Milliseconds())); err != nil {
		panic(err) // after the year 10889
	}
	sum := sha256.Sum256([]byte("farmhand stream " + j.farm))
	copy(u[6:], sum[:10])
	return j.farm + "~" + u.String()
}

// tail is what the ids of all jobs of this journal end with.
func (j *journal) tail() string {
	id := j.id(0)
	return id[len(id)-16:]
}

// append puts tasks into the job of this span.
func (j *journal) append(ctx context.Context, tasks []skeleton.NewTask) (ledger.Receipt, error) {
	j.mu.Lock()
	span := max(j.span(j.cfg.Now()), j.next)
	j.mu.Unlock()
	for last := span + skips; ; span++ {
		id := j.id(span)
		r, err := j.submit(ctx, id, true, tasks)
		if errors.Is(err, ledger.ErrNotFound) {
			if r, err = j.submit(ctx, id, false, tasks); errors.Is(err, ledger.ErrExists) { // made by another just now
				r, err = j.submit(ctx, id, true, tasks)
			}
		}
		if errors.Is(err, ledger.ErrClosed) && span < last {
			j.mu.Lock()
			j.next = max(j.next, span+1)
			j.mu.Unlock()
			continue
		}
		if err == nil {
			j.note(id)
		}
		return r, err
	}
}

func (j *journal) submit(ctx context.Context, id string, more bool, tasks []skeleton.NewTask) (ledger.Receipt, error) {
	st, err := j.l.Stage(ctx, ledger.Submission{Job: skeleton.Job{ID: id, Open: true}, Append: more})
	if err != nil {
		return ledger.Receipt{}, err
	}
	if err = st.Add(ctx, tasks); err == nil {
		var r ledger.Receipt
		if r, err = st.Commit(ctx); err == nil {
			return r, nil
		}
	}
	if abort := st.Abort(context.WithoutCancel(ctx)); abort != nil {
		j.cfg.Log.Debug("a stage is left to the sweeper", "job", id, "error", abort)
	}
	return ledger.Receipt{}, err
}

// note remembers a job.
func (j *journal) note(id string) {
	j.mu.Lock()
	fresh := !j.known[id]
	j.known[id] = true
	j.mu.Unlock()
	if fresh {
		kick(j.changed)
	}
}

func (j *journal) forget(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.known, id)
}

// jobs lists the jobs there may be, oldest first: those known, and that of now,
// which another dispatcher may have made.
func (j *journal) jobs() []string {
	now := j.span(j.cfg.Now())
	j.mu.Lock()
	defer j.mu.Unlock()
	list := []string{}
	for id := range j.known {
		list = append(list, id)
	}
	for _, span := range []int64{now - 1, now, j.next} {
		if id := j.id(span); span > 0 && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// run closes jobs whose span is over: at first those of before too.
func (j *journal) run(ctx context.Context) {
	for try := 1; ; try++ {
		err := j.recall(ctx)
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			j.cfg.Log.Warn("the jobs of a channel cannot be listed: trying on", "farm", j.farm, "error", err)
		}
		if !sleep(ctx, pause(try)) {
			return
		}
	}
	for {
		if err := j.tidy(ctx); err != nil && ctx.Err() == nil {
			j.cfg.Log.Warn("a job of a channel cannot be closed: trying on", "farm", j.farm, "error", err)
		}
		if !sleep(ctx, min(grace, j.cfg.Span)) {
			return
		}
	}
}

// recall finds the jobs of this journal among all of the farm.
func (j *journal) recall(ctx context.Context) error {
	for after := ""; ; {
		list, err := j.l.Jobs(ctx, after, 500)
		if err != nil {
			return err
		}
		for _, job := range list {
			if strings.HasSuffix(job.ID, j.tail()) {
				j.note(job.ID)
			}
		}
		if len(list) < 500 {
			return nil
		}
		after = list[len(list)-1].ID
	}
}

// tidy closes what is over.
func (j *journal) tidy(ctx context.Context) error {
	over := j.id(j.span(j.cfg.Now().Add(-grace))) // the job of this id may still get tasks
	for _, id := range j.jobs() {
		if id >= over {
			continue
		}
		job, err := j.l.Job(ctx, id)
		if err == nil && job.Open {
			_, err = j.l.Close(ctx, id)
		}
		switch {
		case errors.Is(err, ledger.ErrNotFound):
			j.forget(id)
		case err != nil:
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}
