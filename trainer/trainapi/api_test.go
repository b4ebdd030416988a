package trainapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"farmhand/internal/fn"
	"farmhand/internal/problem"
	"farmhand/trainer"
	"farmhand/trainer/trainapi"
)

const (
	token = "sesame"
	key   = trainer.Key(token)
)

var (
	errDraining = errors.New("work: about to end")
	errNoFarm   = errors.New("work: no such farm")
)

// fake is a Trainer and its Store.
type fake struct {
	trainer.Store
	runs      map[string]trainer.Run
	scheduled int
	slices    []trainer.Ticket
	err       error // of a slice, or of a list
}

func (f *fake) Start(_ context.Context, id string, r trainer.Request) (trainer.Run, bool, error) {
	if r.Farm == "elsewhere" {
		return trainer.Run{}, false, errNoFarm
	}
	if run, ok := f.runs[id]; ok {
		return run, false, nil
	}
	if len(f.runs) >= 3 {
		return trainer.Run{}, false, trainer.ErrFull
	}
	r.Run = ""
	f.runs[id] = trainer.Run{ID: id, Request: r, State: trainer.Running}
	return f.runs[id], true, nil
}

func (f *fake) Scheduled(context.Context) error { f.scheduled++; return nil }

func (f *fake) Slice(_ context.Context, t trainer.Ticket) error {
	f.slices = append(f.slices, t)
	return f.err
}

func (f *fake) Get(_ context.Context, id string) (trainer.Run, error) {
	if run, ok := f.runs[id]; ok {
		return run, nil
	}
	return trainer.Run{}, trainer.ErrUnknown
}

func (f *fake) Cancel(ctx context.Context, id string) (trainer.Run, error) {
	run, err := f.Get(ctx, id)
	run.State = trainer.Cancelled
	return run, err
}

func (f *fake) List(context.Context) (list []trainer.Run, err error) {
	for _, r := range f.runs {
		list = append(list, r)
	}
	return list, f.err
}

func setup() (*fake, http.Handler) {
	f := &fake{runs: map[string]trainer.Run{}}
	return f, trainapi.New(trainapi.Config{Trainer: f, Store: f, Key: key, Learners: []string{"dqn"}, Scenarios: []string{"bursty"},
		Protect: func(next http.Handler) http.Handler { return fn.RequireToken(token, next) }, Draining: errDraining, NoFarm: errNoFarm})
}

