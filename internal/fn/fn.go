// Package fn runs a function of the suite the way a watchdog in http mode
// expects: it listens on loopback, answers /_/health and /_/ready, and on
// SIGTERM keeps serving for healthcheck_interval before it drains.
//
// A function's main program is
//
//	func main() { fn.Main("montecarlo", build) }
//
// and build returns the handler and the hooks of its background work.
package fn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"farmhand/internal/problem"
)

// Service is what a function runs. Only Handler is needed.
type Service struct {
	Handler http.Handler
	// Ready says whether the function can serve; nil means always.
	Ready func() bool
	// Drain is told once, when the process was asked to end: take no more work.
	Drain func()
	// Stop ends the background work after the last request; it must return when
	// ctx ends.
	Stop func(ctx context.Context) error
}

// Build makes a service. ctx ends when the process does.
type Build func(ctx context.Context, log *slog.Logger) (*Service, error)

// Config of a function's server, as OpenFaaS names it.
type Config struct {
	Listen         string        // farmhand_listen (127.0.0.1:8082, the watchdog's upstream)
	ReadTimeout    time.Duration // read_timeout (60 s)
	WriteTimeout   time.Duration // write_timeout (60 s); also the time to drain
	HealthInterval time.Duration // healthcheck_interval (0): served on after SIGTERM
}

// FromEnv reads the configuration from the environment. Durations are whole
// seconds or Go durations.
func FromEnv() (Config, error) {
	c := Config{Listen: os.Getenv("farmhand_listen"), ReadTimeout: 60 * time.Second, WriteTimeout: 60 * time.Second}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:8082"
	}
	for name, v := range map[string]*time.Duration{"read_timeout": &c.ReadTimeout, "write_timeout": &c.WriteTimeout, "healthcheck_interval": &c.HealthInterval} {
		if err := duration(name, v); err != nil {
			return c, err
		}
	}
	return c, nil
}

func duration(name string, v *time.Duration) error {
	s := os.Getenv(name)
	if s == "" {
		return nil
	}
	if n, err := strconv.Atoi(s); err == nil && n >= 0 {
		*v = time.Duration(n) * time.Second
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return fmt.Errorf("environment %s=%q: want whole seconds or a duration such as 30s", name, s)
	}
	*v = d
	return nil
}

// Logger returns the logger of a function: standard error, text or JSON
// (farmhand_log=json), level by farmhand_log_level.
func Logger(name string) *slog.Logger {
	opts := &slog.HandlerOptions{}
	var level slog.Level
	if err := level.UnmarshalText([]byte(os.Getenv("farmhand_log_level"))); err == nil {
		opts.Level = level
	}
	if os.Getenv("farmhand_log") == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opts)).With("function", name)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opts)).With("function", name)
}

// Main runs a function until SIGTERM or SIGINT and exits.
func Main(name string, build Build) {
	log := Logger(name)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, log, build); err != nil {
		log.Error("cannot run", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger, build Build) error {
	c, err := FromEnv()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen (set farmhand_listen to a free loopback address): %w", err)
	}
	return Serve(ctx, l, c, log, build)
}

// Serve runs a service on a listener until ctx ends, then drains: it serves on
// for HealthInterval, lets calls finish within WriteTimeout, and stops the
// service. It closes the listener.
func Serve(ctx context.Context, l net.Listener, c Config, log *slog.Logger, build Build) error {
	live, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	s, err := build(live, log)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	srv := &http.Server{
		Handler:           handler(s, log),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       c.ReadTimeout,
		WriteTimeout:      c.WriteTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err := <-served:
		return errors.Join(err, stop(live, s, c))
	case <-ctx.Done():
	}
	if s.Drain != nil {
		s.Drain()
	}
	if c.HealthInterval > 0 {
		t := time.NewTimer(c.HealthInterval)
		select {
		case <-t.C:
		case err := <-served:
			t.Stop()
			return errors.Join(err, stop(live, s, c))
		}
	}
	drain, cancel := context.WithTimeout(live, c.WriteTimeout)
	defer cancel()
	err = srv.Shutdown(drain)
	if err != nil {
		err = errors.Join(fmt.Errorf("calls cut off after %s: %w", c.WriteTimeout, err), srv.Close())
	}
	<-served // ErrServerClosed
	return errors.Join(err, stop(live, s, c))
}

func stop(ctx context.Context, s *Service, c Config) error {
	if s.Stop == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
	defer cancel()
	return s.Stop(ctx)
}

func handler(s *Service, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/_/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "OK") })
	mux.HandleFunc("/_/ready", func(w http.ResponseWriter, _ *http.Request) {
		if s.Ready != nil && !s.Ready() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "OK")
	})
	mux.Handle("/", s.Handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				log.Error("panic in a handler", "panic", v, "path", r.URL.Path, "stack", string(debug.Stack()))
				problem.Write(w, problem.New(http.StatusInternalServerError, "internal", "an internal error; the function's log has it"))
			}
		}()
		mux.ServeHTTP(w, r)
	})
}
