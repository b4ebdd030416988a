package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"farmhand/internal/fn"
	"farmhand/policy"
	"farmhand/registry"
	"farmhand/trainer"
	"farmhand/trainer/trainapi"
)

// fakeTrainer is a trainer whose runs are over when they were looked at twice.
type fakeTrainer struct {
	trainer.Store
	runs  map[string]*trainer.Run
	looks int
	end   trainer.Run // what runs come to
}

func (f *fakeTrainer) Start(_ context.Context, id string, r trainer.Request) (trainer.Run, bool, error) {
	switch r.Farm {
	case "elsewhere":
		return trainer.Run{}, false, errNoFarm
	case "never-late":
		return trainer.Run{}, false, trainer.ErrNoDeadline
	}
	r.Run = ""
	f.runs[id] = &trainer.Run{ID: id, Request: r, State: trainer.Running, Progress: trainer.Progress{Phase: trainer.Learn, Share: 0.5, Steps: 1000,
		OnTime: 0.97, Workers: 3.5, Return: -2.5, Left: 90}}
	return *f.runs[id], true, nil
}

var errNoFarm = errors.New("work: no such farm")

func (f *fakeTrainer) Scheduled(context.Context) error             { return nil }
func (f *fakeTrainer) Slice(context.Context, trainer.Ticket) error { return nil }

func (f *fakeTrainer) Get(_ context.Context, id string) (trainer.Run, error) {
	r := f.runs[id]
	if r == nil {
		return trainer.Run{}, trainer.ErrUnknown
	}
	if f.looks++; f.looks >= 2 {
		r.State, r.Progress, r.Error, r.Ended = f.end.State, f.end.Progress, f.end.Error, time.Now()
	}
	return *r, nil
}

func (f *fakeTrainer) Cancel(ctx context.Context, id string) (trainer.Run, error) {
	r, err := f.Get(ctx, id)
	r.State = trainer.Cancelled
	return r, err
}

func (f *fakeTrainer) List(context.Context) (list []trainer.Run, err error) {
	for _, r := range f.runs {
		list = append(list, *r)
	}
	return list, nil
}

// trained runs farmhand train against a fake trainer.
func trained(t *testing.T, f *fakeTrainer, args ...string) (out, talk string, code int) {
	t.Helper()
	api := trainapi.New(trainapi.Config{Trainer: f, Store: f, Key: "s3cret", Learners: []string{"dqn"}, Scenarios: []string{"bursty"}, NoFarm: errNoFarm,
		Protect: func(next http.Handler) http.Handler { return fn.RequireToken("s3cret", next) }})
	mux := http.NewServeMux()
	mux.Handle("/function/trainer", http.StripPrefix("/function/trainer", api))
	srv := httptest.NewServer(mux)
	defer srv.Close()
	t.Setenv("FARMHAND_GATEWAY", srv.URL)
	t.Setenv("FARMHAND_TOKEN", "s3cret")
	var o, e strings.Builder
	cmd := rootCmd()
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	cmd.SetArgs(append([]string{"train"}, args...))
	err := cmd.ExecuteContext(t.Context())
	var coded *exitError
	if errors.As(err, &coded) {
		code = coded.code
	} else if err != nil {
		code = exitFailed
	}
	if err != nil {
		e.WriteString(err.Error())
	}
	return o.String(), e.String(), code
}

func setupTrainer(end trainer.State, promoted bool) *fakeTrainer {
	f := &fakeTrainer{runs: map[string]*trainer.Run{}}
	f.end.State, f.end.Error = end, "no luck"
	f.end.Progress = trainer.Progress{Phase: trainer.Judge, Share: 1, Version: strings.Repeat("ab", 32), Promoted: promoted,
		Verdict: &registry.Verdict{Outcome: registry.Rejected, Checks: []registry.Check{{Metric: "worker_seconds_ratio", Against: "staffing", Work: "farm:web"}}},
		Calibration: &trainer.Calibration{Scenario: "farm:web", Telemetry: true, Seconds: 7200, Tasks: 1e6, Rule: "staffing",
			Distances: []trainer.Distance{{Of: "service time", KS: 0.012, Simulated: 0.04, Measured: policy.Unknown}}}}
	if promoted {
		f.end.Progress.Verdict.Outcome = registry.Promoted
	}
	return f
}

func TestTrainAsync(t *testing.T) {
	f := setupTrainer(trainer.Done, true)
	out, talk, code := trained(t, f, "--async", "--farm", "web", "--steps", "2000", "--seed", "7", "--follow")
	if code != 0 || !strings.Contains(out, "promoted, champion now") || !strings.Contains(out, "Kolmogorov–Smirnov distance 0.012") {
		t.Errorf("code %d: %s\n%s", code, out, talk)
	}
	if !strings.Contains(talk, "learn 50 %  1000 of 2000 steps  return -2.5  on time 97.0 %  workers 3.50  1m30s left") {
		t.Errorf("told: %s", talk)
	}
	for _, r := range f.runs {
		if r.Request.Farm != "web" || r.Request.Budget != 2000 || r.Request.Seed != 7 || r.Request.Learner != trainer.DefaultLearner {
			t.Errorf("%+v", r.Request)
		}
	}
}

