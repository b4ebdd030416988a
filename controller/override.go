package controller

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

// ErrNoFarm says that the platform lists no such worker.
var ErrNoFarm = errors.New("controller: no such farm")

// Override changes a farm's overrides: nil removes one. They hold from the next
// tick on, until they are removed or, with forTime above 0, that long. A value
// that would not be valid is a *BadSetting, and nothing is changed.
func (c *Controller) Override(ctx context.Context, name string, changes map[string]*string, forTime time.Duration) error {
	c.mu.Lock()
	f := c.farms[name]
	c.mu.Unlock()
	if f == nil {
		return ErrNoFarm
	}
	for {
		kept, err := c.cfg.Keeper.Kept(ctx, name)
		if err != nil {
			return err
		}
		old, err := decodeOverrides(kept.Overrides)
		if err != nil {
			old = Overrides{} // unreadable ones are replaced
		}
		var until time.Time
		if forTime > 0 {
			until = kept.Now.Add(forTime)
		}
		old = old.live(kept.Now)
		next, err := old.patch(changes, until)
		if err != nil {
			return err
		}
		f.mu.Lock()
		worker := f.worker
		f.mu.Unlock()
		if err := refused(worker, old, next, changes); err != nil {
			return err
		}
		var raw []byte
		if len(next) > 0 {
			if raw, err = json.Marshal(next); err != nil {
				return err
			}
		}
		if done, err := c.cfg.Keeper.Override(ctx, name, kept.Overrides, raw); err != nil || done {
			c.touch(f)
			return err
		}
	}
}

// refused looks whether a change makes a setting invalid. What is removed is not
// asked: what the worker itself says was there before.
func refused(w Worker, old, next Overrides, changes map[string]*string) error {
	if !slices.ContainsFunc(slices.Collect(maps.Values(changes)), func(v *string) bool { return v != nil }) {
		return nil
	}
	before := settle(w, old).Problems
	for _, p := range settle(w, next).Problems {
		name, what, _ := strings.Cut(p, ": ")
		detail, fix, _ := strings.Cut(what, ": want ") // "X is not valid: want Y"
		value, changed := changes[strings.TrimPrefix(name, "farmhand.")]
		if removed := changed && value == nil; !removed && (changed || !slices.Contains(before, p)) {
			return &BadSetting{Field: strings.TrimPrefix(name, "farmhand."), Detail: detail, Fix: "want " + fix}
		}
	}
	return nil
}

// touch lets a farm decide soon.
func (c *Controller) touch(f *farm) {
	c.mu.Lock()
	c.woken[f.name] = true
	c.mu.Unlock()
	c.poke()
}
