package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"farmhand/internal/problem"
)

// How many receipts GET /?farm=W shows: by itself, and at most.
const (
	shownReceipts = 20
	maxReceipts   = 2000
)

// Handler serves the controller's API:
//
//	GET /              all farms
//	GET /?farm=W       one farm: settings with their origins, receipts (&receipts=20)
//	PATCH /?farm=W     {"slots": 4, "policy": null, "mode": "paused", "for": "30m"}
//	POST /             one step, which is what a schedule calls
func (c *Controller) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" && r.URL.Path != "" {
			problem.Write(w, problem.New(http.StatusNotFound, "not-found", "the controller has only one path").At("path", "use /"))
			return
		}
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			c.get(w, r)
		case http.MethodPatch:
			c.patch(w, r)
		case http.MethodPost:
			c.post(w, r)
		default:
			w.Header().Set("Allow", "GET, HEAD, PATCH, POST")
			problem.Write(w, problem.New(http.StatusMethodNotAllowed, "method", r.Method+" is not served").At("method", "use GET, PATCH or POST"))
		}
	})
}

// Guard serves the API behind protect. A schedule, which cannot send a token, may
// only take a step, with an empty body; it is told nothing of the farms.
func (c *Controller) Guard(protect func(http.Handler) http.Handler) http.Handler {
	protected := protect(c.Handler())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheduled := r.Method == http.MethodPost && r.URL.Path == "/" && r.ContentLength == 0 && r.Header.Get("Authorization") == ""
		if !scheduled {
			protected.ServeHTTP(w, r)
			return
		}
		defer c.stepped()
		if c.mayStep() { // else it has just been done, or tried
			if err := c.Step(context.WithoutCancel(r.Context())); err != nil {
				c.unavailable(w, err)
				return
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// mayStep reports whether the last pulse began long enough ago for a stranger to
// ask for another one, and counts this as one.
func (c *Controller) mayStep() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.lastTry) < lookTime {
		return false
	}
	c.lastTry = time.Now()
	return true
}

// stepped notes that a schedule has asked for a step, so that who made it call can
// see that the call came.
func (c *Controller) stepped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastStep = time.Now()
}

// find returns the farm that the query names, or answers that there is none.
func (c *Controller) find(w http.ResponseWriter, r *http.Request) *farm {
	name := r.URL.Query().Get("farm")
	c.mu.Lock()
	f := c.farms[name]
	c.mu.Unlock()
	if f == nil {
		problem.Write(w, problem.New(http.StatusNotFound, "unknown-farm", "there is no farm "+clip(name)).
			At("farm", `deploy the function with the label farmhand.worker: "true"`))
	}
	return f
}

func (c *Controller) get(w http.ResponseWriter, r *http.Request) {
	if !r.URL.Query().Has("farm") {
		answer(w, c.Overview(r.Context()))
		return
	}
	n := shownReceipts
	if text := r.URL.Query().Get("receipts"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 2 || n > maxReceipts {
			problem.Write(w, problem.New(http.StatusUnprocessableEntity, "invalid-parameter", "so many receipts cannot be shown").
				At("receipts", fmt.Sprintf("ask for 2 to %d", maxReceipts)))
			return
		}
	}
	if f := c.find(w, r); f != nil {
		answer(w, c.view(r.Context(), f, n))
	}
}

func (c *Controller) patch(w http.ResponseWriter, r *http.Request) {
	f := c.find(w, r)
	if f == nil {
		return
	}
	changes, forTime, p := decodePatch(http.MaxBytesReader(w, r.Body, 64<<10))
	if p != nil {
		problem.Write(w, p)
		return
	}
	err := c.Override(r.Context(), f.name, changes, forTime)
	var bad *BadSetting
	switch {
	case errors.As(err, &bad):
		problem.Write(w, problem.New(http.StatusUnprocessableEntity, "invalid-setting", bad.Error()).At(bad.Field, bad.Fix))
	case err != nil:
		c.unavailable(w, err)
	default:
		f.mu.Lock()
		worker := f.worker
		f.mu.Unlock()
		kept, err := c.cfg.Keeper.Kept(r.Context(), f.name)
		if err != nil {
			c.unavailable(w, err)
			return
		}
		over, _ := decodeOverrides(kept.Overrides) // we have just written them
		e := settle(worker, over.live(kept.Now))
		answer(w, FarmView{Name: f.name, Mode: e.Mode, Policy: e.Policy, Desired: worker.Desired, Ready: worker.Ready, Settings: e.Origins, Problems: e.Problems})
	}
}

func (c *Controller) unavailable(w http.ResponseWriter, err error) {
	c.cfg.Log.Warn("a call could not be served", "error", err)
	problem.Write(w, problem.New(http.StatusServiceUnavailable, "unavailable", "the platform or Redis could not be reached; the function's log has it").After(2*time.Second))
}

// post takes one step.
func (c *Controller) post(w http.ResponseWriter, r *http.Request) {
	if err := c.Step(context.WithoutCancel(r.Context())); err != nil { // a client that goes leaves nothing half done
		c.unavailable(w, err)
		return
	}
	answer(w, c.Overview(r.Context()))
}

// decodePatch reads a flat object of settings: text, numbers, or null.
func decodePatch(body interface{ Read([]byte) (int, error) }) (changes map[string]*string, forTime time.Duration, p *problem.Problem) {
	bad := func(field, fix string) *problem.Problem {
		return problem.New(http.StatusUnprocessableEntity, "invalid-setting", "the overrides cannot be read").At(field, fix)
	}
	var raw map[string]any
	d := json.NewDecoder(body)
	d.UseNumber()
	if err := d.Decode(&raw); err != nil {
		return nil, 0, bad("body", `send an object such as {"slots": 4, "policy": null, "mode": "paused", "for": "30m"}`)
	}
	if d.More() {
		return nil, 0, bad("body", "send one object and nothing after it")
	}
	changes = map[string]*string{}
	for name, v := range raw {
		name = strings.TrimPrefix(name, "farmhand.")
		if _, twice := changes[name]; twice {
			return nil, 0, bad(name, "send each setting once")
		}
		switch v := v.(type) {
		case nil:
			changes[name] = nil
		case string:
			changes[name] = &v
		case json.Number:
			s := v.String()
			changes[name] = &s
		default:
			return nil, 0, bad(name, "send text, a number, or null to remove the override")
		}
	}
	if v, ok := changes["for"]; ok {
		delete(changes, "for")
		d, err := time.Duration(0), error(nil)
		if v != nil {
			d, err = time.ParseDuration(*v)
		}
		if err != nil || d <= 0 || d > 30*24*time.Hour {
			return nil, 0, bad("for", "send a duration up to 720h, such as 30m, or leave it out")
		}
		forTime = d
	}
	if len(changes) == 0 {
		return nil, 0, bad("body", "name at least one setting")
	}
	return changes, forTime, nil
}

func clip(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("%.80s…", s)
	}
	return s
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that went away needs no answer
}