// What does not become the champion ends with the code of a refusal, what fails with
// that of a failure, what somebody else cancelled with that of what is done in part.
func TestTrainAsyncOutcomes(t *testing.T) {
	if out, talk, code := trained(t, setupTrainer(trainer.Done, false), "--async", "--farm", "web", "--follow"); code != exitRefused || !strings.Contains(out, "rejected") {
		t.Errorf("rejected: code %d: %s\n%s", code, out, talk)
	}
	if out, _, code := trained(t, setupTrainer(trainer.Done, false), "--async", "--scenario", "bursty", "--follow"); code != 0 || !strings.Contains(out, "rejected, for no farm") {
		t.Errorf("for no farm: code %d: %s", code, out)
	}
	if _, talk, code := trained(t, setupTrainer(trainer.Failed, false), "--async", "--scenario", "bursty", "--follow"); code != exitFailed || !strings.Contains(talk, "no luck") {
		t.Errorf("failed: code %d: %s", code, talk)
	}
	cancelled := setupTrainer(trainer.Cancelled, false)
	for _, args := range [][]string{{"--async", "--farm", "web", "--follow"}, {"--run", "a"}, {"--run", "a", "--follow"}} {
		if args[0] == "--run" {
			cancelled.runs["a"] = &trainer.Run{ID: "a", State: trainer.Cancelled}
		}
		if _, talk, code := trained(t, cancelled, args...); code != exitPartly || !strings.Contains(talk, "the training was cancelled") {
			t.Errorf("%v: cancelled elsewhere: code %d: %s", args, code, talk)
		}
	}
	f := setupTrainer(trainer.Done, false)
	if _, _, err := f.Start(t.Context(), "a", trainer.Request{Farm: "web"}); err != nil {
		t.Fatal(err)
	}
	if out, talk, code := trained(t, f, "--cancel", "a"); code != 0 || !strings.Contains(out, "cancelled") {
		t.Errorf("cancelled: code %d: %s\n%s", code, out, talk)
	}
	out, _, _ := trained(t, f, "--run", "a", "--json")
	var r trainer.Run
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.ID != "a" {
		t.Errorf("%v: %s", err, out)
	}
}

// What is wrong is told in the words of the command line.
func TestTrainAsyncRefusals(t *testing.T) {
	for want, args := range map[string][]string{
		"want --farm or --scenario":         {"--async"},
		"--follow goes with --async":        {"--follow"},
		"--out does not go with":            {"--async", "--farm", "web", "--out", "x"},
		"--steps goes with --async":         {"--cancel", "a", "--steps", "7"},
		"want one of --async, --run":        {"--cancel", "a", "--run", "b"},
		"the trainer learns in one":         {"--async", "--scenario", "bursty,flash"},
		"farmhand farm list lists them":     {"--async", "--farm", "elsewhere"},
		"farm set WORKER deadline=2s":       {"--async", "--farm", "never-late"},
		"--steps: 0 steps cannot be":        {"--async", "--farm", "web", "--steps", "0"},
		`--learner: "gpt" is no learner`:    {"--async", "--farm", "web", "--learner", "gpt"},
		`--scenario: "mars" is no scenario`: {"--async", "--scenario", "mars"},
		"farmhand top shows those that run": {"--run", "nobody"},
	} {
		if _, talk, code := trained(t, setupTrainer(trainer.Done, true), args...); code == 0 || !strings.Contains(talk, want) {
			t.Errorf("%v: code %d: %s; want %q", args, code, talk, want)
		}
	}
}

// farmhand top shows what is under way and what has just ended.
func TestTopTrainings(t *testing.T) {
	utc(t)
	screen, _, _ := shown(topModel{every: time.Second}, topSeen{at: time.Now(), trainings: []trainer.Run{
		{ID: "a", State: trainer.Running, Held: true, Request: trainer.Request{Farm: "web", Budget: 100}, Progress: trainer.Progress{Phase: trainer.Learn, Share: 0.25, Steps: 30, OnTime: policy.Unknown, Return: policy.Unknown, Left: policy.Unknown}},
		{ID: "b", State: trainer.Failed, Error: "no\nluck", Request: trainer.Request{Scenario: "bursty"}},
	}})
	for _, want := range []string{"training a  web  learn 25 %  30 of 100 steps", "training b  bursty  failed: no luck"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
}
