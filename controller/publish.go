package controller

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// publish tells the dispatchers the counts of our farms, and, if we lead, the
// list of all.
func (c *Controller) publish(ctx context.Context, batch []*work) error {
	var ours []skeleton.Farm
	for _, w := range batch {
		w.mu.Lock()
		if w.fence > 0 && time.Now().Before(w.until) { // else it may be another's by now
			ours = append(ours, w.entry())
		}
		w.mu.Unlock()
	}
	switch err := c.cfg.Ledgers.PublishWindows(ctx, ours); {
	case errors.Is(err, ledger.ErrSome): // nobody shrinks before the window does
		c.cfg.Log.Warn("windows could not be published", "error", err)
		for _, w := range batch {
			w.mu.Lock()
			if w.call != nil && *w.call < w.worker.Desired {
				w.call = nil
			}
			w.mu.Unlock()
		}
	case err != nil:
		return err
	}
	r, changed := c.list()
	if !changed {
		return nil
	}
	if err := c.cfg.Ledgers.PublishRoster(ctx, r); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Published = time.Now()
	c.roster, c.published = r, r.Published
	return nil
}

// list makes the roster, if we lead, and reports whether it has to be published.
func (c *Controller) list() (r skeleton.Roster, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lead == 0 || time.Now().After(c.leadUntil) {
		return r, false
	}
	now := time.Now()
	listed := map[string]bool{}
	for name, f := range c.farms {
		f.mu.Lock()
		r.Farms = append(r.Farms, f.entry())
		f.mu.Unlock()
		listed[name] = true
	}
	r.Farms = byName(append(r.Farms, missed(c.roster, c.seen, listed, now)...))
	return r, !sameList(r, c.roster) || now.Sub(c.published) >= rosterTime
}

// listen subscribes to new work of the farms that have no worker ready, so that
// they wake at once.
func (c *Controller) listen(batch []*work) {
	for _, w := range batch {
		f := w.farm
		f.mu.Lock()
		asleep := f.fence > 0 && f.worker.Ready == 0
		switch {
		case asleep && f.wake == nil:
			ctx, end := context.WithCancel(c.ctx)
			f.wake = end
			c.done.Go(func() {
				err := c.cfg.Ledgers.Farm(f.name).Watch(ctx, func(e ledger.Event) {
					if e.Kind == ledger.Wake {
						c.touch(f)
					}
				})
				if err != nil && ctx.Err() == nil {
					c.cfg.Log.Warn("new work cannot be watched for; it is found at the next tick", "farm", f.name, "error", err)
					end()
					f.mu.Lock()
					f.wake = nil // try again
					f.mu.Unlock()
				}
			})
		case !asleep && f.wake != nil:
			f.wake()
			f.wake = nil
		}
		f.mu.Unlock()
	}
}

// sameList reports whether two rosters say the same. How long a farm has been
// missing counts only when it begins or ends.
func sameList(a, b skeleton.Roster) bool {
	return slices.EqualFunc(a.Farms, b.Farms, func(x, y skeleton.Farm) bool {
		if (x.Missing > 0) != (y.Missing > 0) {
			return false
		}
		x.Missing, y.Missing = 0, 0
		return reflect.DeepEqual(x, y)
	})
}
