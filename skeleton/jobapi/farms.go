package jobapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// FarmView is a farm as the API shows it.
type FarmView struct {
	skeleton.Farm
	Missing string    `json:"missing,omitempty"` // how long the function has been gone, such as "1m2s"
	Queue   *Queue    `json:"queue,omitempty"`   // of one farm only
	Running []Running `json:"running,omitempty"`
}

func farmView(f skeleton.Farm) FarmView {
	v := FarmView{Farm: f}
	if f.Missing > 0 {
		v.Missing = f.Missing.Round(time.Millisecond).String()
	}
	return v
}

// Queue are a farm's numbers of this instant.
type Queue struct {
	Submitted   int                `json:"submitted"`
	Waiting     int                `json:"waiting"`
	Leased      int                `json:"leased"`
	Delayed     int                `json:"delayed"`
	Done        int                `json:"done"`
	Dead        int                `json:"dead"`
	Cancelled   int                `json:"cancelled"`
	Live        int                `json:"live"` // leases
	Window      int                `json:"window"`
	Factor      float64            `json:"factor"`
	OldestWait  float64            `json:"oldest_wait_s"`
	Overdue     int                `json:"overdue"`
	Late        int                `json:"late"`
	Refused     int                `json:"refused"`
	Lapsed      int                `json:"lapsed"`
	QueueBytes  int                `json:"queue_bytes"`
	KeptBytes   int                `json:"kept_bytes"`
	Blocked     string             `json:"blocked,omitempty"`
	Dispatchers map[string]float64 `json:"dispatchers"` // seconds since each one's heartbeat
}

func queueView(g ledger.Gauges) *Queue {
	q := &Queue{Submitted: g.Submitted, Waiting: g.Waiting, Leased: g.Leased, Delayed: g.Delayed, Done: g.Done, Dead: g.Dead,
		Cancelled: g.Cancelled, Live: g.Live, Window: g.Window, Factor: g.Factor, OldestWait: g.OldestWait.Seconds(), Overdue: g.Overdue,
		Late: g.Late, Refused: g.Refused, Lapsed: g.Lapsed, QueueBytes: g.QueueBytes, KeptBytes: g.KeptBytes, Blocked: g.Blocked,
		Dispatchers: map[string]float64{}}
	for owner, age := range g.Beats {
		q.Dispatchers[owner] = age.Seconds()
	}
	return q
}

// FarmList is the answer to GET /farms.
type FarmList struct {
	Published time.Time  `json:"published"`
	Farms     []FarmView `json:"farms"`
}

// listFarms serves GET /farms.
func (a *API) listFarms(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	roster, err := a.cfg.Store.Roster(r.Context())
	if err != nil {
		return err
	}
	list := FarmList{Published: roster.Published, Farms: []FarmView{}}
	for _, f := range roster.Farms {
		list.Farms = append(list.Farms, farmView(f))
	}
	return reply(w, http.StatusOK, list)
}

// getFarm serves GET /farms/{worker}.
func (a *API) getFarm(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	f, l, err := a.farm(r.Context(), r.PathValue("worker"))
	if err != nil {
		return err
	}
	g, err := l.Gauges(r.Context())
	if err != nil {
		return err
	}
	v := farmView(f)
	v.Queue, v.Running = queueView(g), a.cfg.Running(f.Name)
	return reply(w, http.StatusOK, v)
}

// DeadList is the answer to GET /farms/{worker}/dead.
type DeadList struct {
	Dead []ledger.DeadLetter `json:"dead"`
	Next string              `json:"next,omitempty"` // after= of the next page
}

// listDead serves GET /farms/{worker}/dead.
func (a *API) listDead(w http.ResponseWriter, r *http.Request, q url.Values) error {
	_, l, err := a.farm(r.Context(), r.PathValue("worker"))
	if err != nil {
		return err
	}
	limit, err := limitOf(q.Get("limit"), 100, 1000)
	if err != nil {
		return err
	}
	letters, next, err := l.Dead(r.Context(), q.Get("after"), limit)
	if errors.Is(err, ledger.ErrRef) {
		return bad("after", quote(q.Get("after"))+" leads to no page", "the next of the page before, or nothing for the first page")
	}
	if err != nil {
		return err
	}
	if letters == nil {
		letters = []ledger.DeadLetter{}
	}
	return reply(w, http.StatusOK, DeadList{Dead: letters, Next: next})
}

// Redrive is the body of POST /farms/{worker}/dead/redrive.
type Redrive struct {
	Refs  []string `json:"refs,omitempty"`  // these dead letters
	All   bool     `json:"all,omitempty"`   // or all of them
	Limit int      `json:"limit,omitempty"` // of all, at most so many (10,000)
}

// Redriven is the answer to it.
type Redriven struct {
	Redriven int `json:"redriven"`
	// NotFound are the refs that are no dead letters (any more), or of a job that
	// was cancelled.
	NotFound int `json:"not_found,omitempty"`
}

const maxRedrive = 10_000

// redrive serves POST /farms/{worker}/dead/redrive.
func (a *API) redrive(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	_, l, err := a.farm(r.Context(), r.PathValue("worker"))
	if err != nil {
		return err
	}
	body := &meter{r: r.Body, ctx: r.Context(), share: &share{budget: a.memory}}
	defer body.share.shrink(0)
	req, err := readRedrive(body)
	if err != nil {
		return err
	}
	if req.Limit == 0 {
		req.Limit = maxRedrive
	}
	switch {
	case req.All == (len(req.Refs) > 0):
		return bad("refs", "either refs or all is needed", `{"refs": ["…"]} for some, {"all": true} for all`)
	case len(req.Refs) > maxRedrive:
		return bad("refs", "too many at once", "at most 10,000")
	case req.Limit < 1 || req.Limit > maxRedrive:
		return bad("limit", "out of range", "1 to 10,000")
	}
	slices.Sort(req.Refs)
	req.Refs = slices.Compact(req.Refs)
	n, err := l.Redrive(r.Context(), req.Refs, req.Limit)
	if errors.Is(err, ledger.ErrRef) {
		return bad("refs", "one of them is no reference to a task; nothing was redriven", "see GET /farms/"+r.PathValue("worker")+"/dead")
	}
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, Redriven{Redriven: n, NotFound: max(0, len(req.Refs)-n)})
}

// readRedrive reads the body of a redrive; no body at all is an empty one.
func readRedrive(body io.Reader) (req Redrive, err error) {
	raw, err := readBody(body, "body", 1<<20)
	if err != nil || len(raw) == 0 {
		return req, err
	}
	d := newDocument(bytes.NewReader(raw), len(raw))
	type field struct {
		into any
		want string
	}
	fields := map[string]field{"refs": {&req.Refs, "an array of texts"}, "all": {&req.All, "true or false"}, "limit": {&req.Limit, "a whole number"}}
	err = d.members("body", func(name string) error {
		f, ok := fields[name]
		if !ok {
			return bad(name, "there is no such field", "use refs, or all and limit")
		}
		var wrong *json.UnmarshalTypeError
		if err := d.Decode(f.into); errors.As(err, &wrong) {
			return bad(name, "want "+f.want+", found "+wrong.Value, "give "+f.want)
		} else if err != nil {
			return malformed(name, err)
		}
		return nil
	})
	return req, err
}
