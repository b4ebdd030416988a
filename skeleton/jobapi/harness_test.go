package jobapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"farmhand/internal/problem"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/apitest"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/redisledger"
)

// echo answers with the task's own bytes.
var echo apitest.Caller = apitest.Echo

// bench is a dispatcher's API on a real Redis, with farm "echo".
type bench struct {
	t     *testing.T
	url   string
	store *redisledger.Store
	api   *jobapi.API
}

// setup serves the API; without a worker nothing takes tasks.
func setup(t *testing.T, cfg jobapi.Config, limits ledger.Limits, worker apitest.Caller) *bench {
	t.Helper()
	return setupOn(t, nil, cfg, limits, worker)
}

func setupOn(t *testing.T, rdb *redis.Client, cfg jobapi.Config, limits ledger.Limits, worker apitest.Caller) *bench {
	t.Helper()
	store, api := apitest.Start(t, apitest.Options{Config: cfg, Limits: limits, Redis: rdb, Worker: worker})
	srv := httptest.NewServer(api)
	t.Cleanup(func() { api.Close(); srv.Close() })
	return &bench{t: t, url: srv.URL, store: store, api: api}
}

// do sends a request; header lines are "Name: value".
func (b *bench) do(method, path string, body io.Reader, header ...string) (int, http.Header, []byte) {
	b.t.Helper()
	req, err := http.NewRequest(method, b.url+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, raw
}

// submit posts and expects success.
func (b *bench) submit(path, media, body string, header ...string) jobapi.Submitted {
	b.t.Helper()
	code, _, raw := b.do("POST", path, strings.NewReader(body), append(header, "Content-Type: "+media)...)
	if code >= 300 {
		b.t.Fatalf("POST %s: %d %s", path, code, raw)
	}
	var s jobapi.Submitted
	if err := json.Unmarshal(raw, &s); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// results reads a stream of results to its trailer.
func (b *bench) results(job, query string) ([]jobapi.Result, jobapi.Trailer) {
	b.t.Helper()
	code, _, raw := b.do("GET", "/jobs/"+job+"/results?"+query, nil)
	if code != 200 {
		b.t.Fatalf("results: %d %s", code, raw)
	}
	lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	var list []jobapi.Result
	for _, line := range lines[:len(lines)-1] {
		var r jobapi.Result
		if err := json.Unmarshal(line, &r); err != nil {
			b.t.Fatalf("%v: %s", err, line)
		}
		list = append(list, r)
	}
	var trailer jobapi.Trailer
	if err := json.Unmarshal(lines[len(lines)-1], &trailer); err != nil {
		b.t.Fatal(err)
	}
	return list, trailer
}

// refused expects a problem document.
func (b *bench) refused(method, path string, body io.Reader, header ...string) (int, problem.Problem) {
	b.t.Helper()
	code, h, raw := b.do(method, path, body, header...)
	var p problem.Problem
	if err := json.Unmarshal(raw, &p); err != nil || h.Get("Content-Type") != problem.ContentType || p.Status != code {
		b.t.Fatalf("%s %s: no problem document: %d %s", method, path, code, raw)
	}
	return code, p
}

// untouched fails the test if anything was accepted.
func (b *bench) untouched() {
	b.t.Helper()
	audit, err := b.store.Farm("echo").Audit(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	if audit.Counted != (ledger.Counts{}) || len(audit.Problems) > 0 {
		b.t.Errorf("something was accepted: %+v", audit)
	}
}
