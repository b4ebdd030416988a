package trainer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"farmhand/internal/problem"
	"farmhand/trainer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var learners, scenarios = []string{"dqn", "ppo"}, []string{"bursty", "constant"}

func TestRequest(t *testing.T) {
	r, err := trainer.ParseRequest([]byte(`{"farm": "web", "seed": 3}`), learners, scenarios)
	want := trainer.DefaultRequest()
	want.Farm, want.Seed = "web", 3
	if err != nil || r != want {
		t.Errorf("%+v, %v; want %+v", r, err, want)
	}
	for body, budget := range map[string]int{`{"farm": "web", "from": "general"}`: trainer.DefaultBudget / 4, `{"farm": "web", "from": "general", "budget": 7}`: 7} {
		if r, err := trainer.ParseRequest([]byte(body), learners, scenarios); err != nil || r.Budget != budget {
			t.Errorf("%s has %d steps, %v: want %d", body, r.Budget, err, budget)
		}
	}
}

// What cannot be is refused with the field and what would be right.
func TestBadRequests(t *testing.T) {
	for _, c := range []struct{ body, field, fix string }{
		{`{}`, "farm", "scenario"},
		{`{"farm": "` + strings.Repeat("x", 300) + `"}`, "farm", "function"},
		{`{"scenario": "bursy"}`, "scenario", "bursty, constant"},
		{`{"farm": "web", "learner": "gpt"}`, "learner", "dqn, ppo"},
		{`{"farm": "web", "budget": 0}`, "budget", "1 to 5000000"},
		{`{"farm": "web", "budget": -5}`, "budget", "1 to 5000000"},
		{`{"farm": "web", "budget": 1000000000000}`, "budget", "1 to 5000000"},
		{`{"farm": "web", "budget": 1e300}`, "budget", "whole number"},
		{`{"farm": "web", "budget": "many"}`, "budget", "whole number"},
		{`{"farm": "web", "seed": -1}`, "seed", "not negative"},
		{`{"farm": "web", "round": -1}`, "round", "leave it out"},
		{`{"farm": "web", "rule": "magic"}`, "rule", "staffing"},
		{`{"farm": "web", "from": "champion"}`, "from", "use general"},
		{`{"farm": "web", "from": 7}`, "from", "text"},
		{`{"farm": "web", "from": ["general"]}`, "from", "text"},
		{`{"farm": "web", "from": {"file": "general"}}`, "from", "text"},
		{`{"farm": "web", "from": "General"}`, "from", "use general"},
		{`{"farm": "web", "run": "../x"}`, "run", "letters, digits and hyphens"},
		{`{"farm": "web", "schedule": true}`, "schedule", "leave it out"},
		{`{"farm": "web", "bugdet": 5}`, "bugdet", "budget"},
		{`{"farm": "web"} {}`, "body", "one JSON object"},
		{`[]`, "body", "farm"},
		{`{"farm": `, "body", "farm"},
		{`{"farm": 7}`, "farm", "text"},
	} {
		_, err := trainer.ParseRequest([]byte(c.body), learners, scenarios)
		var p *problem.Problem
		if !errors.As(err, &p) || p.Status != http.StatusUnprocessableEntity || p.Field != c.field || !strings.Contains(p.Fix, c.fix) {
			t.Errorf("%.60s: %v; want field %s, fix %q", c.body, err, c.field, c.fix)
		}
	}
}

func TestTickets(t *testing.T) {
	key := trainer.Key("sesame")
	good := key.Ticket("a", 3)
	if !key.Good(good) || strings.Contains(good.MAC, "sesame") {
		t.Errorf("%+v is not good", good)
	}
	for _, bad := range []trainer.Ticket{{Run: "a", Slice: 4, MAC: good.MAC}, {Run: "b", Slice: 3, MAC: good.MAC}, {Run: "a", Slice: 3}, trainer.Key("other").Ticket("a", 3)} {
		if key.Good(bad) {
			t.Errorf("%+v is good", bad)
		}
	}
	body := []byte(`{"farm":"web"}`)
	if !key.Signed(body, key.Sign(body)) || key.Signed([]byte(`{"farm":"wob"}`), key.Sign(body)) || key.Signed(body, "") || key.Signed(body, good.MAC) {
		t.Error("signatures are not told apart")
	}
	if open := trainer.Key(""); !open.Good(trainer.Ticket{Run: "a"}) || !open.Signed(body, "") {
		t.Error("a suite without a token refuses")
	}
}

func TestQueue(t *testing.T) {
	status := http.StatusAccepted
	var got trainer.Ticket
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/async-function/trainer" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s %s, Authorization %q", r.Method, r.URL.Path, r.Header.Get("Authorization"))
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
	}))
	defer gateway.Close()
	q, err := trainer.NewQueue(gateway.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	want := trainer.Key("k").Ticket("a", 7)
	if err := q.Post(t.Context(), want); err != nil || got != want {
		t.Errorf("%v arrived, %v", got, err)
	}
	for _, status = range []int{200, 302, 404, 500} { // nothing but 202 says that it is stored
		if err := q.Post(t.Context(), want); err == nil {
			t.Errorf("%d was taken for stored", status)
		}
	}
	if _, err := trainer.NewQueue("gateway:8080"); err == nil {
		t.Error("no URL was taken")
	}
}

// overdue is a Store of which only Overdue is asked.
type overdue struct {
	trainer.Store
	answers chan []trainer.Ticket
}

func (o *overdue) Overdue(context.Context) ([]trainer.Ticket, error) {
	list := <-o.answers
	if list == nil {
		return nil, errors.New("Redis is away")
	}
	return list, fmt.Errorf("%w: another one", trainer.ErrDamaged)
}

type posts chan trainer.Ticket

func (p posts) Post(_ context.Context, t trainer.Ticket) error {
	p <- t
	return errors.New("the gateway is away")
}

// A Watch posts what stands still, and goes on when store or gateway are away, or a run
// is damaged.
func TestWatch(t *testing.T) {
	store, posted, tick := &overdue{answers: make(chan []trainer.Ticket, 4)}, make(posts, 4), make(chan time.Time)
	key := trainer.Key("sesame")
	var log strings.Builder
	w := trainer.StartWatch(store, posted, key, tick, slog.New(slog.NewTextHandler(&log, nil)))
	store.answers <- nil
	store.answers <- []trainer.Ticket{{Run: "a", Slice: 2}, {Run: "b", Slice: 5}}
	store.answers <- []trainer.Ticket{{Run: "c", Slice: 0}}
	for range 3 {
		tick <- time.Time{}
	}
	w.Stop()
	close(posted)
	var runs string
	for ticket := range posted {
		if !key.Good(ticket) {
			t.Errorf("%+v is not good", ticket)
		}
		runs += ticket.Run
	}
	if runs != "abc" {
		t.Errorf("posted: %s", runs)
	}
	if told := log.String(); strings.Count(told, "cannot be watched") != 1 || strings.Count(told, "given up") != 2 {
		t.Errorf("told: %s", told)
	}
}
