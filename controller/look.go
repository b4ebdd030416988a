package controller

import (
	"maps"
	"time"

	"farmhand/policy"
	"farmhand/skeleton/ledger"
)

// Look is what one look at a farm came to. It is to be read only.
type Look struct {
	Farm       string
	Interval   time.Duration
	Desired    int
	Ready      int
	Gauges     *ledger.Gauges // nil = unknown
	Age        policy.Maybe   // seconds since the newest signal; unknown where there never was one
	Conditions map[string]Condition
	Review     *Review  // the last one; nil = none
	Receipt    *Receipt // of the decision, once it was kept; nil = it only looked
}

// tell hands on what was seen of the farms, and decided, in a pulse.
func (c *Controller) tell(batch []*work) {
	if c.cfg.Looked == nil {
		return
	}
	for _, w := range batch {
		w.mu.Lock()
		held := w.fence > 0
		l := Look{Farm: w.name, Interval: w.eff.Interval, Desired: w.worker.Desired, Ready: w.worker.Ready, Gauges: w.gauges,
			Age: policy.Unknown, Review: w.state.Review, Conditions: maps.Clone(w.state.Conditions)} // the next tick changes them
		if w.series != nil {
			l.Age = w.series.Age(w.now)
		}
		if w.wish != nil && w.wish == w.last {
			l.Receipt = w.wish
		}
		w.mu.Unlock()
		if held {
			c.cfg.Looked(l)
		}
	}
}
