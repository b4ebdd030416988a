package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"farmhand/skeleton/ledger"
	"farmhand/skeleton/signal"
)

// work is one farm in a pulse.
type work struct {
	*farm
	tick    bool // decide; else only look
	due     time.Time
	late    time.Duration
	now     time.Time      // by the store's clock
	gauges  *ledger.Gauges // nil = unknown
	heard   bool           // a dispatcher was heard of in the last seconds
	wish    *Receipt       // of a tick
	receipt []byte         // the same as JSON
	call    *int           // the count to ask for
	dirty   bool           // there is something to save
}

// pulse does all that is due, for all farms in a few round trips. With all set
// it looks at every farm. more reports that farms were put off to the next pulse.
func (c *Controller) pulse(ctx context.Context, all bool) (more bool, err error) {
	c.pulsing.Lock()
	defer c.pulsing.Unlock()
	if c.ctx.Err() != nil {
		return false, errStopped
	}
	ctx, cancel := context.WithTimeout(ctx, pulseTime)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	c.mu.Lock()
	c.lastTry = time.Now()
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		if c.lastErr = err; err == nil {
			c.lastOK = time.Now()
		}
		c.mu.Unlock()
	}()
	asked := time.Now()
	workers, err := c.cfg.Platform.Workers(ctx)
	if err != nil {
		return false, err
	}
	if c.Status().Updated.IsZero() { // it has just begun
		if err := c.recall(ctx); err != nil {
			return false, err
		}
	}
	begun := time.Now()
	batch := c.collect(workers, asked, begun, all)
	defer func(batch []*work) {
		if err != nil {
			again(batch)
		}
	}(slices.Clone(batch))
	if err := c.claim(ctx, batch, begun); err != nil {
		return false, err
	}
	batch = slices.DeleteFunc(batch, func(w *work) bool { return w.fence == 0 })
	batch, more = putOff(batch, begun)
	c.measure(ctx, batch)
	c.allot(batch)
	for _, w := range batch {
		w.plan()
	}
	entries, err := c.save(ctx, batch)
	if err != nil {
		return more, err
	}
	c.note(ctx, entries)
	c.tell(batch)
	if err := c.publish(ctx, batch); err != nil {
		return more, err
	}
	for _, w := range batch {
		if w.call != nil {
			c.scale(w.farm, *w.call, w.now)
		}
	}
	c.listen(batch)
	return more, nil
}

// again has the farms of a pulse that failed decide in the next one.
func again(batch []*work) {
	for _, w := range batch {
		w.mu.Lock()
		if w.tick {
			w.next = w.due
		}
		w.mu.Unlock()
	}
}

// coldFarms is how many farms a pulse begins with at most: the last 15 minutes of
// each are read, which is slow where they were busy, and the others must not wait
// for it.
const coldFarms = 20

// putOff leaves all but the first farms of which nothing was read yet to the next
// pulse.
func putOff(batch []*work, now time.Time) (rest []*work, more bool) {
	cold := 0
	rest = slices.DeleteFunc(batch, func(w *work) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.warm {
			return false
		}
		if cold++; cold <= coldFarms {
			w.warm = true
			return false
		}
		w.next, more = now, true
		return true
	})
	return rest, more
}

// recall reads the roster that was published before this controller began, or led.
func (c *Controller) recall(ctx context.Context) error {
	r, err := c.cfg.Ledgers.Roster(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roster, c.published, c.seen = r, time.Time{}, map[string]time.Time{}
	return nil
}

// collect takes over the platform's list, which was asked for at an instant, and
// returns the farms that are due.
func (c *Controller) collect(workers []Worker, asked, now time.Time, all bool) (batch []*work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	listed := map[string]bool{}
	for _, w := range workers {
		listed[w.Name] = true
		f := c.farms[w.Name]
		if f == nil {
			f = &farm{name: w.Name}
			if old, ok := c.roster.Find(w.Name); ok {
				f.eff.Settings = old.Settings // while what it says now is invalid, that stays
			}
			c.farms[w.Name] = f
		}
		f.mu.Lock()
		if !f.called.After(asked) { // else the list may be older than the last call
			f.worker = w
		}
		woken := c.woken[w.Name] && !f.wakeAt(f.next).After(now)
		if woken {
			delete(c.woken, w.Name)
		}
		tick := woken || !now.Before(f.next) || all && now.Sub(f.ticked) > f.eff.Interval*9/10
		if tick || all || !now.Before(f.due()) {
			due := f.next
			if woken || due.IsZero() {
				due = now
			}
			batch = append(batch, &work{farm: f, tick: tick, due: due, late: max(0, now.Sub(due))})
		}
		f.mu.Unlock()
	}
	for name, f := range c.farms {
		if !listed[name] {
			if f.wake != nil {
				f.wake()
			}
			delete(c.farms, name)
			delete(c.woken, name)
		}
	}
	return batch
}

// claim takes or renews the leases of the roster and the farms, and takes over
// what comes with them.
func (c *Controller) claim(ctx context.Context, batch []*work, begun time.Time) error {
	claims := make([]Claim, 0, len(batch)+1)
	c.mu.Lock()
	led := c.lead
	c.mu.Unlock()
	claims = append(claims, Claim{Fence: led})
	for _, w := range batch {
		claims = append(claims, Claim{Farm: w.name, Fence: w.fence})
	}
	held, err := c.cfg.Keeper.Claim(ctx, c.cfg.Owner, LeaseTime, claims)
	if err != nil {
		return err
	}
	if lead := held[0].Fence; lead > 0 && lead != led {
		if err := c.recall(ctx); err != nil { // another one led
			return err
		}
	}
	until := begun.Add(LeaseTime) // by our clock, from before we asked
	c.mu.Lock()
	c.lead, c.leadUntil = held[0].Fence, until
	c.mu.Unlock()
	if held[0].Err != nil {
		c.cfg.Log.Warn("the roster's lease cannot be claimed", "error", held[0].Err)
	}
	for i, w := range batch {
		if err := errors.Join(held[i+1].Err, w.take(held[i+1], until, begun)); err != nil {
			c.cfg.Log.Warn(err.Error(), "farm", w.name)
		}
	}
	return nil
}

// take takes over the answer to a claim.
func (w *work) take(h Held, until, now time.Time) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	over, err := decodeOverrides(h.Overrides)
	good := w.eff.Settings
	w.eff = settle(w.worker, over.live(h.Now))
	w.eff.keep(good)
	w.now, w.owner = h.Now, h.Owner
	w.look = time.Time{}
	if h.Fence == 0 {
		w.fence, w.series, w.state, w.last = 0, nil, state{}, nil
		w.next = now.Add(min(w.eff.Interval, LeaseTime/2)) // its owner may die
		return err
	}
	if h.Fence != w.fence || w.series == nil {
		var serr error
		if w.state, serr = decodeState(h.State); serr != nil {
			err = serr
		}
		w.series, w.warm = signal.NewSeries(w.state.Signals), false
		w.fence, w.acted, w.trial = h.Fence, nil, nil
	}
	w.until = until
	if w.tick {
		// An interval after it was due, but no later than an interval from now: it
		// may have been woken before.
		if w.next = w.next.Add(w.eff.Interval); !w.next.After(now) || w.next.After(now.Add(w.eff.Interval)) {
			w.next = now.Add(w.eff.Interval)
		}
		w.ticked = now
	}
	return err
}
