package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"farmhand/internal/problem"
)

const good = `{"spot":100,"strike":105,"rate":0.02,"volatility":0.25,"maturity":1,"kind":"call","paths":1000,"seed":7}`

func TestBadTasksNameTheField(t *testing.T) {
	for body, field := range map[string]string{
		``:            "",
		`[]`:          "",
		`{"spot":100`: "",
		good + `{}`:   "",
		strings.Replace(good, `"spot":100`, `"spot":0`, 1):                        "spot",
		strings.Replace(good, `"spot":100`, `"spot":-3`, 1):                       "spot",
		strings.Replace(good, `"spot":100`, `"spot":"100"`, 1):                    "spot",
		strings.Replace(good, `"spot":100`, `"spot":null`, 1):                     "spot",
		strings.Replace(good, `"spot":100`, `"spot":1e999`, 1):                    "spot",
		strings.Replace(good, `"spot":100,`, ``, 1):                               "spot",
		strings.Replace(good, `"spot":100`, `"Spot":100`, 1):                      "spot",
		strings.Replace(good, `"spot":100`, `"spot":100,"spot":1`, 1):             "spot",
		strings.Replace(good, `"spot":100`, `"spot":100,"SPOT":1`, 1):             "SPOT",
		strings.Replace(good, `"volatility":0.25`, `"volatility":0`, 1):           "volatility",
		strings.Replace(good, `"maturity":1`, `"maturity":-1`, 1):                 "maturity",
		strings.Replace(good, `"call"`, `"straddle"`, 1):                          "kind",
		strings.Replace(good, `"paths":1000`, `"paths":0`, 1):                     "paths",
		strings.Replace(good, `"paths":1000`, `"paths":1.5`, 1):                   "paths",
		strings.Replace(good, `"paths":1000`, `"paths":50000001`, 1):              "paths",
		strings.Replace(good, `"seed":7`, `"seed":-7`, 1):                         "seed",
		strings.Replace(good, `"seed":7`, `"seed":7,"dividend":1`, 1):             "dividend",
		strings.Replace(good, `"strike":105`, `"strike":105,"strike":"twice"`, 1): "strike",
	} {
		_, err := ParseTask([]byte(body))
		var p *problem.Problem
		if !errors.As(err, &p) {
			t.Errorf("%s: %v", body, err)
			continue
		}
		want := 422
		if field == "" {
			want = 400
		}
		if p.Field != field || p.Status != want || (field != "" && p.Fix == "") {
			t.Errorf("%s: %d, field %q, fix %q: %v", body, p.Status, p.Field, p.Fix, p)
		}
	}
	one := strings.Replace(good, `"paths":1000`, `"paths":1`, 1)
	if _, err := ParseTask([]byte(one)); err != nil {
		t.Errorf("%s: %v", one, err)
	}
	if err := (Task{Option: Option{Spot: math.NaN()}}).validate(); err == nil {
		t.Error("accepted NaN")
	}
}

func TestHandler(t *testing.T) {
	post := func(method, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handle(w, httptest.NewRequest(method, "/", strings.NewReader(body)))
		return w
	}
	w := post("POST", good)
	var e Estimate
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != 200 || e.Paths != 1000 || e.Seed != 7 || e.StdErr <= 0 {
		t.Errorf("%d %s %v", w.Code, w.Body, err)
	}
	for body, want := range map[string]int{"{": 400, `{"spot":1}`: 422, strings.Repeat(" ", maxBody+1): 413} {
		if w := post("POST", body); w.Code != want || w.Header().Get("Content-Type") != problem.ContentType {
			t.Errorf("%.20s: %d %s", body, w.Code, w.Body)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w = httptest.NewRecorder()
	handle(w, httptest.NewRequestWithContext(gone, "POST", "/", strings.NewReader(good)))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("cancelled: %d %s", w.Code, w.Body)
	}
	if w := post("GET", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
}

// What ParseTask accepts can be priced and written as JSON.
func FuzzParseTask(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"spot":1e9,"strike":1e-6,"rate":-1,"volatility":3,"maturity":50,"kind":"call","paths":1}`))
	f.Add([]byte(`{"a":{"b":[1,2]},"a":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		task, err := ParseTask(body)
		if err != nil {
			if p := (*problem.Problem)(nil); !errors.As(err, &p) {
				t.Fatalf("not a problem: %v", err)
			}
			return
		}
		e, err := Price(t.Context(), task.Option, min(task.Paths, 1000), task.Seed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Fatalf("%+v: %v", task, err)
		}
	})
}
