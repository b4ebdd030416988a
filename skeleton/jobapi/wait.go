package jobapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"farmhand/internal/problem"
	"farmhand/skeleton/ledger"
)

// Submitted is the answer to a submission.
type Submitted struct {
	Job        JobView  `json:"job"`
	First      int      `json:"first"`      // index of the first task of this submission
	Tasks      int      `json:"tasks"`      // tasks accepted
	Duplicates int      `json:"duplicates"` // tasks left out: the farm knows their key
	Repeated   bool     `json:"repeated,omitempty"`
	Durability string   `json:"durability"`
	Results    []Result `json:"results,omitempty"` // with wait, when the job has ended
	Cursor     int      `json:"cursor,omitempty"`  // with wait: where the results go on
	More       bool     `json:"more,omitempty"`    // with wait: results follow after the cursor
	Links      Links    `json:"links"`
}

// Links lead to what belongs to a job; they are relative to the API's root.
type Links struct {
	Job     string `json:"job"`
	Results string `json:"results"`
}

// commit makes the submission visible and answers.
func (s *submission) commit(w http.ResponseWriter) error {
	// The whole body is here: from now on the client's going away is no reason
	// to leave it undecided, nor is the server's time a reason not to answer.
	hold(w, 0)
	ctx := context.WithoutCancel(s.r.Context())
	receipt, err := s.stage.Commit(ctx)
	s.body.share.shrink(0) // the bodies are gone; the answer may be held for long
	if errors.Is(err, ledger.ErrUnavailable) {
		return s.unknown(err)
	}
	if err != nil {
		s.abort()
		return err
	}
	id := receipt.Job.ID
	answer := Submitted{Job: s.api.view(receipt.Job), First: receipt.First, Tasks: receipt.Tasks, Duplicates: receipt.Duplicates,
		Repeated: receipt.Repeated, Durability: s.api.durable.get(ctx), Links: Links{Job: "jobs/" + id, Results: "jobs/" + id + "/results"}}
	status := http.StatusCreated
	if receipt.Repeated {
		status = http.StatusOK
	}
	if s.o.wait > 0 {
		status = http.StatusAccepted
		if s.wait(w, &answer) {
			status = http.StatusOK
		}
	}
	hold(w, 0)
	w.Header().Set("Location", s.location(id))
	return reply(w, status, answer)
}

// unknown says that nobody knows whether the submission was accepted: the
// store went away while it was committed.
func (s *submission) unknown(err error) error {
	s.api.cfg.Log.Warn("the outcome of a commit is unknown", "job", s.job, "error", err)
	s.abort() // does nothing if it was committed
	p := problem.New(http.StatusServiceUnavailable, "outcome-unknown", "Redis went away while the submission was being accepted: all of it or nothing was").
		At("Idempotency-Key", "send it again with the same Idempotency-Key").After(2 * time.Second)
	if s.r.Header.Get("Idempotency-Key") == "" {
		p.Fix = "look whether GET /jobs/{extra.job} knows its tasks before you send it again; with an Idempotency-Key you could simply repeat it"
	}
	p.Extra = map[string]any{"job": s.job}
	return p
}

// location is relative to what the client called, since only the client knows
// where the gateway has mounted this function.
func (s *submission) location(id string) string {
	switch s.r.URL.Path {
	case "/jobs":
		return "jobs/" + id
	case "/", "":
		return "?job=" + id
	}
	return "../" + id // from jobs/{id}/tasks
}

// wait holds until the job has ended and adds its results to the answer. What
// goes wrong here is no reason to tell the client anything but that the tasks
// were accepted.
func (s *submission) wait(w http.ResponseWriter, answer *Submitted) (ended bool) {
	hold(w, s.o.wait)
	ctx, id := s.r.Context(), answer.Job.ID
	l, err := s.api.job(id)
	if err == nil {
		ended, err = s.api.waitFor(ctx, l, id, s.o.wait)
	}
	if err != nil {
		s.api.cfg.Log.Warn("a wait was cut short", "job", id, "error", err)
		return false
	}
	// Progress is told in any case, results of a job that has ended only.
	if !ended {
		if j, err := l.Job(ctx, id); err == nil {
			answer.Job = s.api.view(j)
		}
		return false
	}
	// The share is given back when the answer was written.
	page, err := s.api.page(ctx, l, id, ledger.Query{Ordered: answer.Job.Ordered, MaxBytes: answerBytes}, s.body.share, documentCopies)
	var busy *problem.Problem
	if errors.As(err, &busy) {
		answer.More = true
		return true
	}
	if err != nil {
		s.api.cfg.Log.Warn("results could not be read", "job", id, "error", err)
		return false
	}
	answer.Job, answer.Cursor, answer.More = s.api.view(page.Job), page.Next, !page.End
	for _, res := range page.Results {
		answer.Results = append(answer.Results, resultView(res))
	}
	return true
}

// hold prepares a connection for an answer that comes late: the server's read
// timeout is over by then, and would look like a client that went away.
func hold(w http.ResponseWriter, d time.Duration) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // unsupported only in tests without a connection
	_ = c.SetWriteDeadline(time.Now().Add(d + writeTime))
}

// waitFor holds until the job has ended, the time is over, or the process is
// asked to end.
func (a *API) waitFor(ctx context.Context, l ledger.Ledger, job string, d time.Duration) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	stop := context.AfterFunc(a.closing, cancel)
	defer stop()
	changed, unwatch := watch(ctx, l, job)
	defer unwatch()
	for {
		j, err := l.Job(ctx, job)
		if ctx.Err() != nil {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !j.Ended.IsZero() {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-changed:
		}
	}
}

// watch tells of changes of a job, until ctx ends or stop is called.
func watch(ctx context.Context, l ledger.Ledger, job string) (changed <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	c, over := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(over)
		_ = l.WatchJob(ctx, job, func() { // ends with the context
			select {
			case c <- struct{}{}:
			default:
			}
		})
	}()
	return c, func() { cancel(); <-over }
}
