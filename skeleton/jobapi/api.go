// Package jobapi is the HTTP API of the dispatcher: post work, read progress
// and results, cancel, look at farms and dead letters. docs/api.md describes it
// for users; jobclient is its client.
//
// A submission is decoded element by element into a stage of the ledger and
// becomes visible on its last byte; on any error the stage is given up and
// nothing of it is accepted.
package jobapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"time"

	"farmhand/internal/problem"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Defaults of a Config.
const (
	DefaultMaxBody = 16 << 20
	DefaultMaxWait = 50 * time.Second
	DefaultMemory  = 96 << 20
	DefaultMissing = 30 * time.Second
)

// Config of the API.
type Config struct {
	Store ledger.Store
	// MaxBody is the largest body of one task, in bytes (16 MiB).
	MaxBody int
	// MaxWait is how long an answer may be held, for wait and follow; it must be
	// below the gateway's upstream timeout (50 s).
	MaxWait time.Duration
	// Memory bounds the bytes of bodies and results that all requests together
	// hold (96 MiB); it is at least what one body of MaxBody needs.
	Memory int
	// MemoryWait is how long a request waits for them before it is refused (2 s).
	MemoryWait time.Duration
	// Missing is how long a worker must be gone until new work for it is refused
	// for good, and not only for now (30 s).
	Missing time.Duration
	// Callback checks a callback URL at submission; nil refuses all.
	Callback func(url string) error
	// Running lists the tasks of a farm that this process runs; nil: unknown.
	Running func(farm string) []Running
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: silent
}

// Running is a task in the hands of a worker.
type Running struct {
	Job     string  `json:"job"`
	Index   int     `json:"index"`
	Attempt int     `json:"attempt"`
	For     float64 `json:"running_s"`
	Busy    bool    `json:"busy,omitempty"` // it meets busy workers
}

// API is the handler and what it needs.
type API struct {
	cfg Config
	mux *http.ServeMux
	// closing ends followers when the process is asked to end.
	closing context.Context
	close   context.CancelFunc

	memory  *budget
	durable durability
	ids     *ids
}

// New makes the API.
func New(cfg Config) *API {
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = DefaultMaxBody
	}
	if cfg.MaxWait <= 0 {
		cfg.MaxWait = DefaultMaxWait
	}
	if cfg.Memory <= 0 {
		cfg.Memory = DefaultMemory
	}
	cfg.Memory = max(cfg.Memory, 2*(cfg.MaxBody+chunkBytes))
	if cfg.MemoryWait <= 0 {
		cfg.MemoryWait = 2 * time.Second
	}
	if cfg.Missing <= 0 {
		cfg.Missing = DefaultMissing
	}
	if cfg.Callback == nil {
		cfg.Callback = func(string) error { return errors.New("no callback host is allowed") }
	}
	if cfg.Running == nil {
		cfg.Running = func(string) []Running { return nil }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &API{cfg: cfg, mux: http.NewServeMux(), memory: &budget{total: int64(cfg.Memory), wait: cfg.MemoryWait},
		durable: durability{read: cfg.Store.Durability, now: cfg.Now}, ids: newIDs(cfg.Now)}
	a.closing, a.close = context.WithCancel(context.Background())
	a.routes()
	return a
}

// Close ends held answers: followers get a cursor to go on from.
func (a *API) Close() { a.close() }

func (a *API) routes() {
	// handle serves a pattern with the query parameters that it takes.
	handle := func(pattern string, h func(http.ResponseWriter, *http.Request, url.Values) error, known ...string) {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			q, err := parameters(r.URL.RawQuery, known)
			if err == nil {
				err = h(w, r, q)
			}
			if err != nil {
				a.fail(w, r, err)
			}
		})
	}
	options := append(names(setters), paramItems)
	handle("POST /jobs", a.submit, options...)
	handle("POST /{$}", a.submit, options...)
	handle("POST /jobs/{id}/tasks", a.append, options...)
	handle("POST /jobs/{id}/close", a.closeJob)
	handle("GET /jobs", a.listJobs, "worker", "after", "limit")
	handle("GET /jobs/{id}", a.getJob)
	handle("GET /{$}", a.getRoot, "job")
	handle("GET /jobs/{id}/results", a.results, "cursor", "limit", "follow", "ordered", "ack")
	handle("DELETE /jobs/{id}", a.cancelJob)
	handle("GET /farms", a.listFarms)
	handle("GET /farms/{worker}", a.getFarm)
	handle("GET /farms/{worker}/dead", a.listDead, "after", "limit")
	handle("POST /farms/{worker}/dead/redrive", a.redrive)
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := r.URL.EscapedPath(); p != "" && p != "/" && path.Clean(p) != p {
		notFound(w, r) // the mux would redirect to where we are not: the gateway has mounted us elsewhere
		return
	}
	if _, pattern := a.mux.Handler(r); pattern != "" {
		a.mux.ServeHTTP(w, r)
		return
	}
	// The mux knows the path under another method, or not at all; its answers
	// are plain text, ours are problems.
	probe := &statusProbe{header: http.Header{}}
	a.mux.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", probe.header.Get("Allow"))
		problem.Write(w, problem.New(probe.status, "method-not-allowed", quote(r.Method)+" is not served here").
			At("method", "use "+probe.header.Get("Allow")))
		return
	}
	notFound(w, r)
}

