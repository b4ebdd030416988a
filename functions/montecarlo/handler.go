package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"farmhand/internal/problem"
)

const maxBody = 64 << 10

// handle answers one task.
func handle(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		problem.Write(w, problem.New(http.StatusMethodNotAllowed, "method", "a task comes as the body of a POST"))
		return
	}
	estimate, err := solve(w, r)
	if err != nil {
		problem.Write(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(estimate) // a client that went away needs no answer
}

func solve(w http.ResponseWriter, r *http.Request) (Estimate, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return Estimate{}, problem.New(http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("a task has at most %d bytes", maxBody))
	}
	if err != nil {
		return Estimate{}, problem.New(http.StatusBadRequest, "bad-body", "the body could not be read to its end")
	}
	t, err := ParseTask(body)
	if err != nil {
		return Estimate{}, err
	}
	e, err := Price(r.Context(), t.Option, t.Paths, t.Seed)
	if err != nil { // the caller went away or its time is up: another attempt may do better
		return Estimate{}, problem.New(http.StatusServiceUnavailable, "cancelled", "the call ended before the simulation did")
	}
	return e, nil
}
