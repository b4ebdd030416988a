// Command farmworker serves a worker's Handle behind a watchdog, or on Farmhand's
// local platform without one. What builds it puts this folder into the handler's
// module, and that module's name in place of handler/function.
package main

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

	function "handler/function"
)

// idleTimeout is longer than that of any proxy: the side that closes an idle
// connection must be the caller, or a call in that very moment is lost.
const idleTimeout = 10 * time.Minute

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) }) // a second Ctrl-C ends it at once
	c, err := fromEnv(os.Getenv)
	if err == nil {
		err = run(ctx, c, log)
	}
	if err != nil {
		log.Error("the worker failed", "error", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then drains.
func run(ctx context.Context, c config, log *slog.Logger) error {
	l, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("cannot listen (farmhand_listen names the address): %w", err)
	}
	s := &server{handle: function.Handle, config: c, log: log}
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       c.readTimeout,
		WriteTimeout:      c.writeTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	log.Info("serving", "address", l.Addr().String())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}

	// Whoever routes calls here takes a while to notice: serve on, then let
	// the calls finish.
	s.draining.Store(true)
	log.Info("draining", "healthcheck_interval", c.healthInterval, "write_timeout", c.writeTimeout)
	time.Sleep(c.healthInterval)
	last, cancel := context.WithTimeout(context.Background(), c.writeTimeout)
	defer cancel()
	if err := srv.Shutdown(last); err != nil {
		return errors.Join(fmt.Errorf("calls cut off after %s: %w", c.writeTimeout, err), srv.Close())
	}
	return nil
}