func notFound(w http.ResponseWriter, r *http.Request) {
	problem.Write(w, problem.New(http.StatusNotFound, "not-found", "there is nothing at "+quote(r.URL.Path)).
		At("path", "POST /jobs, GET /jobs/{id}, GET /farms: see docs/api.md"))
}

// statusProbe takes an answer's status and header only.
type statusProbe struct {
	header http.Header
	status int
}

func (p *statusProbe) Header() http.Header         { return p.header }
func (p *statusProbe) Write(b []byte) (int, error) { return len(b), nil }
func (p *statusProbe) WriteHeader(status int)      { p.status = status }

// fail answers with the problem an error comes to.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return // the client went away
	case errors.Is(err, ledger.ErrUnavailable):
		a.cfg.Log.Warn("store unavailable", "path", r.URL.Path, "error", err)
		p = problem.New(http.StatusServiceUnavailable, "store-unavailable", "Redis cannot take or give data right now; nothing was accepted").After(2 * time.Second)
	case errors.Is(err, ledger.ErrNotFound):
		p = problem.New(http.StatusNotFound, "unknown-job", "there is no such job; ended jobs are kept for 24 h").At("job", "GET /jobs lists them")
	case errors.Is(err, ledger.ErrClosed):
		p = problem.New(http.StatusConflict, "job-closed", "the job takes no more tasks").At("job", `submit it with "open": true to append, and append before close`)
	case errors.Is(err, ledger.ErrKeyUsed):
		p = problem.New(http.StatusConflict, "key-used", "the key was used for another submission: for another job, or for appending and a new job").
			At("Idempotency-Key", "take a new key")
	case errors.Is(err, ledger.ErrFull):
		p = problem.New(http.StatusTooManyRequests, "queue-full", "the farm's queue is full in tasks or bytes; nothing was accepted").
			At("tasks", "send the same again later").After(5 * time.Second)
	case errors.Is(err, ledger.ErrTooLarge):
		p = problem.New(http.StatusRequestEntityTooLarge, "too-large", "one submission may not hold that much: "+err.Error()).
			At("tasks", "send pieces: an open job, POST /jobs/{id}/tasks for each piece, then POST /jobs/{id}/close")
	case errors.Is(err, ledger.ErrGone):
		p = problem.New(http.StatusRequestTimeout, "too-slow", "the submission was silent for too long and was given up; nothing was accepted").At("body", "send it again")
	case errors.Is(err, ledger.ErrSchema):
		a.cfg.Log.Error("the data in Redis is newer than this program", "error", err)
		p = problem.New(http.StatusServiceUnavailable, "store-newer", "the data in Redis is of a newer version than this dispatcher").At("function", "deploy the newer dispatcher").After(time.Minute)
	default:
		a.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	if p == nil {
		problem.Write(w, err) // an internal error, without its text
		return
	}
	problem.Write(w, p)
}

// farm returns a farm of the roster and its ledger, or says what is wrong with
// the name.
func (a *API) farm(ctx context.Context, name string) (skeleton.Farm, ledger.Ledger, error) {
	roster, err := a.cfg.Store.Roster(ctx)
	if err != nil {
		return skeleton.Farm{}, nil, err
	}
	if roster.Published.IsZero() {
		return skeleton.Farm{}, nil, problem.New(http.StatusServiceUnavailable, "no-roster", "the controller has not published any farm yet").
			At("worker", "deploy the controller function and look at its log").After(2 * time.Second)
	}
	if f, ok := roster.Find(name); ok {
		return f, a.cfg.Store.Farm(name), nil
	}
	return skeleton.Farm{}, nil, unknownWorker(roster, name)
}

// takingFarm is farm for new work: there must be a function to do it. One that
// was not listed for an instant, or is deployed anew, comes back soon.
func (a *API) takingFarm(ctx context.Context, name string) (skeleton.Farm, ledger.Ledger, error) {
	f, l, err := a.farm(ctx, name)
	switch {
	case err != nil || f.Missing == 0:
		return f, l, err
	case f.Missing < a.cfg.Missing:
		return f, l, problem.New(http.StatusServiceUnavailable, "worker-missing", "the function "+quote(name)+" is not deployed right now; nothing was accepted").
			At("worker", "deploy it again, and send the same again").After(5 * time.Second)
	}
	roster, err := a.cfg.Store.Roster(ctx)
	if err != nil {
		return f, l, err
	}
	return f, l, unknownWorker(roster, name)
}

func unknownWorker(roster skeleton.Roster, name string) error {
	known := []string{}
	for _, f := range roster.Farms {
		if f.Missing == 0 {
			known = append(known, f.Name)
		}
	}
	p := problem.New(http.StatusNotFound, "unknown-worker", "no deployed function labelled as a worker has the name "+quote(name)).
		At("worker", `deploy the function with the label farmhand.worker: "true", or use one of extra.known`)
	p.Extra = map[string]any{"known": known}
	return p
}

// job returns the ledger of the farm that a job's id names.
func (a *API) job(id string) (ledger.Ledger, error) {
	farm, ok := splitJob(id)
	if !ok {
		return nil, problem.New(http.StatusNotFound, "bad-job", quote(id)+" is no job id").At("job", "job ids look like thumbnail~01ARZ3NDEKTSV4RRFFQ69G5FAV")
	}
	return a.cfg.Store.Farm(farm), nil
}
