// Package policyapi is the registry of policies over HTTP:
//
//	GET  /policies                        all versions, the newest first
//	GET  /policies?farm=W                 those that a farm has to do with, its aliases, its history
//	POST /policies?by=&note=              import: the body is the policy file
//	DELETE /policies?farm=W               forget a farm that is no more: its aliases, its history
//	GET  /policies/NAME                   one version with the verdicts on it
//	GET  /policies/NAME/file              its bytes
//	POST /policies/NAME/promote?farm=W    {"by": "ann", "reason": "…", "forced": true}
//	POST /policies/rollback?farm=W        {"by": "ann", "reason": "…"}
//
// NAME is a version, the beginning of one, or FARM:ALIAS, such as
// thumbnail:champion. Refusals are problem documents. Who may call is for the caller
// of New to see to; by is what a client says of itself.
package policyapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"farmhand/internal/problem"
	"farmhand/registry"
)

// Path of all that is served.
const Path = "/policies"

// Config of the API.
type Config struct {
	Registry registry.Registry
	Known    func(farm string) bool // whether there is such a farm; nil: any
	Log      *slog.Logger           // nil: silent
}

// Listing is the answer to GET /policies.
type Listing struct {
	Farm     string             `json:"farm,omitempty"`
	Aliases  *registry.Aliases  `json:"aliases,omitempty"` // of the farm
	Policies []registry.Version `json:"policies"`
	History  []registry.Change  `json:"history,omitempty"` // of the farm
	Damaged  []string           `json:"damaged,omitempty"` // what of aliases and history is left out
}

// Moved is the answer to a promotion or rollback.
type Moved struct {
	Farm    string           `json:"farm"`
	Aliases registry.Aliases `json:"aliases"`
	Changed bool             `json:"changed"`           // false: it was champion already, and nothing was forced
	Damaged []string         `json:"damaged,omitempty"` // what of the aliases is left out
}

// New serves the API.
func New(c Config) http.Handler {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	a := &api{c}
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET " + Path:                      a.list,
		"POST " + Path:                     a.imports,
		"DELETE " + Path:                   a.forget,
		"GET " + Path + "/{name}":          a.show,
		"GET " + Path + "/{name}/file":     a.file,
		"POST " + Path + "/rollback":       a.rollback,
		"POST " + Path + "/{name}/promote": a.promote,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := serve(w, r); err != nil {
				problem.Write(w, a.refusal(r, err))
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, problem.New(http.StatusNotFound, "not-found", r.Method+" of this path is not served").
			At("path", "GET, POST or DELETE "+Path+", GET "+Path+"/NAME, GET "+Path+"/NAME/file, POST "+Path+"/NAME/promote or "+Path+"/rollback"))
	})
	return mux
}

type api struct{ Config }

func (a *api) list(w http.ResponseWriter, r *http.Request) error {
	all, err := a.Registry.List(r.Context())
	if err != nil {
		return err
	}
	v := Listing{Farm: r.URL.Query().Get("farm"), Policies: all}
	if r.URL.Query().Has("farm") {
		if err := a.known(v.Farm); err != nil {
			return err
		}
		aliases, err := a.Registry.Aliases(r.Context(), v.Farm)
		if err := a.rest(r, err, &v.Damaged); err != nil {
			return err
		}
		v.Aliases = &aliases
		v.History, err = a.Registry.History(r.Context(), v.Farm)
		if err := a.rest(r, err, &v.Damaged); err != nil {
			return err
		}
		v.Policies = slices.DeleteFunc(all, func(p registry.Version) bool {
			_, judged := p.Verdicts[v.Farm]
			return !judged && !slices.ContainsFunc(p.Uses, func(u registry.Use) bool { return u.Farm == v.Farm })
		})
	}
	return answer(w, http.StatusOK, v)
}

