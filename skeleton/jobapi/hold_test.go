package jobapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/ledger"
)

// A held answer outlasts the server's read and write timeouts, as it does in a
// function.
func TestHeldAnswersOutlastTheServersTimeouts(t *testing.T) {
	release := make(chan struct{})
	b := setup(t, jobapi.Config{}, ledger.Limits{}, func(ctx context.Context, task skeleton.Task, body []byte) skeleton.Call {
		<-release
		return echo(ctx, task, body)
	})
	srv := httptest.NewUnstartedServer(b.api)
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	srv.Start()
	t.Cleanup(srv.Close)
	b.url = srv.URL
	time.AfterFunc(250*time.Millisecond, func() { close(release) }) // several timeouts later
	s := b.submit("/jobs?worker=echo&wait=30s", "text/plain", "x")
	if s.Job.State != "ended" || len(s.Results) != 1 || s.More {
		t.Errorf("%+v", s)
	}
	if results, trailer := b.results(s.Job.ID, "follow=1"); len(results) != 1 || !trailer.End {
		t.Errorf("%+v %+v", results, trailer)
	}
}

// The header Location leads to the job from wherever the gateway has mounted
// the function.
func TestLocation(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, nil)
	srv := httptest.NewServer(http.StripPrefix("/function/dispatcher", b.api))
	t.Cleanup(srv.Close)
	b.url = srv.URL + "/function/dispatcher"
	open := b.submit("/jobs?worker=echo&open=true", "text/plain", "x")
	for _, path := range []string{"/jobs?worker=echo", "/?worker=echo", "/jobs/" + open.Job.ID + "/tasks"} {
		resp, err := http.Post(b.url+path, "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		where, err := resp.Location()
		if err != nil {
			t.Fatal(err)
		}
		job, err := http.Get(where.String())
		if err != nil {
			t.Fatal(err)
		}
		_ = job.Body.Close()
		if job.StatusCode != 200 {
			t.Errorf("%s: Location %q leads to %d", path, resp.Header.Get("Location"), job.StatusCode)
		}
	}
}

// An ordered job's results come in order without being asked to.
func TestOrderedJob(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, echo)
	s := b.submit("/jobs?worker=echo&ordered=true&wait=30s", "application/x-ndjson", strings.Repeat("0\n", 50))
	results, trailer := b.results(s.Job.ID, "")
	if !trailer.End || len(results) != 50 {
		t.Fatalf("%d results, %+v", len(results), trailer)
	}
	for i, r := range results {
		if r.Index != i || s.Results[i].Index != i {
			t.Fatalf("result %d has index %d, with wait %d", i, r.Index, s.Results[i].Index)
		}
	}
	if code, p := b.refused("GET", "/jobs/"+s.Job.ID+"/results?cursor=51", nil); code != 422 || p.Field != "cursor" {
		t.Errorf("%d %+v", code, p)
	}
}

// shaky is a store that fails where a test wants it.
type shaky struct {
	ledger.Store
	commit  func(ledger.Receipt, error) (ledger.Receipt, error)
	results error
}

func (s *shaky) Farm(name string) ledger.Ledger {
	return &shakyFarm{Ledger: s.Store.Farm(name), s: s}
}

type shakyFarm struct {
	ledger.Ledger
	s *shaky
}

func (f *shakyFarm) Stage(ctx context.Context, sub ledger.Submission) (ledger.Stage, error) {
	st, err := f.Ledger.Stage(ctx, sub)
	return &shakyStage{Stage: st, s: f.s}, err
}

func (f *shakyFarm) Results(ctx context.Context, job string, q ledger.Query) (ledger.Page, error) {
	if f.s.results != nil {
		return ledger.Page{}, f.s.results
	}
	return f.Ledger.Results(ctx, job, q)
}

type shakyStage struct {
	ledger.Stage
	s *shaky
}

func (st *shakyStage) Commit(ctx context.Context) (ledger.Receipt, error) {
	r, err := st.Stage.Commit(ctx)
	if st.s.commit != nil {
		return st.s.commit(r, err)
	}
	return r, err
}

// A commit whose answer was lost is neither success nor failure; repeating it
// with its key brings the first receipt.
func TestUnknownOutcome(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, nil)
	store := &shaky{Store: b.store, commit: func(ledger.Receipt, error) (ledger.Receipt, error) {
		return ledger.Receipt{}, fmt.Errorf("%w: connection reset", ledger.ErrUnavailable)
	}}
	srv := httptest.NewServer(jobapi.New(jobapi.Config{Store: store}))
	t.Cleanup(srv.Close)
	b.url = srv.URL
	code, p := b.refused("POST", "/jobs?worker=echo", strings.NewReader("x"), "Idempotency-Key: k")
	if code != 503 || p.Type != "outcome-unknown" || p.Retry == 0 || p.Field != "Idempotency-Key" {
		t.Errorf("%d %+v", code, p)
	}
	store.commit = nil
	s := b.submit("/jobs?worker=echo", "text/plain", "x", "Idempotency-Key: k")
	if extra, _ := p.Extra.(map[string]any); !s.Repeated || s.Job.ID != extra["job"] || s.Job.Total != 1 {
		t.Errorf("%+v after %+v", s, p)
	}
}

// What goes wrong after the tasks were accepted must not look as if they were
// not.
func TestWaitThatFailsStillTellsAcceptance(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, echo)
	srv := httptest.NewServer(jobapi.New(jobapi.Config{Store: &shaky{Store: b.store, results: errors.New("broken")}}))
	t.Cleanup(srv.Close)
	b.url = srv.URL
	s := b.submit("/jobs?worker=echo&wait=30s", "text/plain", "x")
	if s.Tasks != 1 || s.Results != nil {
		t.Errorf("%+v", s)
	}
}