// call the API; header are names and values.
func call(h http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func run(t *testing.T, w *httptest.ResponseRecorder) (r trainer.Run) {
	t.Helper()
	if w.Code != http.StatusAccepted && w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

const bearer = "Bearer " + token

// Whoever has the token begins a run, through the gateway or through the broker; a
// call that is made again begins no other one.
func TestStart(t *testing.T) {
	f, h := setup()
	body := `{"farm": "web"}`
	r := run(t, call(h, "POST", "/", body, "Authorization", bearer, "X-Call-Id", "call-1"))
	if r.ID != "call-1" || r.Request.Farm != "web" || r.Request.Budget != trainer.DefaultBudget {
		t.Errorf("%+v", r)
	}
	for range 2 {
		if r := run(t, call(h, "POST", "/", body, trainer.HeaderSignature, key.Sign([]byte(body)), "X-Call-Id", "call-2")); r.ID != "call-2" {
			t.Errorf("%+v", r)
		}
	}
	named := `{"farm": "web", "run": "mine", "seed": 7}`
	if r := run(t, call(h, "POST", "/", named, "Authorization", bearer, "X-Call-Id", "call-3")); r.ID != "mine" {
		t.Errorf("%+v", r)
	}
	if len(f.runs) != 3 {
		t.Errorf("%d runs", len(f.runs))
	}
}

func TestSlices(t *testing.T) {
	f, h := setup()
	ticket := func(k trainer.Key) string {
		b, err := json.Marshal(k.Ticket("a", 3))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, nothing := range []error{nil, trainer.ErrHeld, trainer.ErrNotNext, trainer.ErrOver, trainer.ErrUnknown, trainer.ErrLost} {
		f.err = nothing
		w := call(h, "POST", "/", ticket(key))
		var did trainapi.Did
		if err := json.Unmarshal(w.Body.Bytes(), &did); err != nil || w.Code != http.StatusOK || did.Done != (nothing == nil) || (did.Why == "") != did.Done {
			t.Errorf("%v: %d %s", nothing, w.Code, w.Body)
		}
	}
	n := len(f.slices)
	for _, forged := range []string{ticket("other"), `{"run": "a", "slice": 3}`, `{"slice": "x"}`, strings.Replace(ticket(key), ":3", ":4", 1)} {
		if w := call(h, "POST", "/", forged); w.Code/100 != 4 {
			t.Errorf("%s: %d", forged, w.Code)
		}
	}
	if len(f.slices) != n {
		t.Error("a forged ticket was served")
	}
}

// A schedule can send nothing, and is told nothing.
func TestSchedule(t *testing.T) {
	f, h := setup()
	for _, header := range [][]string{nil, {"Authorization", bearer}} {
		if w := call(h, "POST", "/", "", header...); w.Code != http.StatusNoContent || w.Body.Len() > 0 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if f.scheduled != 2 {
		t.Errorf("scheduled %d times", f.scheduled)
	}
}

// What is refused says why, where, and what would be right.
func TestRefusals(t *testing.T) {
	f, h := setup()
	f.runs["a"] = trainer.Run{ID: "a", Request: trainer.DefaultRequest()}
	signed := func(body string) []string { return []string{trainer.HeaderSignature, key.Sign([]byte(body))} }
	auth := []string{"Authorization", bearer}
	f.err = errDraining
	slice, _ := json.Marshal(key.Ticket("a", 0))
	for _, c := range []struct {
		method, target, body string
		header               []string
		status               int
		field                string
	}{
		{"POST", "/", `{"farm": "web"}`, nil, 401, trainer.HeaderSignature},
		{"POST", "/", `{"farm": "web"}`, signed(`{"farm": "wob"}`), 401, trainer.HeaderSignature},
		{"POST", "/", `{"farm": "web"}`, []string{"Authorization", "Bearer no"}, 401, "Authorization"},
		{"POST", "/", `{"farm": "elsewhere"}`, auth, 404, "farm"},
		{"POST", "/", `{"farm": "web", "learner": "gpt"}`, auth, 422, "learner"},
		{"POST", "/", `{"farm": "web", "budget": 0}`, signed(`{"farm": "web", "budget": 0}`), 422, "budget"},
		{"POST", "/", `{"farm": "web", "run": "a"}`, auth, 409, "run"},
		{"POST", "/", strings.Repeat(" ", 100_000), auth, 413, "body"},
		{"POST", "/", "nonsense", auth, 422, "body"},
		{"POST", "/", string(slice), nil, 503, ""},
		{"GET", "/", "", nil, 401, "Authorization"},
		{"GET", "/?run=b", "", auth, 404, "run"},
		{"DELETE", "/?run=b", "", auth, 404, "run"},
		{"DELETE", "/?run=a", "", nil, 401, "Authorization"},
		{"PUT", "/", "", auth, 405, "method"},
		{"GET", "/runs", "", auth, 404, "path"},
		{"POST", "/runs", "", nil, 401, "Authorization"},
	} {
		w := call(h, c.method, c.target, c.body, c.header...)
		var p problem.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != c.status || p.Field != c.field || p.Detail == "" || c.field != "" && p.Fix == "" {
			t.Errorf("%s %s %.60s: %d %s; want %d about %s", c.method, c.target, c.body, w.Code, w.Body, c.status, c.field)
		}
	}
	for i := range 2 {
		call(h, "POST", "/", `{"farm": "web"}`, "Authorization", bearer, "X-Call-Id", string(rune('b'+i)))
	}
	if w := call(h, "POST", "/", `{"farm": "web"}`, "Authorization", bearer, "X-Call-Id", "z"); w.Code != 429 || w.Header().Get("Retry-After") == "" {
		t.Errorf("too many: %d %s", w.Code, w.Body)
	}
}

// What cannot be read is no reason to say that Redis is away, nor to hide what can.
func TestDamage(t *testing.T) {
	f, h := setup()
	f.runs["a"] = trainer.Run{ID: "a", State: trainer.Running}
	slice, _ := json.Marshal(key.Ticket("b", 0))
	for _, c := range []struct {
		err          error
		slice, list  int
		code, detail string
	}{
		{fmt.Errorf("%w: b: nonsense", trainer.ErrDamaged), 500, 200, "damaged-run", "the record of the run is damaged: b"},
		{fmt.Errorf("trainer: list: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), 503, 503, "unavailable", "Redis could not be reached"},
		{fmt.Errorf("trainer: list: %w", io.EOF), 503, 503, "unavailable", "Redis could not be reached"},
		{fmt.Errorf("trainer: list: %w", context.DeadlineExceeded), 503, 503, "unavailable", "Redis could not be reached"},
		{errors.New("trainer: list: WRONGTYPE"), 503, 503, "unavailable", "it could not be done"},
	} {
		f.err = c.err
		w := call(h, "POST", "/", string(slice))
		var p problem.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != c.slice || p.Type != c.code || !strings.HasPrefix(p.Detail, c.detail) {
			t.Errorf("%v: a slice: %d %s", c.err, w.Code, w.Body)
		}
		if w := call(h, "GET", "/", "", "Authorization", bearer); w.Code != c.list || c.list == 200 && !strings.Contains(w.Body.String(), `"run":"a"`) {
			t.Errorf("%v: the list: %d %s", c.err, w.Code, w.Body)
		}
	}
}

func TestLooking(t *testing.T) {
	f, h := setup()
	if w := call(h, "GET", "/", "", "Authorization", bearer); strings.TrimSpace(w.Body.String()) != `{"runs":[]}` {
		t.Errorf("no runs: %s", w.Body)
	}
	f.runs["a"] = trainer.Run{ID: "a", State: trainer.Running}
	if r := run(t, call(h, "GET", "/?run=a", "", "Authorization", bearer)); r.ID != "a" {
		t.Errorf("%+v", r)
	}
	if r := run(t, call(h, "DELETE", "/?run=a", "", "Authorization", bearer)); r.State != trainer.Cancelled {
		t.Errorf("%+v", r)
	}
}
