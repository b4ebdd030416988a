package redissignal

import "time"

// NewFlusher returns a Flusher without a loop: the test calls FlushAt instead.
func NewFlusher(cfg Config) (*Flusher, error) { return newFlusher(cfg) }

// FlushAt is what the loop does at a tick.
func (f *Flusher) FlushAt(now time.Time) { f.flush(now) }
