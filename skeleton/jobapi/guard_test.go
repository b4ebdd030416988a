package jobapi_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"farmhand/internal/fn"
	"farmhand/internal/problem"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/ledger"
)

// Everything needs the token, but an empty POST / (a schedule) is answered and
// changes nothing, however its body is framed.
func TestGuard(t *testing.T) {
	b := setup(t, jobapi.Config{Log: slog.New(slog.DiscardHandler)}, ledger.Limits{}, nil)
	srv := httptest.NewServer(b.api.Guard(func(next http.Handler) http.Handler { return fn.RequireToken("s3cret", next) }))
	t.Cleanup(srv.Close)
	chunked := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) } // of unknown length
	for _, c := range []struct {
		method, path string
		body         io.Reader
		auth         string
		status       int
	}{
		{"POST", "/", nil, "", 200},
		{"POST", "/", chunked(""), "", 200},
		{"POST", "/", chunked("x"), "", 401},
		{"POST", "/?worker=echo", nil, "", 401},
		{"POST", "/jobs", nil, "", 401},
		{"GET", "/", nil, "", 401},
		{"GET", "/jobs", nil, "Bearer wrong", 401},
		{"GET", "/jobs", nil, "Basic s3cret", 401},
		{"POST", "/jobs?worker=echo", strings.NewReader("x"), "Bearer wrong", 401},
		{"GET", "/jobs", nil, "Bearer s3cret", 200},
	} {
		req, err := http.NewRequest(c.method, srv.URL+c.path, c.body)
		if err != nil {
			t.Fatal(err)
		}
		if c.auth != "" {
			req.Header.Set("Authorization", c.auth)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var p problem.Problem
		err = json.NewDecoder(resp.Body).Decode(&p)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.status {
			t.Errorf("%s %s: %d, want %d (%v)", c.method, c.path, resp.StatusCode, c.status, err)
		}
		if c.status == 401 && (p.Field != "Authorization" || p.Fix == "") {
			t.Errorf("%s %s: %+v", c.method, c.path, p)
		}
	}
	b.untouched()
	req, err := http.NewRequest("POST", srv.URL+"/?worker=echo", chunked("x"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "bearer s3cret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 201 {
		t.Errorf("with the token: %d", resp.StatusCode)
	}
}
