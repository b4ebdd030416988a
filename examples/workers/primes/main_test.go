package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	for body, want := range map[string]string{
		`{"below": 100}`: `{"primes":25}`, `{"below": 3}`: `{"primes":1}`, `{"below": 0}`: `{"primes":0}`, `{"below": -1}`: "want", `[]`: "want", `{"belw": 1}`: "want", "": "want",
	} {
		w := httptest.NewRecorder()
		count(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		if (w.Code == 200) == (want == "want") || !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}
