package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"farmhand/policy"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Times of the loop.
const (
	LeaseTime = 10 * time.Second // of a farm; renewed at half of it
	// CallTimeout ends a scale call and its read-back. A lease must outlive it.
	CallTimeout = 4 * time.Second

	lookTime   = time.Second            // between looks at a farm that is not settled
	retryTime  = time.Second            // after a pulse that failed
	wakeGap    = 250 * time.Millisecond // between ticks of a farm that is woken
	usageTime  = 10 * time.Second       // between questions for a farm's usage
	rosterTime = 10 * time.Second       // the list is published that often even if nothing changed
	noteTime   = 2 * time.Second        // to keep receipts at most
	pulseTime  = 10 * time.Second       // a pulse at most
)

// Config of a Controller.
type Config struct {
	Platform  Platform
	Ledgers   ledger.Store
	Signals   Signals
	Keeper    Keeper
	Receipts  Log
	Owner     string    // of leases; "" = host and process
	Allocator Allocator // nil: unlimited
	Registry  Registry  // of learned policies; nil: there are none
	// Default is the policy file that decides for the farms whose policy is learned
	// and that have no champion yet; nil: their rule does.
	Default []byte
	Load    func(file []byte) (policy.Learned, error) // nil: Load
	Referee Referee                                   // nil: nothing is reviewed
	// Ticked is called after each decision with how late it was; for measuring.
	Ticked func(farm string, late time.Duration)
	// Looked is called after each look at a farm that this controller decides for,
	// once what was decided is kept; for metrics. It must not block.
	Looked func(Look)
	Log    *slog.Logger // nil: silent
}

// Controller scales the farms whose leases it holds. Its methods may be called
// from several goroutines.
type Controller struct {
	cfg   Config
	ctx   context.Context // of the loop, the calls and the subscriptions
	end   context.CancelFunc
	done  sync.WaitGroup
	nudge chan struct{} // there may be something to do before the timer fires

	champions *champions

	pulsing sync.Mutex // one pulse at a time

	mu        sync.Mutex
	farms     map[string]*farm     // guarded by mu
	woken     map[string]bool      // guarded by mu
	roster    skeleton.Roster      // as last published or read; guarded by mu
	published time.Time            // guarded by mu
	seen      map[string]time.Time // since when listed farms are missing; guarded by mu
	lead      int64                // fence of the roster's lease; guarded by mu
	leadUntil time.Time            // guarded by mu
	lastStep  time.Time            // that a schedule asked for; guarded by mu
	lastTry   time.Time            // of a pulse; guarded by mu
	lastOK    time.Time            // guarded by mu
	lastErr   error                // guarded by mu
}

// New makes a Controller. It does nothing before Start or Step. Stop it when done.
func New(cfg Config) (*Controller, error) {
	if cfg.Platform == nil || cfg.Ledgers == nil || cfg.Signals == nil || cfg.Keeper == nil || cfg.Receipts == nil {
		return nil, errors.New("controller: Platform, Ledgers, Signals, Keeper and Receipts are needed")
	}
	if cfg.Owner == "" {
		host, _ := os.Hostname() // without it the process and the time must do
		cfg.Owner = fmt.Sprintf("%s/%d/%d", host, os.Getpid(), time.Now().UnixNano())
	}
	if cfg.Allocator == nil {
		cfg.Allocator = Capacity(0)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Load == nil {
		cfg.Load = Load
	}
	var initial policy.Learned
	if cfg.Default != nil {
		var err error
		if initial, err = cfg.Load(cfg.Default); err != nil {
			return nil, fmt.Errorf("controller: the default policy: %w", err)
		}
	}
	ctx, end := context.WithCancel(context.Background())
	c := &Controller{cfg: cfg, ctx: ctx, end: end, nudge: make(chan struct{}, 1), farms: map[string]*farm{},
		woken: map[string]bool{}, seen: map[string]time.Time{}, champions: newChampions(cfg.Registry, initial, cfg.Load)}
	c.champions.changed = func(name string) {
		c.mu.Lock()
		f := c.farms[name]
		c.mu.Unlock()
		if f != nil {
			c.touch(f)
		}
	}
	c.champions.begin = sync.OnceFunc(func() { c.done.Go(func() { c.champions.run(c.ctx) }) })
	return c, nil
}

// Start begins the loop. A failed pulse never ends it.
func (c *Controller) Start() {
	if c.cfg.Referee != nil {
		c.done.Go(c.review)
	}
	c.done.Go(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-c.ctx.Done():
				return
			case <-timer.C:
			case <-c.nudge:
			}
			wait := c.wait(time.Now())
			if wait <= 0 {
				if _, err := c.pulse(c.ctx, false); err != nil && c.ctx.Err() == nil {
					c.cfg.Log.Warn("nothing could be decided; all stays as it is", "error", err)
				}
				wait = c.wait(time.Now())
			}
			timer.Reset(max(wait, time.Millisecond))
		}
	})
}

