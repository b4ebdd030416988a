// Package promserve serves a function's metrics to Prometheus, on a port of its
// own: the gateway, and so the world, reaches only the function's other port.
//
// Whoever reaches the port may read: a scraper has no token. What it learns are
// names of farms and policies, counts and times, and the process's memory; never
// a task, a result, an address or a secret.
package promserve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Env names the address to serve at, such as ":8083". Where it is not set,
// nothing is served.
const Env = "farmhand_metrics_listen"

// scrapes is how many are served at once; more are answered 503.
const scrapes = 4

// NewRegistry returns a registry with the collectors, and with those of the
// process itself: process_* and go_*.
func NewRegistry(list ...prometheus.Collector) (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	list = append(list, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, c := range list {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("promserve: %w", err)
		}
	}
	return r, nil
}

// Handler answers GET and HEAD of /metrics, and nothing else.
func Handler(g prometheus.Gatherer, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapes,
	}))
	return mux
}

// Server serves metrics until Stop.
type Server struct {
	http   *http.Server // nil: nothing is served
	served chan struct{}
}

// Start serves what g gathers at the address that Env names.
func Start(g prometheus.Gatherer, log *slog.Logger) (*Server, error) {
	s := &Server{served: make(chan struct{})}
	address := os.Getenv(Env)
	if address == "" {
		close(s.served)
		return s, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s=%q: %w; name a free address such as :8083, or leave it out for no metrics", Env, address, err)
	}
	s.http = &http.Server{
		Handler:           Handler(g, log),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute, // scrapes come more often
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	log.Info("metrics", "url", fmt.Sprintf("http://%s/metrics", l.Addr()))
	go func() {
		defer close(s.served)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are not served any more", "error", err)
		}
	}()
	return s, nil
}

// Stop ends the serving; a scrape under way is cut off when ctx ends. Stopping
// twice is fine.
func (s *Server) Stop(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.served
	return err
}
