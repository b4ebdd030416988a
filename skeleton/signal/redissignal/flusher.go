package redissignal

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"farmhand/skeleton/signal"
)

// flushTimeout bounds a flush, so that one that hangs costs one or two others.
const flushTimeout = 2 * time.Second

// Config of a Flusher.
type Config struct {
	Store    *Store
	Recorder *signal.Recorder
	// Farms are those that this process serves: they get a heartbeat even if
	// nothing happens. Nil: only farms of which something was recorded.
	Farms func() []string
	Tick  <-chan time.Time // when to flush; nil: every second
	Log   *slog.Logger     // nil: silent
}

// Flusher brings what a Recorder counts to the store, once a second.
type Flusher struct {
	cfg     Config
	stop    chan struct{}
	once    sync.Once
	done    chan struct{} // closed when the loop has ended
	dropped atomic.Int64

	pending signal.Deltas // not stored yet; of the loop
	since   time.Time     // when the oldest of them was drained; of the loop
	failing bool          // the last flush failed; of the loop
}

// Start begins to flush. The Flusher runs until Stop.
func Start(cfg Config) (*Flusher, error) {
	f, err := newFlusher(cfg)
	if err == nil {
		go f.run()
	}
	return f, err
}

func newFlusher(cfg Config) (*Flusher, error) {
	if cfg.Store == nil || cfg.Recorder == nil {
		return nil, errors.New("redissignal: Store and Recorder are needed")
	}
	if cfg.Farms == nil {
		cfg.Farms = func() []string { return nil }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Flusher{cfg: cfg, stop: make(chan struct{}), done: make(chan struct{}), pending: signal.Deltas{}}, nil
}

// Stop ends the flushing, after a last flush. It returns when that is done, or
// ctx ends. Stopping twice is fine.
func (f *Flusher) Stop(ctx context.Context) error {
	f.once.Do(func() { close(f.stop) })
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Dropped is how many events were dropped because the store was away too long.
func (f *Flusher) Dropped() int64 { return f.dropped.Load() }

func (f *Flusher) run() {
	defer close(f.done)
	tick := f.cfg.Tick
	if tick == nil {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}
	now := time.Time{}
	for {
		select {
		case <-f.stop:
			f.flush(now)
			return
		case now = <-tick:
			f.flush(now)
		}
	}
}

// flush stores what is new and what an earlier flush could not store. That is
// kept in one tally, which is bounded, but for Patience only: it would be added
// to the second of now, and work of long ago is no sign of what happens now.
func (f *Flusher) flush(now time.Time) {
	if len(f.pending) > 0 && now.Sub(f.since) >= signal.Patience {
		f.drop()
	}
	if len(f.pending) == 0 {
		f.since = now
	}
	f.pending.Merge(f.cfg.Recorder.Drain())
	for _, farm := range f.cfg.Farms() {
		f.pending.Of(farm)
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	err := f.cfg.Store.Flush(ctx, f.pending)
	if err != nil && !f.failing {
		f.cfg.Log.Warn("signals cannot be stored; they are kept for a moment", "error", err)
	}
	if err == nil && f.failing {
		f.cfg.Log.Info("signals are stored again", "dropped_total", f.Dropped())
	}
	f.failing = err != nil
}

// drop gives up what could not be stored.
func (f *Flusher) drop() {
	events := 0
	for _, t := range f.pending {
		events += t.Events()
	}
	clear(f.pending)
	f.dropped.Add(int64(events))
}