// Stop ends the loop, waits for the scale calls under way and releases the
// leases. Stopping twice, or before Start, is fine.
func (c *Controller) Stop() {
	c.end()
	claims := c.quit()
	c.done.Wait()
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
	defer cancel()
	if err := c.cfg.Keeper.Release(ctx, c.cfg.Owner, claims); err != nil {
		c.cfg.Log.Warn("the leases could not be released; they end by themselves", "error", err)
	}
}

// quit waits for the pulse under way, gives up all leases and returns them. Calls
// may be under way still.
func (c *Controller) quit() (claims []Claim) {
	c.pulsing.Lock()
	defer c.pulsing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, f := range c.farms {
		f.mu.Lock()
		if f.fence > 0 {
			claims = append(claims, Claim{Farm: name, Fence: f.fence})
			f.fence = 0
		}
		f.mu.Unlock()
	}
	if c.lead > 0 {
		claims = append(claims, Claim{Fence: c.lead})
		c.lead = 0
	}
	return claims
}

// errStopped answers who asks a stopped Controller for a step.
var errStopped = errors.New("controller: it is stopped")

// Step does what is due now: it looks at all farms, and decides for those whose
// interval is over. A loop and steps together are safe.
func (c *Controller) Step(ctx context.Context) error {
	for {
		if more, err := c.pulse(ctx, true); err != nil || !more {
			return err
		}
	}
}

// poke lets the loop look again whether something is due.
func (c *Controller) poke() {
	select {
	case c.nudge <- struct{}{}:
	default:
	}
}

// wait is how long nothing is due.
func (c *Controller) wait(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastErr != nil { // nothing that happens meanwhile makes it try sooner
		return c.lastTry.Add(retryTime).Sub(now)
	}
	if c.lastOK.IsZero() {
		return 0
	}
	first := c.leadUntil.Add(-LeaseTime / 2)
	if now.Sub(c.lastOK) > lookTime && len(c.farms) == 0 {
		return 0 // a farm may have come
	}
	if next := c.lastOK.Add(2 * lookTime); next.Before(first) || c.lead == 0 {
		first = next // the platform's list is looked at that often
	}
	for name, f := range c.farms {
		f.mu.Lock()
		at := f.due()
		if c.woken[name] {
			at = f.wakeAt(at)
		}
		f.mu.Unlock()
		if at.Before(first) {
			first = at
		}
	}
	return first.Sub(now)
}

// due is when something has to be done for the farm.
func (f *farm) due() time.Time {
	at := f.next
	if !f.look.IsZero() && f.look.Before(at) {
		at = f.look
	}
	if renew := f.until.Add(-LeaseTime / 2); f.fence > 0 && renew.Before(at) {
		at = renew
	}
	return at
}

// wakeAt is when a farm that has got work decides, rather than at that time.
func (f *farm) wakeAt(at time.Time) time.Time {
	if soon := f.ticked.Add(wakeGap); soon.Before(at) {
		return soon
	}
	return at
}

// Status is how the controller itself is doing.
type Status struct {
	Owner   string    `json:"owner"`
	Updated time.Time `json:"updated"`          // of the last good pulse; zero = none yet
	Stepped time.Time `json:"stepped,omitzero"` // when a schedule last asked for a step
	Error   string    `json:"error,omitempty"`
}

// Status returns how the last pulse went.
func (c *Controller) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Owner: c.cfg.Owner, Updated: c.lastOK, Stepped: c.lastStep}
	if c.lastErr != nil {
		s.Error = c.lastErr.Error()
	}
	return s
}
