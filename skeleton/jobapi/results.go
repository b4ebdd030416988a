package jobapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"farmhand/skeleton/ledger"
)

// Trailer is the last line of every stream of results.
type Trailer struct {
	Cursor int  `json:"cursor"` // where to go on
	End    bool `json:"end"`    // the job has ended and nothing follows
}

// resultsQuery is what a client asks for.
type resultsQuery struct {
	ledger.Query
	follow, ack, orderGiven bool
}

func readResultsQuery(q url.Values) (rq resultsQuery, err error) {
	if rq.Limit, err = limitOf(q.Get("limit"), 1000, 10_000); err != nil {
		return rq, err
	}
	if v := q.Get("cursor"); v != "" {
		if rq.Cursor, err = strconv.Atoi(v); err != nil || rq.Cursor < 0 {
			return rq, bad("cursor", quote(v)+" is no cursor", "the cursor of the last line of the answer before")
		}
	}
	rq.orderGiven = q.Get("ordered") != ""
	for name, into := range map[string]*bool{"follow": &rq.follow, "ordered": &rq.Ordered, "ack": &rq.ack} {
		if v := q.Get(name); v != "" {
			if err := setBool(name, into, v); err != nil {
				return rq, err
			}
		}
	}
	return rq, nil
}

// results serves GET /jobs/{id}/results as newline-delimited JSON: a result a
// line, then a Trailer. With follow=1 it goes on until the job ends or the time
// is over. Passing a cursor with ack=1 acknowledges everything before it.
func (a *API) results(w http.ResponseWriter, r *http.Request, query url.Values) error {
	ctx, id := r.Context(), r.PathValue("id")
	l, err := a.job(id)
	if err != nil {
		return err
	}
	q, err := readResultsQuery(query)
	if err != nil {
		return err
	}
	job, err := l.Job(ctx, id)
	if err != nil {
		return err
	}
	if !q.orderGiven {
		q.Ordered = job.Ordered
	}
	last := job.Position
	if q.Ordered {
		last = job.Total
	}
	if q.Cursor > last {
		return bad("cursor", quote(strconv.Itoa(q.Cursor))+" is beyond the job's results", "the cursor of the last line of the answer before, with the same ordered")
	}
	if q.ack && q.Cursor > 0 {
		if err := l.Acknowledge(ctx, id, q.Ordered, q.Cursor); err != nil {
			return err
		}
	}
	f := &follower{api: a, w: w, out: http.NewResponseController(w), l: l, id: id, resultsQuery: q, share: &share{budget: a.memory}}
	defer f.share.shrink(0)
	page, err := f.next(ctx) // before the first byte: a problem can still be told
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	f.run(ctx, page)
	return nil
}

// follower writes pages of results to a client.
type follower struct {
	resultsQuery
	api   *API
	w     http.ResponseWriter
	out   *http.ResponseController
	l     ledger.Ledger
	id    string
	share *share
	sent  int // bytes of bodies
	lines int // results
}

const (
	// writeTime is how long a client may take for one page.
	writeTime = 30 * time.Second
	// ackEvery is how many bytes of results a client that acknowledges gets in
	// one answer: while it does not pass a cursor, the ledger keeps them.
	ackEvery = 32 << 20
	// answerBytes is how many bytes of bodies an answer holds that does not
	// follow.
	answerBytes = 8 << 20
	// pageBytes and pageResults bound what is read at once: a client that does not
	// read its answer holds so much.
	pageBytes   = 256 << 10
	pageResults = 1000
)

// How often the bodies of a page are in memory while it is written: line by line
// they are encoded one after the other, a document as a whole.
const (
	lineCopies     = 1
	documentCopies = 3
)

// resultBytes is what a result takes beside its body.
const resultBytes = 256

// page reads results and sees to it that the share is what they take. One
// result may be larger than a page was to be: then there must be room for it
// first, and it is read again.
func (a *API) page(ctx context.Context, l ledger.Ledger, id string, q ledger.Query, s *share, copies int) (ledger.Page, error) {
	for want := max(s.last, int64(copies*q.MaxBytes+pageResults*resultBytes)); ; {
		if err := s.grow(ctx, want); err != nil {
			return ledger.Page{}, err
		}
		page, err := l.Results(ctx, id, q)
		if err != nil {
			return page, err
		}
		if want = weight(page, copies); want <= s.held || s.held == s.total {
			s.shrink(want)
			s.last = want
			return page, nil
		}
	}
}

func weight(p ledger.Page, copies int) int64 {
	n, longest := 0, 0
	for _, r := range p.Results {
		n += resultBytes + copies*len(r.Body)
		longest = max(longest, len(r.Body))
	}
	if longest > pageBytes {
		n += 2 * longest // encoded, and grown
	}
	return int64(n)
}

// next reads on: a small page, however much the client asked for.
func (f *follower) next(ctx context.Context) (ledger.Page, error) {
	q := f.Query
	q.Limit, q.MaxBytes = min(q.Limit, pageResults), pageBytes
	if !f.follow {
		q.Limit = min(q.Limit, f.Limit-f.lines)
	}
	return f.api.page(ctx, f.l, f.id, q, f.share, lineCopies)
}

// full reports whether an answer holds what it may.
func (f *follower) full() bool {
	if f.follow {
		return f.ack && f.sent >= ackEvery
	}
	return f.lines >= f.Limit || f.sent >= answerBytes
}

func (f *follower) run(ctx context.Context, page ledger.Page) {
	ctx, cancel := context.WithTimeout(ctx, f.api.cfg.MaxWait)
	defer cancel()
	stop := context.AfterFunc(f.api.closing, cancel)
	defer stop()
	var changed <-chan struct{}
	if f.follow && !page.End {
		var unwatch func()
		changed, unwatch = watch(ctx, f.l, f.id)
		defer unwatch()
	}
	enc := json.NewEncoder(f.w)
	enc.SetEscapeHTML(false)
	for {
		hold(f.w, 0)
		for _, res := range page.Results {
			if enc.Encode(resultView(res)) != nil {
				return // the client went away
			}
			f.sent += len(res.Body)
		}
		f.lines += len(page.Results)
		f.Cursor = page.Next
		idle := len(page.Results) == 0
		if page.End || ctx.Err() != nil || f.full() || idle && !f.follow {
			break
		}
		page = ledger.Page{} // it is written
		if f.follow && f.out.Flush() != nil {
			return
		}
		if idle {
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
		var err error
		if page, err = f.next(ctx); err != nil {
			if ctx.Err() == nil {
				f.api.cfg.Log.Warn("an answer was ended early", "job", f.id, "error", err)
			}
			page.End = false
			break
		}
	}
	hold(f.w, 0)
	_ = enc.Encode(Trailer{Cursor: f.Cursor, End: page.End}) // a client that went away needs no trailer
	_ = f.out.Flush()
}
