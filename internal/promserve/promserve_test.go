package promserve_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"farmhand/internal/promserve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func registry(t *testing.T) *prometheus.Registry {
	t.Helper()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "farmhand_pulses_total", Help: "Pulses."})
	r, err := promserve.NewRegistry(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Only reading is served, and only at /metrics.
func TestOnlyMetricsAreServed(t *testing.T) {
	h := promserve.Handler(registry(t), slog.New(slog.DiscardHandler))
	for call, want := range map[string]int{
		"GET /metrics": 200, "HEAD /metrics": 200, "POST /metrics": 405, "PUT /metrics": 405, "DELETE /metrics": 405,
		"GET /": 404, "GET /metrics/x": 404, "GET /debug/pprof/": 404, "POST /jobs": 404,
	} {
		method, path, _ := strings.Cut(call, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", call, w.Code, want)
		}
	}
}

func TestServesUntilStopped(t *testing.T) {
	t.Setenv(promserve.Env, "127.0.0.1:0")
	var log bytes.Buffer // complete before it is read: Start has returned
	s, err := promserve.Start(registry(t), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindString(log.String())
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	for _, want := range []string{"\nfarmhand_pulses_total 0\n", "\nprocess_resident_memory_bytes ", "\ngo_goroutines "} {
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("want %q, got %v\n%s", want, err, body)
		}
	}
	for range 2 {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if _, err := http.Get(url); err == nil {
		t.Error("served after Stop")
	}
}

func TestAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, address := range []string{"8083", "nowhere.invalid:8083", taken.Addr().String()} {
		t.Setenv(promserve.Env, address)
		if _, err := promserve.Start(registry(t), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), promserve.Env) || !strings.Contains(err.Error(), "such as :8083") {
			t.Errorf("%s: %v", address, err)
		}
	}
	t.Setenv(promserve.Env, "")
	s, err := promserve.Start(registry(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}