func (a *api) imports(w http.ResponseWriter, r *http.Request) error {
	file, err := io.ReadAll(http.MaxBytesReader(w, r.Body, registry.MaxFile))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problem.New(http.StatusRequestEntityTooLarge, "policy-too-large", "the policy file is too large").
			At("body", fmt.Sprintf("send at most %d bytes", registry.MaxFile))
	case err != nil:
		return problem.New(http.StatusBadRequest, "cut-off", "the policy file came only in part").At("body", "send it again")
	}
	q := r.URL.Query()
	version, err := a.Registry.Import(r.Context(), file, registry.Origin{By: q.Get("by"), Note: q.Get("note")})
	if err != nil {
		return err
	}
	v, err := a.one(r, version)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, v)
}

func (a *api) forget(w http.ResponseWriter, r *http.Request) error {
	farm := r.URL.Query().Get("farm")
	switch unknown := a.known(farm); {
	case farm == "":
		return unknown
	case unknown == nil:
		return problem.New(http.StatusConflict, "farm-in-use", fmt.Sprintf("%.80q is a farm", farm)).
			At("farm", "remove its function; an hour later the farm is gone too")
	}
	if err := a.Registry.Forget(r.Context(), farm); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *api) show(w http.ResponseWriter, r *http.Request) error {
	version, err := a.resolve(r)
	if err != nil {
		return err
	}
	v, err := a.one(r, version)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, v)
}

func (a *api) file(w http.ResponseWriter, r *http.Request) error {
	version, err := a.resolve(r)
	if err != nil {
		return err
	}
	file, err := a.Registry.Policy(r.Context(), version)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(file)))
	h.Set("Content-Disposition", `attachment; filename="`+registry.Short(version)+`.safetensors"`)
	h.Set("ETag", `"`+version+`"`)
	_, _ = w.Write(file) // a client that went away needs no answer
	return nil
}

func (a *api) promote(w http.ResponseWriter, r *http.Request) error {
	farm, reason, err := a.moving(w, r)
	if err != nil {
		return err
	}
	version, err := a.resolve(r)
	if err != nil {
		return err
	}
	return a.moved(w, r, farm, func() error { return a.Registry.Promote(r.Context(), farm, version, reason) })
}

func (a *api) rollback(w http.ResponseWriter, r *http.Request) error {
	farm, reason, err := a.moving(w, r)
	if err != nil {
		return err
	}
	return a.moved(w, r, farm, func() error {
		_, err := a.Registry.Rollback(r.Context(), farm, reason)
		return err
	})
}

// moved moves an alias and answers with what is so then. Where the registry is damaged,
// the term before is not known, and a move that is forced mends it.
func (a *api) moved(w http.ResponseWriter, r *http.Request, farm string, move func() error) error {
	_, before, err := a.Registry.Champion(r.Context(), farm)
	if err != nil && !errors.Is(err, registry.ErrDamaged) {
		return err
	}
	if err := move(); err != nil {
		return err
	}
	_, after, err := a.Registry.Champion(r.Context(), farm)
	if err != nil {
		return err
	}
	m := Moved{Farm: farm, Changed: before != after}
	m.Aliases, err = a.Registry.Aliases(r.Context(), farm)
	if err := a.rest(r, err, &m.Damaged); err != nil {
		return err
	}
	return answer(w, http.StatusOK, m)
}

// rest lets what is whole be answered where the rest is damaged, which goes into the log
// and into damaged; other errors it returns.
func (a *api) rest(r *http.Request, err error, damaged *[]string) error {
	if !errors.Is(err, registry.ErrDamaged) {
		return err
	}
	a.Log.Error("the registry is damaged", "path", r.URL.Path, "error", err)
	*damaged = append(*damaged, detail(err))
	return nil
}

