package controller

import (
	"encoding/json"
	"net/http"

	"farmhand/internal/problem"
)

// Handler serves the controller's API: GET / the status of all farms, GET
// /?farm=W of one, POST / one step.
func (c *Controller) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", c.get)
	mux.HandleFunc("POST /{$}", c.post)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, problem.New(http.StatusNotFound, "not-found", "the controller serves GET / and POST / only").At("path", "see docs/api.md"))
	})
	return mux
}

func (c *Controller) get(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("farm")
	status := c.Status()
	if name == "" {
		answer(w, status)
		return
	}
	farm, ok := status.Roster.Find(name)
	if !ok {
		problem.Write(w, problem.New(http.StatusNotFound, "unknown-farm", "there is no farm "+name).
			At("farm", `deploy the function with the label farmhand.worker: "true"`))
		return
	}
	answer(w, farm)
}

// post takes one step. It is what a schedule calls, with an empty body.
func (c *Controller) post(w http.ResponseWriter, r *http.Request) {
	if _, err := c.Step(r.Context()); err != nil {
		c.cfg.Log.Warn("step failed; the last roster stays", "error", err)
		problem.Write(w, problem.New(http.StatusServiceUnavailable, "unavailable", "the platform or Redis could not be reached; the function's log has it").After(DefaultInterval))
		return
	}
	answer(w, c.Status())
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that went away needs no answer
}
