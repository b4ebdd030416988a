package controller_test

import (
	"context"
	"sync"
	"time"

	"farmhand/controller"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/signal"
)

// stops are places where a controller is stopped as by SIGSTOP: it stands there
// whatever its context says.
type stops struct {
	mu sync.Mutex
	at map[string]chan struct{}
}

func (s *stops) stop(places ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = map[string]chan struct{}{}
	for _, p := range places {
		s.at[p] = make(chan struct{})
	}
}

// let lets it go on.
func (s *stops) let() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.at {
		close(c)
	}
	s.at = nil
}

func (s *stops) pass(place string) {
	s.mu.Lock()
	c := s.at[place]
	s.mu.Unlock()
	if c != nil {
		<-c
	}
}

type (
	stopPlatform struct {
		controller.Platform
		*stops
	}
	stopSignals struct {
		controller.Signals
		*stops
	}
	stopKeeper struct {
		controller.Keeper
		*stops
	}
	stopLog struct {
		controller.Log
		*stops
	}
	stopLedgers struct {
		ledger.Store
		*stops
	}
)

func (s stopPlatform) Workers(ctx context.Context) ([]controller.Worker, error) {
	s.pass("list")
	return s.Platform.Workers(ctx)
}

func (s stopPlatform) Scale(ctx context.Context, name string, n int) error {
	s.pass("call")
	return s.Platform.Scale(ctx, name, n)
}

func (s stopSignals) Read(ctx context.Context, since map[string]int64) (map[string]signal.Reading, error) {
	s.pass("observe")
	return s.Signals.Read(ctx, since)
}

func (s stopKeeper) Save(ctx context.Context, saves []controller.Save) ([]bool, error) {
	s.pass("save")
	return s.Keeper.Save(ctx, saves)
}

func (s stopLog) Append(ctx context.Context, entries []controller.Entry) error {
	s.pass("receipt")
	return s.Log.Append(ctx, entries)
}

func (s stopLedgers) PublishRoster(ctx context.Context, r skeleton.Roster) error {
	s.pass("roster")
	return s.Store.PublishRoster(ctx, r)
}

func (s stopLedgers) PublishWindows(ctx context.Context, farms []skeleton.Farm) error {
	s.pass("publish")
	return s.Store.PublishWindows(ctx, farms)
}

// stoppable makes a controller that can be stopped in the middle.
func (w *world) stoppable(owner string) (*controller.Controller, *stops) {
	s := &stops{}
	cfg := w.config(owner)
	cfg.Platform, cfg.Signals, cfg.Keeper = stopPlatform{cfg.Platform, s}, stopSignals{cfg.Signals, s}, stopKeeper{cfg.Keeper, s}
	cfg.Receipts, cfg.Ledgers = stopLog{cfg.Receipts, s}, stopLedgers{cfg.Ledgers, s}
	c := w.create(cfg)
	w.t.Cleanup(s.let)
	c.Start()
	w.after(10 * time.Millisecond)
	return c, s
}
