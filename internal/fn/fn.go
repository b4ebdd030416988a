// Package fn runs a function of the suite the way a watchdog in http mode
// expects: it listens on loopback, answers /_/health and /_/ready, and on
// SIGTERM keeps serving for healthcheck_interval before it drains.
//
// A function's main program is
//
//	func main() { fn.Main("montecarlo", build) }
//
// and build returns the handler and the hooks of its background work.
//
// A handler may stream: it flushes with [http.ResponseController] and moves its
// own deadlines past the server's with SetReadDeadline and SetWriteDeadline.
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
	"syscall"
	"time"
)

// Service is what a function runs. Only Handler is needed.
type Service struct {
	Handler http.Handler
	// Ready says whether the function can serve; nil means always.
	Ready func() bool
	// Drain is told once, as soon as the process was asked to end: take no more
	// work, end long answers. Requests are still served.
	Drain func()
	// Stop ends the background work after the last request; it must return when
	// ctx ends.
	Stop func(ctx context.Context) error
}

// Build makes a service. ctx ends when the service has stopped, not at the
// signal. Build must return soon, since nothing is served before: what waits
// for another service belongs behind Ready.
type Build func(ctx context.Context, log *slog.Logger) (*Service, error)

// Main runs a function until SIGTERM or SIGINT and ends the process: with 0
// when all calls were finished, else with 1. A second interrupt from a terminal
// ends it at once.
func Main(name string, build Build) {
	log, err := newLogger(name)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
		defer stop()
		// Only the interrupt: a watchdog and its process group may well send
		// SIGTERM twice.
		context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })
		err = run(ctx, log, build)
	}
	if err != nil {
		log.Error("the function failed", "error", err)
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
	log.Info("serving", "address", l.Addr().String())
	return Serve(ctx, l, c, log, build)
}

// Serve runs a service on a listener until ctx ends, then drains: it tells the
// service, serves on for HealthInterval, lets calls finish, and stops the
// service, the last two within WriteTimeout: what the calls leave of it is the
// service's. It closes the listener.
func Serve(ctx context.Context, l net.Listener, c Config, log *slog.Logger, build Build) error {
	live, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	s, err := build(live, log)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	c = c.withDefaults()
	h := newHandler(s, log)
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       c.ReadTimeout,
		WriteTimeout:      c.WriteTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()

	select {
	case err = <-served: // the listener broke
	case <-ctx.Done():
	}
	h.draining.Store(true)
	deadline := time.Now().Add(c.HealthInterval + c.WriteTimeout)
	if s.Drain != nil {
		s.Drain()
	}
	if err == nil {
		log.Info("draining", "healthcheck_interval", c.HealthInterval, "write_timeout", c.WriteTimeout)
		err = drain(live, srv, c, deadline, served)
	}
	if s.Stop == nil {
		return err
	}
	stop, cancel := context.WithDeadline(live, deadline)
	defer cancel()
	return errors.Join(err, s.Stop(stop))
}

// drain serves on for HealthInterval, so that whoever routes has noticed, then
// takes no new connection and waits for the calls, until shortly before the
// deadline.
func drain(ctx context.Context, srv *http.Server, c Config, deadline time.Time, served <-chan error) error {
	wait := time.NewTimer(c.HealthInterval)
	defer wait.Stop()
	select {
	case <-wait.C:
	case err := <-served:
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-c.stopTime()))
	defer cancel()
	err := srv.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("calls cut off after %s: %w", c.WriteTimeout-c.stopTime(), err), srv.Close())
	}
	<-served // ErrServerClosed
	return err
}
