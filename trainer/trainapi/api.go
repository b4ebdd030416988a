// Package trainapi is the HTTP API of trainings:
//
//	POST   /        {"farm": "thumbnail"}: begin a run; 202, and what is known of it
//	POST   /        {"run": ID, "slice": 7, "mac": …}: do a slice; what the trainer posts itself
//	POST   /        nothing: what a schedule asks for
//	GET    /        runs, the newest first
//	GET    /?run=ID one run
//	DELETE /?run=ID cancel a run
//
// The bearer token must not go through the broker of asynchronous calls. There a slice
// proves itself by its mac, and a request by the header X-Farm-Signature. A schedule
// can prove nothing, and may only ask for what is done twice a day at most anyway.
package trainapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"farmhand/internal/problem"
	"farmhand/trainer"
)

// Trainer does what is asked for; a work.Worker is one.
type Trainer interface {
	Start(ctx context.Context, id string, r trainer.Request) (run trainer.Run, created bool, err error)
	Scheduled(ctx context.Context) error
	Slice(ctx context.Context, t trainer.Ticket) error
}

// Config of the API.
type Config struct {
	Trainer   Trainer
	Store     trainer.Store
	Key       trainer.Key
	Protect   func(http.Handler) http.Handler // lets those through who have the token
	Learners  []string
	Scenarios []string
	Draining  error        // of Trainer.Slice: the process is about to end
	NoFarm    error        // of Trainer.Start: there is no such farm
	Log       *slog.Logger // nil: silent
}

// Runs is the answer to GET /.
type Runs struct {
	Runs []trainer.Run `json:"runs"`
}

// Did is the answer to a slice.
type Did struct {
	Run   string `json:"run"`
	Slice int    `json:"slice"`
	Done  bool   `json:"done"`          // by this call
	Why   string `json:"why,omitempty"` // not
}

const maxBody = 64 << 10

// New serves the API.
func New(c Config) http.Handler {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	a := &api{Config: c}
	a.protected = map[string]http.Handler{}
	for method, serve := range map[string]func(http.ResponseWriter, *http.Request) error{
		http.MethodGet: a.get, http.MethodHead: a.get, http.MethodDelete: a.cancel, http.MethodPost: a.proven,
	} {
		a.protected[method] = c.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, serve) }))
	}
	a.elsewhere = c.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, problem.New(http.StatusNotFound, "not-found", "the trainer has only one path").At("path", "use /"))
	}))
	return a
}

type api struct {
	Config
	protected map[string]http.Handler // by method
	elsewhere http.Handler            // of other paths
}

// ServeHTTP implements http.Handler.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, ok := a.protected[r.Method]
	switch {
	case r.URL.Path != "/" && r.URL.Path != "":
		a.elsewhere.ServeHTTP(w, r)
	case !ok:
		w.Header().Set("Allow", "GET, HEAD, POST, DELETE")
		problem.Write(w, problem.New(http.StatusMethodNotAllowed, "method", r.Method+" is not served").At("method", "use GET, POST or DELETE"))
	case r.Method == http.MethodPost && r.Header.Get("Authorization") == "":
		a.serve(w, r, a.unproven)
	default:
		h.ServeHTTP(w, r)
	}
}

func (a *api) serve(w http.ResponseWriter, r *http.Request, do func(http.ResponseWriter, *http.Request) error) {
	if err := do(w, r); err != nil {
		problem.Write(w, a.refusal(err))
	}
}

// unproven is a POST without the token: of the broker, or of a schedule.
func (a *api) unproven(w http.ResponseWriter, r *http.Request) error {
	return a.post(w, r, func(body []byte) error {
		if a.Key.Signed(body, r.Header.Get(trainer.HeaderSignature)) {
			return nil
		}
		return problem.New(http.StatusUnauthorized, "unauthorized", "the request carries neither a bearer token nor a signature that fits").
			At(trainer.HeaderSignature, "through /function send the bearer token; through /async-function sha256=HMAC-SHA256(token, body), in hex")
	})
}

// proven is a POST with the token.
func (a *api) proven(w http.ResponseWriter, r *http.Request) error {
	return a.post(w, r, func([]byte) error { return nil })
}

// post serves a ticket, which proves itself, nothing, or a request that may begin a run.
func (a *api) post(w http.ResponseWriter, r *http.Request, may func(body []byte) error) error {
	body, err := read(w, r)
	switch {
	case err != nil:
		return err
	case len(body) == 0:
		return a.scheduled(w, r)
	case isTicket(body):
		return a.slice(w, r, body)
	}
	if err := may(body); err != nil {
		return err
	}
	return a.start(w, r, body)
}

// scheduled tells nothing of the farms: a schedule has no token.
func (a *api) scheduled(w http.ResponseWriter, r *http.Request) error {
	if err := a.Trainer.Scheduled(context.WithoutCancel(r.Context())); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, problem.New(http.StatusRequestEntityTooLarge, "too-large", "the body is too large").At("body", "send one JSON object")
	case err != nil:
		return nil, problem.New(http.StatusBadRequest, "cut-off", "the body came only in part").At("body", "send it again")
	}
	return body, nil
}