// moving reads what a request to move an alias says.
func (a *api) moving(w http.ResponseWriter, r *http.Request) (farm string, reason registry.Reason, err error) {
	farm = r.URL.Query().Get("farm")
	if err := a.known(farm); err != nil {
		return "", reason, err
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	d.DisallowUnknownFields()
	if err := d.Decode(&reason); err != nil && !errors.Is(err, io.EOF) || d.More() {
		return "", reason, problem.New(http.StatusUnprocessableEntity, "invalid-body", "the reason cannot be read").
			At("body", `send nothing or one object such as {"by": "ann", "reason": "tested by hand", "forced": true}`)
	}
	if err := reason.Check(); err != nil {
		return "", reason, problem.New(http.StatusUnprocessableEntity, "invalid-reason", detail(err)).
			At("reason", fmt.Sprintf("say in at most %d bytes why", registry.MaxText))
	}
	return farm, reason, nil
}

func (a *api) known(farm string) error {
	if farm == "" || a.Known != nil && !a.Known(farm) {
		return problem.New(http.StatusNotFound, "unknown-farm", fmt.Sprintf("there is no farm %.80q", farm)).
			At("farm", `deploy the function with the label farmhand.worker: "true"`)
	}
	return nil
}

// resolve finds the version that a path names.
func (a *api) resolve(r *http.Request) (string, error) {
	name := r.PathValue("name")
	farm, alias, ok := strings.Cut(name, ":")
	if !ok {
		return a.Registry.Resolve(r.Context(), name)
	}
	of, err := a.Registry.Aliases(r.Context(), farm)
	if err != nil && !errors.Is(err, registry.ErrDamaged) {
		return "", err
	}
	version, ok := map[string]string{"champion": of.Champion, "challenger": of.Challenger, "previous": of.Previous}[alias]
	switch {
	case !ok:
		return "", problem.New(http.StatusUnprocessableEntity, "unknown-alias", fmt.Sprintf("%.80q is no alias", alias)).
			At("name", "want FARM:champion, FARM:challenger or FARM:previous")
	case version == "" && err != nil: // it may be the one that is damaged
		return "", err
	case version == "":
		return "", fmt.Errorf("%w: %.80s has no %s", registry.ErrUnknown, farm, alias)
	}
	return version, nil
}

// one is what is known of a version.
func (a *api) one(r *http.Request, version string) (*registry.Version, error) {
	all, err := a.Registry.List(r.Context())
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(v registry.Version) bool { return v.Version == version })
	if i < 0 {
		return nil, fmt.Errorf("%w: %.80q", registry.ErrUnknown, version)
	}
	return &all[i], nil
}

// refusal is what is answered to an error.
func (a *api) refusal(r *http.Request, err error) error {
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, registry.ErrUnknown):
		return problem.New(http.StatusNotFound, "unknown-policy", detail(err)).At("name", "GET "+Path+" lists the versions")
	case errors.Is(err, registry.ErrInvalid):
		return problem.New(http.StatusUnprocessableEntity, "invalid-policy", detail(err)).At("body", "send a policy file that this version of Farmhand trained")
	case errors.Is(err, registry.ErrRefused):
		return problem.New(http.StatusConflict, "refused-by-gate", detail(err)).At("forced", "let a gate judge it, or send forced with a reason")
	case errors.Is(err, registry.ErrNothing):
		return problem.New(http.StatusConflict, "nothing-to-roll-back", "there is no promotion that could be taken back").At("farm", "promote a version by name")
	case errors.Is(err, registry.ErrFull):
		return problem.New(http.StatusInsufficientStorage, "registry-full", detail(err)).At("body", "promote other versions for some of the farms, or DELETE "+Path+"?farm=W of one that is no more: what none names makes room")
	case errors.Is(err, registry.ErrDamaged):
		a.Log.Error("the registry is damaged", "path", r.URL.Path, "error", err)
		return problem.New(http.StatusInternalServerError, "registry-damaged", detail(err)).At("name", "the champion that was loaded goes on; import the file again")
	}
	a.Log.Warn("a call could not be served", "path", r.URL.Path, "error", err)
	return problem.New(http.StatusServiceUnavailable, "unavailable", "Redis could not be reached; the function's log has it").After(2 * time.Second)
}

// detail is an error without the name of the package.
func detail(err error) string { return strings.TrimPrefix(err.Error(), "registry: ") }

func answer(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that went away needs no answer
	return nil
}
