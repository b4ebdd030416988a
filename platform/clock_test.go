package platform

import (
	"sync"
	"time"
)

// FakeClock is a clock that a test sets.
type FakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[chan time.Time]time.Time
	Asked  chan time.Time // when the scheduler wants to look again, each time it has looked
}

// NewFakeClock returns a clock that stands at a time.
func NewFakeClock(now time.Time) *FakeClock {
	return &FakeClock{now: now, timers: map[chan time.Time]time.Time{}, Asked: make(chan time.Time, 1024)}
}

// Use gives the clock to a platform.
func (c *FakeClock) Use(config *Config) { config.clock = c }

// Now is what the clock shows.
func (c *FakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// At is a timer.
func (c *FakeClock) At(t time.Time) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	come := make(chan time.Time, 1)
	if t.After(c.now) {
		c.timers[come] = t
	} else {
		come <- c.now
	}
	c.Asked <- t
	return come, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, come)
	}
}

// Set moves the hands, also back.
func (c *FakeClock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
	for come, at := range c.timers {
		if !at.After(t) {
			come <- t
			delete(c.timers, come)
		}
	}
}