// isTicket reports whether a body asks for a slice, whatever else it may be.
func isTicket(body []byte) bool {
	var t struct {
		Slice *json.RawMessage `json:"slice"`
	}
	return json.Unmarshal(body, &t) == nil && t.Slice != nil
}

// slice does a slice. What has nothing to do answers 200: the call must not come again.
func (a *api) slice(w http.ResponseWriter, r *http.Request, body []byte) error {
	var t trainer.Ticket
	if err := json.Unmarshal(body, &t); err != nil {
		return problem.New(http.StatusUnprocessableEntity, "invalid-ticket", "it is no ticket of a slice").At("body", "leave tickets to the trainer")
	}
	if !a.Key.Good(t) {
		return problem.New(http.StatusUnauthorized, "unauthorized", "the ticket was made with another token").At("mac", "leave tickets to the trainer")
	}
	err := a.Trainer.Slice(r.Context(), t)
	did := Did{Run: t.Run, Slice: t.Slice, Done: err == nil}
	for _, nothing := range []error{trainer.ErrUnknown, trainer.ErrNotNext, trainer.ErrHeld, trainer.ErrOver, trainer.ErrLost} {
		if errors.Is(err, nothing) {
			did.Why, err = strings.TrimPrefix(nothing.Error(), "trainer: "), nil
		}
	}
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, did)
}

// start a run.
func (a *api) start(w http.ResponseWriter, r *http.Request, body []byte) error {
	request, err := trainer.ParseRequest(body, a.Learners, a.Scenarios)
	if err != nil {
		return err
	}
	id := request.Run
	if id == "" {
		id = callID(r)
	}
	run, created, err := a.Trainer.Start(context.WithoutCancel(r.Context()), id, request)
	if err != nil {
		return err
	}
	if request.Run = ""; !created && run.Request != request {
		return problem.New(http.StatusConflict, "known-run", "there is another run of this id").At("run", "send another id, or none")
	}
	return answer(w, http.StatusAccepted, run)
}

// callID is the id of a run that was given none: that of the call, which is the same
// when the call is made again.
func callID(r *http.Request) string {
	id := strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' {
			return c
		}
		return -1
	}, r.Header.Get("X-Call-Id"))
	if id == "" || len(id) > 64 {
		return uuid.NewString()
	}
	return id
}

func (a *api) get(w http.ResponseWriter, r *http.Request) error {
	if !r.URL.Query().Has("run") {
		runs, err := a.Store.List(r.Context())
		if errors.Is(err, trainer.ErrDamaged) {
			a.Log.Error("a training is left out of the list", "error", err)
		} else if err != nil {
			return err
		}
		return answer(w, http.StatusOK, Runs{append([]trainer.Run{}, runs...)})
	}
	run, err := a.Store.Get(r.Context(), r.URL.Query().Get("run"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, run)
}

func (a *api) cancel(w http.ResponseWriter, r *http.Request) error {
	run, err := a.Store.Cancel(r.Context(), r.URL.Query().Get("run"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, run)
}

// refusal is what is answered to an error.
func (a *api) refusal(err error) error {
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, a.NoFarm):
		return problem.New(http.StatusNotFound, "unknown-farm", detail(err)).At("farm", `deploy the function with the label farmhand.worker: "true"; farmhand farm list lists them`)
	case errors.Is(err, trainer.ErrNoDeadline):
		return problem.New(http.StatusUnprocessableEntity, "no-deadline", detail(err)).
			At("farm", "nothing is ever late without one, and there is nothing to learn: set the annotation farmhand.deadline, or farmhand farm set WORKER deadline=2s")
	case errors.Is(err, trainer.ErrUnknown):
		return problem.New(http.StatusNotFound, "unknown-run", detail(err)).At("run", "GET / lists them")
	case errors.Is(err, trainer.ErrFull):
		return problem.New(http.StatusTooManyRequests, "too-many-runs", detail(err)).At("run", "wait until one is over, or cancel one").After(time.Minute)
	case errors.Is(err, trainer.ErrDamaged):
		a.Log.Error("a training cannot be read", "error", err)
		return problem.New(http.StatusInternalServerError, "damaged-run", detail(err)).At("run", "begin another one; DEL of its key in Redis forgets this one")
	case errors.Is(err, a.Draining):
		return problem.New(http.StatusServiceUnavailable, "draining", "this trainer is about to end").After(2 * time.Second)
	}
	a.Log.Warn("a call could not be served", "error", err)
	what := "it could not be done"
	if unreachable(err) {
		what = "Redis could not be reached"
	}
	return problem.New(http.StatusServiceUnavailable, "unavailable", what+"; the function's log has it").After(2 * time.Second)
}

// unreachable reports whether an error is of a connection, not of what came by it.
func unreachable(err error) bool {
	var of net.Error
	return errors.As(err, &of) || errors.Is(err, io.EOF)
}

// detail is an error without the name of the package.
func detail(err error) string {
	_, text, _ := strings.Cut(err.Error(), ": ")
	return text
}

func answer(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that went away needs no answer
	return nil
}
