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
	if err := onlyParameters(q, "cursor", "limit", "follow", "ordered", "ack"); err != nil {
		return rq, err
	}
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
func (a *API) results(w http.ResponseWriter, r *http.Request) error {
	ctx, id := r.Context(), r.PathValue("id")
	l, err := a.job(id)
	if err != nil {
		return err
	}
	q, err := readResultsQuery(r.URL.Query())
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
	page, err := l.Results(ctx, id, q.Query) // before the first byte: a problem can still be told
	if err != nil {
		return err
	}
	f := &follower{api: a, w: w, out: http.NewResponseController(w), l: l, id: id, resultsQuery: q}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	f.run(ctx, page)
	return nil
}

// follower writes pages of results to a client.
type follower struct {
	resultsQuery
	api  *API
	w    http.ResponseWriter
	out  *http.ResponseController
	l    ledger.Ledger
	id   string
	sent int // bytes of bodies
}

const (
	// writeTime is how long a client may take for one page.
	writeTime = 30 * time.Second
	// ackEvery is how many bytes of results a client that acknowledges gets in
	// one answer: while it does not pass a cursor, the ledger keeps them.
	ackEvery = 32 << 20
)

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
		f.Cursor = page.Next
		if !f.follow || page.End || ctx.Err() != nil || f.ack && f.sent >= ackEvery {
			break
		}
		if f.out.Flush() != nil {
			return
		}
		if len(page.Results) == 0 {
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
		next, err := f.l.Results(ctx, f.id, f.Query)
		if err != nil {
			if ctx.Err() == nil {
				f.api.cfg.Log.Warn("a follower was ended", "job", f.id, "error", err)
			}
			page.End = false
			break
		}
		page = next
	}
	hold(f.w, 0)
	_ = enc.Encode(Trailer{Cursor: f.Cursor, End: page.End}) // a client that went away needs no trailer
	_ = f.out.Flush()
}
