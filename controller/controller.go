// Package controller watches the worker functions of a platform and publishes
// what dispatchers need to know: the farms, their settings, their replicas.
//
// It is the only part that knows the platform; it alone holds its credentials.
package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"farmhand/skeleton"
)

// Worker is a function of the platform that is labelled as a worker.
type Worker struct {
	Name        string // name, or name.namespace outside the default namespace
	Labels      map[string]string
	Annotations map[string]string
	Env         map[string]string
	Desired     int // replicas asked for
	Ready       int // replicas that serve
}

// Platform is where workers run.
type Platform interface {
	// Workers lists all functions labelled as workers. An error means that
	// nothing is known, never that there are none.
	Workers(ctx context.Context) ([]Worker, error)
}

// Publisher keeps the roster; a ledger.Store is one.
type Publisher interface {
	Roster(ctx context.Context) (skeleton.Roster, error)
	PublishWindows(ctx context.Context, farms []skeleton.Farm) error
	PublishRoster(ctx context.Context, r skeleton.Roster) error
}

// Intervals of the loop.
const (
	DefaultInterval = 2 * time.Second // a quiet tick
	unsettled       = time.Second     // a tick while a farm's replicas are not all ready
	callTimeout     = 10 * time.Second
)

// Config of a Controller.
type Config struct {
	Platform  Platform
	Publisher Publisher
	Interval  time.Duration    // between quiet ticks (2 s)
	Now       func() time.Time // nil: time.Now
	Log       *slog.Logger     // nil: silent
}

// Controller runs the loop. Its methods may be called from several goroutines.
type Controller struct {
	cfg  Config
	end  context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	roster skeleton.Roster // last published; guarded by mu
	lastOK time.Time       // when; guarded by mu
	lastEr error           // of the last step; guarded by mu
	seen   map[string]time.Time
}

// New makes a Controller. It does nothing before Start or Step.
func New(cfg Config) (*Controller, error) {
	if cfg.Platform == nil || cfg.Publisher == nil {
		return nil, errors.New("controller: Platform and Publisher are needed")
	}
	if cfg.Interval <= 0 {
		cfg.Interval = DefaultInterval
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Controller{cfg: cfg, seen: map[string]time.Time{}}, nil
}

// Start begins the loop. A failed step never ends it.
func (c *Controller) Start() {
	ctx, end := context.WithCancel(context.Background())
	c.end, c.done = end, make(chan struct{})
	go func() {
		defer close(c.done)
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			r, err := c.Step(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				c.cfg.Log.Warn("step failed; the last roster stays", "error", err)
				timer.Reset(c.cfg.Interval)
			case settled(r):
				timer.Reset(c.cfg.Interval)
			default:
				timer.Reset(min(unsettled, c.cfg.Interval))
			}
		}
	}()
}

// Stop ends the loop. Stopping twice, or before Start, is fine.
func (c *Controller) Stop() {
	if c.end != nil {
		c.end()
		<-c.done
	}
}

// settled reports whether every farm has the replicas it asked for.
func settled(r skeleton.Roster) bool {
	for _, f := range r.Farms {
		if f.Missing == 0 && f.Ready != f.Target {
			return false
		}
	}
	return true
}

// Step looks at the platform once and publishes what it saw. Where the platform
// tells nothing, nothing is published: the last roster stays.
func (c *Controller) Step(ctx context.Context) (skeleton.Roster, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.step(ctx)
	c.lastEr = err
	if err == nil {
		c.roster, c.lastOK = r, c.cfg.Now()
	}
	return r, err
}

func (c *Controller) step(ctx context.Context) (skeleton.Roster, error) {
	workers, err := c.cfg.Platform.Workers(ctx)
	if err != nil {
		return skeleton.Roster{}, err
	}
	if c.roster.Published.IsZero() { // we have just started: go on from what was published
		if c.roster, err = c.cfg.Publisher.Roster(ctx); err != nil {
			return skeleton.Roster{}, err
		}
	}
	r := c.compose(workers)
	if err := c.cfg.Publisher.PublishWindows(ctx, r.Farms); err != nil {
		return skeleton.Roster{}, err
	}
	if err := c.cfg.Publisher.PublishRoster(ctx, r); err != nil {
		return skeleton.Roster{}, err
	}
	r.Published = c.cfg.Now()
	return r, nil
}

// Status is what the controller says of itself.
type Status struct {
	Roster  skeleton.Roster `json:"roster"`
	Updated time.Time       `json:"updated"` // of the last good step; zero = none yet
	Error   string          `json:"error,omitempty"`
}

// Status returns the last roster and how the last step went.
func (c *Controller) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Roster: c.roster, Updated: c.lastOK}
	if c.lastEr != nil {
		s.Error = c.lastEr.Error()
	}
	return s
}
