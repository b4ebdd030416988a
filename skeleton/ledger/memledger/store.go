// Package memledger keeps the ledger of every farm in the memory of one
// process: for a laptop, for tests and for programs that bring their own clock.
// What it holds is gone with the process.
//
// A farm is one mutex around plain structures. Waiting tasks are runs in an
// order.Queue, so a job of a million equal tasks is one entry there and one
// slice of small records here. Time is the injected clock, in whole
// microseconds, and never goes back.
package memledger

import (
	"context"
	"slices"
	"sync"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Options of a store. The zero value is fit for use.
type Options struct {
	Limits ledger.Limits
	Clock  func() time.Time // nil = time.Now
}

// Store is a ledger.Store in memory.
type Store struct {
	limits ledger.Limits
	clock  func() time.Time
	hub    hub // key "": the roster

	mu     sync.Mutex
	farms  map[string]*farm // guarded by mu
	roster skeleton.Roster  // guarded by mu
}

var _ ledger.Store = (*Store)(nil)

// New returns an empty store.
func New(o Options) *Store {
	s := &Store{limits: o.Limits.WithDefaults(), clock: o.Clock, farms: map[string]*farm{}}
	if s.clock == nil {
		s.clock = time.Now
	}
	return s
}

// Farm implements ledger.Store.
func (s *Store) Farm(name string) ledger.Ledger { return s.farm(name) }

func (s *Store) farm(name string) *farm {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.farms[name]
	if f == nil {
		f = newFarm(s, name)
		s.farms[name] = f
	}
	return f
}

// Roster implements ledger.Store.
func (s *Store) Roster(ctx context.Context) (skeleton.Roster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.roster
	r.Farms = slices.Clone(r.Farms)
	return r, ctx.Err()
}

// PublishWindows implements ledger.Store.
func (s *Store) PublishWindows(ctx context.Context, farms []skeleton.Farm) error {
	for _, f := range farms {
		if err := s.farm(f.Name).publish(ctx, f); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// PublishRoster implements ledger.Store.
func (s *Store) PublishRoster(ctx context.Context, r skeleton.Roster) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.Published = instant(s.clock().UnixMicro())
	r.Farms = slices.Clone(r.Farms)
	s.mu.Lock()
	s.roster = r
	s.mu.Unlock()
	s.hub.call("", ledger.Event{})
	return nil
}

// WatchRoster implements ledger.Store.
func (s *Store) WatchRoster(ctx context.Context, fn func()) error {
	return s.hub.watch(ctx, "", func(ledger.Event) { fn() })
}

// Durability implements ledger.Store.
func (s *Store) Durability(ctx context.Context) (string, error) { return "memory", ctx.Err() }

// instant turns microseconds of the store's clock into a time; 0 is none.
func instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// micros is the inverse of instant.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func span(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
