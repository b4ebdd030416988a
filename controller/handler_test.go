package controller_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/internal/problem"
)

// ask sends a request to a controller and reads the answer, if it is JSON.
func ask(t *testing.T, h http.Handler, method, target, body string) (code int, answer map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s %s: %v: %s", method, target, err, w.Body)
		}
	}
	if kind := w.Header().Get("Content-Type"); w.Code >= 400 && (kind != problem.ContentType || answer["fix"] == nil && answer["retry"] == nil) {
		t.Errorf("%s %s: %d, %s without a way out: %v", method, target, w.Code, kind, answer)
	}
	return w.Code, answer
}

func TestHandler(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("a", 1)
		f := w.add("b", 1, "slots", "4")
		f.Labels["com.openfaas.scale.max"] = "7"
		c := w.create(w.config("A"))
		h := c.Handler()
		if code, body := ask(t, h, "POST", "/", ""); code != 200 || len(body["farms"].([]any)) != 2 {
			t.Errorf("step: %d %v", code, body)
		}
		code, body := ask(t, h, "GET", "/", "")
		if farms := body["farms"].([]any); code != 200 || body["owner"] != "A" || farms[0].(map[string]any)["name"] != "a" || farms[1].(map[string]any)["name"] != "b" {
			t.Errorf("all: %d %v", code, body)
		}
		code, body = ask(t, h, "GET", "/?farm=b", "")
		if code != 200 || body["name"] != "b" || len(body["receipts"].([]any)) != 1 || body["conditions"].(map[string]any)["Healthy"] == nil {
			t.Errorf("one farm: %d %v", code, body)
		}
		for name, want := range map[string]string{"slots": "4 annotation", "max": "7 label", "interval": "2s default", "mode": "act default", "policy": "staffing default"} {
			s := body["settings"].(map[string]any)[name].(map[string]any)
			if got := s["value"].(string) + " " + s["origin"].(string); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		for _, r := range []struct {
			method, target string
			code           int
		}{
			{"GET", "/?farm=c", 404}, {"PATCH", "/?farm=c", 404}, {"GET", "/?farm=", 404}, {"GET", "/nothing", 404}, {"DELETE", "/?farm=a", 405}, {"PUT", "/", 405},
		} {
			if code, body := ask(t, h, r.method, r.target, `{"slots": 2}`); code != r.code {
				t.Errorf("%s %s: %d %v", r.method, r.target, code, body)
			}
		}
		w.away(errAway)
		for _, r := range [][2]string{{"POST", "/"}, {"PATCH", "/?farm=b"}} {
			if code, body := ask(t, h, r[0], r[1], `{"slots": 2}`); code != 503 || strings.Contains(body["detail"].(string), errAway.Error()) {
				t.Errorf("%s while Redis is away: %d %v", r[0], code, body)
			}
		}
		if code, body := ask(t, h, "GET", "/?farm=b", ""); code != 200 || body["name"] != "b" {
			t.Errorf("what is known while Redis is away: %d %v", code, body)
		}
	})
}

// A schedule has no token. It may take a step, and is told nothing.
func TestSchedule(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		c := w.create(w.config("A"))
		refuse := func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
		}
		h := c.Guard(refuse)
		serve := func(r *http.Request) (int, int) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code, w.Body.Len()
		}
		if code, n := serve(httptest.NewRequest("POST", "/", nil)); code != http.StatusNoContent || n > 0 || len(w.log.of(t, "f")) != 1 {
			t.Errorf("a step: %d and %d bytes; %d receipts", code, n, len(w.log.of(t, "f")))
		}
		for range 10 { // it cannot be made to work more by asking more
			serve(httptest.NewRequest("POST", "/", nil))
		}
		if n := w.platform.listed(); n != 1 {
			t.Errorf("%d lists", n)
		}
		stepped := time.Now()
		w.after(time.Second)
		token := httptest.NewRequest("POST", "/", nil)
		token.Header.Set("Authorization", "Bearer x")
		for _, r := range []*http.Request{
			httptest.NewRequest("GET", "/", nil), httptest.NewRequest("POST", "/", strings.NewReader("{}")), httptest.NewRequest("POST", "/x", nil),
			httptest.NewRequest("PATCH", "/?farm=f", strings.NewReader(`{"slots": 2}`)), token,
		} {
			if code, _ := serve(r); code != http.StatusUnauthorized {
				t.Errorf("%s %s: %d", r.Method, r.URL, code)
			}
		}
		if got := c.Status().Stepped; !got.Equal(stepped) { // who has made a schedule call can see that it came
			t.Errorf("the last step is shown at %s, want %s", got, stepped)
		}
	})
}

// Steps alone scale a farm too: one a minute, as by cron, and one that comes at
// once after another decides nothing anew.
func TestSteps(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "interval", "60s", "policy", "static:n=3")
		c := w.create(w.config("A"))
		for range 3 {
			step(t, c)
			w.after(time.Second)
		}
		if list := w.log.of(t, "f"); len(list) != 1 {
			t.Errorf("%d decisions in an interval", len(list))
		}
		w.after(55 * time.Second)
		step(t, c) // a little early
		w.after(time.Minute)
		step(t, c)
		w.after(time.Millisecond)
		if calls := w.platform.made(); len(calls) != 1 || calls[0].n != 3 || len(w.log.of(t, "f")) != 3 {
			t.Errorf("calls %v, %d decisions", calls, len(w.log.of(t, "f")))
		}
	})
}

// A store that hangs holds nobody up who asks how the controller is doing.
func TestStatusWhileRedisHangs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		c, stops := w.stoppable("A")
		w.settle()
		for _, place := range []string{"observe", "save", "receipt", "publish", "roster"} {
			stops.stop(place)
			w.after(15 * time.Second)
			if s := c.Status(); time.Since(s.Updated) < 5*time.Second {
				t.Errorf("it does not hang: %s, %+v", place, s)
			}
			if code, body := ask(t, c.Handler(), "GET", "/", ""); code != 200 || len(body["farms"].([]any)) != 1 {
				t.Errorf("%d %v", code, body)
			}
			stops.let()
			w.after(2 * interval)
		}
	})
}

// Whoever looks, and however often, disturbs nothing.
func TestManyLook(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		c := w.start("A")
		h := c.Handler()
		for range 2 {
			w.done.Go(func() {
				for range 20 {
					ask(t, h, "GET", "/?farm=f", "")
					ask(t, h, "GET", "/", "")
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
		for i := range 6 {
			w.override(c, "f", "policy", []string{"static:n=2", "static:n=3"}[i%2])
			w.after(250 * time.Millisecond)
		}
		if f := farm(t, c, "f"); f.Desired != 3 || f.Mode != controller.Act {
			t.Errorf("%+v", f)
		}
	})
}
