package jobapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"farmhand/skeleton/ledger"
)

// Trailer is the last line of every stream of results.
type Trailer struct {
	Cursor int  `json:"cursor"` // where to go on
	End    bool `json:"end"`    // the job has ended and nothing follows
}

// results serves GET /jobs/{id}/results as newline-delimited JSON: a result a
// line, then a Trailer. With follow=1 it goes on until the job ends or the time
// is over. Passing a cursor with ack=1 acknowledges everything before it.
func (a *API) results(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	id := r.PathValue("id")
	l, err := a.job(id)
	if err != nil {
		return err
	}
	query := ledger.Query{}
	if query.Limit, err = limitOf(q.Get("limit"), 1000, 10_000); err != nil {
		return err
	}
	if v := q.Get("cursor"); v != "" {
		if query.Cursor, err = strconv.Atoi(v); err != nil || query.Cursor < 0 {
			return bad("cursor", quote(v)+" is no cursor", "the cursor of the last line of the answer before")
		}
	}
	var follow, ack bool
	for name, into := range map[string]*bool{"follow": &follow, "ordered": &query.Ordered, "ack": &ack} {
		if v := q.Get(name); v != "" {
			if err := setBool(name, into, v); err != nil {
				return err
			}
		}
	}
	page, err := l.Results(r.Context(), id, query) // before the first byte: a problem can still be told
	if err != nil {
		return err
	}
	if ack && query.Cursor > 0 {
		if err := l.Acknowledge(r.Context(), id, query.Ordered, query.Cursor); err != nil {
			return err
		}
	}
	f := &follower{api: a, w: w, l: l, id: id, query: query}
	f.out = http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	f.run(r.Context(), page, follow)
	return nil
}

// follower writes pages of results to a client.
type follower struct {
	api   *API
	w     http.ResponseWriter
	out   *http.ResponseController
	l     ledger.Ledger
	id    string
	query ledger.Query
}

// writeTime is how long a client may take for one page.
const writeTime = 30 * time.Second

func (f *follower) run(ctx context.Context, page ledger.Page, follow bool) {
	ctx, cancel := context.WithTimeout(ctx, f.api.cfg.MaxWait)
	defer cancel()
	stop := context.AfterFunc(f.api.closing, cancel)
	defer stop()
	changed := make(chan struct{}, 1)
	if follow && !page.End {
		watching := make(chan struct{})
		go func() {
			defer close(watching)
			_ = f.l.WatchJob(ctx, f.id, func() { // ends with the context
				select {
				case changed <- struct{}{}:
				default:
				}
			})
		}()
		defer func() { cancel(); <-watching }()
	}
	enc := json.NewEncoder(f.w)
	enc.SetEscapeHTML(false)
	for {
		_ = f.out.SetWriteDeadline(time.Now().Add(writeTime)) // unsupported only in tests without a connection
		for _, res := range page.Results {
			if enc.Encode(resultView(res)) != nil {
				return // the client went away
			}
		}
		f.query.Cursor = page.Next
		if !follow || page.End || ctx.Err() != nil {
			break
		}
		if len(page.Results) == 0 {
			if f.out.Flush() != nil {
				return
			}
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
		next, err := f.l.Results(ctx, f.id, f.query)
		if err != nil {
			if ctx.Err() == nil {
				f.api.cfg.Log.Warn("a follower was ended", "job", f.id, "error", err)
			}
			page = ledger.Page{Next: f.query.Cursor}
			break
		}
		page = next
	}
	_ = enc.Encode(Trailer{Cursor: f.query.Cursor, End: page.End}) // a client that went away needs no trailer
	_ = f.out.Flush()
}
