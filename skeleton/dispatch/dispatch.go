// Package dispatch hands the tasks of every farm to their workers and the
// answers to the ledger.
//
// A Dispatcher follows the roster and runs a few goroutines per farm, one file
// each: take leases tasks, attempt runs one task, park is where a task waits
// that met busy workers, settle ends leases, renew keeps them, keep looks after
// the farm. It owns no state that matters: what a dead dispatcher held comes
// back when its leases lapse.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Caller gets a task to its worker. It must return soon after ctx ends, and may
// be called by many goroutines at once.
type Caller interface {
	// Call hands the task over for at most timeout and says what came back.
	// Elapsed and Timeout of the answer are filled in by the dispatcher, which
	// also ends ctx when the call lasts too long.
	Call(ctx context.Context, t skeleton.Task, body []byte, timeout time.Duration) skeleton.Call
}

// Defaults of a Config.
const (
	DefaultRunning = 1024
	DefaultBytes   = 128 << 20
	DefaultMissing = 30 * time.Second
)

// Config of a Dispatcher.
type Config struct {
	Store      ledger.Store
	Caller     Caller
	Owner      string         // names this process in leases and heartbeats; must be unique
	Running    int            // tasks of one farm this process holds at most (1,024)
	Bytes      int            // bytes of their large bodies it holds at most (128 MiB); a larger one is held alone
	TimeToLive time.Duration  // how long a task may meet nothing but busy workers (1 h)
	Missing    time.Duration  // how long a worker must be gone before its tasks are dead letters (30 s)
	RenewEvery time.Duration  // how often leases are renewed (ledger.RenewEvery)
	Notifier   Notifier       // nil: callbacks stay owed
	Observer   Observer       // nil: nobody watches
	Uniform    func() float64 // draws from [0, 1), for many goroutines at once; nil: math/rand
	Log        *slog.Logger   // nil: silent
}

func (c Config) withDefaults() Config {
	if c.Running == 0 {
		c.Running = DefaultRunning
	}
	if c.Bytes == 0 {
		c.Bytes = DefaultBytes
	}
	if c.TimeToLive == 0 {
		c.TimeToLive = skeleton.TimeToLive
	}
	if c.Missing == 0 {
		c.Missing = DefaultMissing
	}
	if c.RenewEvery == 0 {
		c.RenewEvery = ledger.RenewEvery
	}
	if c.Observer == nil {
		c.Observer = blind{}
	}
	if c.Uniform == nil {
		c.Uniform = rand.Float64
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Dispatcher runs the farms of the roster.
type Dispatcher struct {
	cfg  Config
	ctx  context.Context // ends the background work
	end  context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex
	runners  map[string]*runner // guarded by mu
	draining bool               // guarded by mu
	followed bool               // guarded by mu; the roster was read at least once
}

// Start begins to follow the roster. The Dispatcher runs until Stop.
func Start(cfg Config) (*Dispatcher, error) {
	if cfg.Store == nil || cfg.Caller == nil || cfg.Owner == "" {
		return nil, errors.New("dispatch: Store, Caller and Owner are needed")
	}
	d := &Dispatcher{cfg: cfg.withDefaults(), runners: map[string]*runner{}}
	d.ctx, d.end = context.WithCancel(context.Background())
	changed := make(chan struct{}, 1)
	d.work.Go(func() {
		persist(d.ctx, d.cfg, "cannot watch the roster", func() error {
			return d.cfg.Store.WatchRoster(d.ctx, func() { poke(changed) })
		})
	})
	d.work.Go(func() { d.follow(changed) })
	return d, nil
}

// Ready reports whether a roster was read: the farms are known.
func (d *Dispatcher) Ready() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.followed
}

// follow keeps one runner per farm of the roster. A farm that leaves the roster
// keeps its runner: the roster itself says when a worker is missing.
func (d *Dispatcher) follow(changed <-chan struct{}) {
	retry := backoff{uniform: d.cfg.Uniform}
	for {
		roster, err := d.cfg.Store.Roster(d.ctx)
		if d.ctx.Err() != nil {
			return
		}
		if err != nil {
			retry.complain(d.cfg.Log, "cannot read the roster", err)
			if !retry.wait(d.ctx.Done()) {
				return
			}
			continue
		}
		retry.reset()
		d.apply(roster)
		select {
		case <-d.ctx.Done():
			return
		case <-changed:
		}
	}
}

func (d *Dispatcher) apply(roster skeleton.Roster) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.followed = d.followed || !roster.Published.IsZero()
	for _, f := range roster.Farms {
		if r := d.runners[f.Name]; r != nil {
			r.update(f)
		} else if !d.draining {
			d.runners[f.Name] = startRunner(d.cfg, f)
			d.cfg.Log.Info("farm", "farm", f.Name, "ready", f.Ready, "slots", f.Settings.Slots)
		}
	}
}

// Drain stops taking tasks at once and gives back those no worker has; those
// that run go on.
func (d *Dispatcher) Drain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.draining = true
	for _, r := range d.runners {
		r.drain()
	}
}

// Stop drains, waits for running tasks, and settles what there is. Calls that
// outlast it are cut off shortly before ctx ends (their tasks count as lost). It
// returns an error if leases were left to lapse. Stopping twice is fine.
func (d *Dispatcher) Stop(ctx context.Context) error {
	d.Drain()
	d.mu.Lock()
	runners := make([]*runner, 0, len(d.runners))
	for _, r := range d.runners {
		runners = append(runners, r)
	}
	d.mu.Unlock()
	errs := make([]error, len(runners))
	var wait sync.WaitGroup
	for i, r := range runners {
		wait.Go(func() {
			if n := r.stop(ctx); n > 0 {
				errs[i] = fmt.Errorf("dispatch: %d leases of farm %s are left to lapse", n, r.name)
			}
		})
	}
	wait.Wait()
	d.end()
	d.work.Wait()
	return errors.Join(errs...)
}

// Farms returns the names of the farms that this dispatcher serves.
func (d *Dispatcher) Farms() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.runners))
}

// Running is a task that this process holds.
type Running struct {
	Job     string        `json:"job"`
	Index   int           `json:"index"`
	Attempt int           `json:"attempt"`
	For     time.Duration `json:"-"`    // since it was last handed to a worker; 0 = not yet
	Busy    bool          `json:"busy"` // it waits for a worker that is not busy
}

// Running lists the tasks of a farm that this process holds, the oldest first,
// so that a stall can be named (P74).
func (d *Dispatcher) Running(farm string) []Running {
	d.mu.Lock()
	r := d.runners[farm]
	d.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.running()
}
