package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"farmhand/controller"
)

// course is what the controller did with a farm, put together from its receipts.
type course struct {
	begun, at time.Time // receipts of this time are counted
	seq       int64     // of the last one
	owner     string    // who made it
	limit     string    // that bound last

	workerSeconds float64
	peak          int
	ups, downs    int // scale calls
	starts        int // replicas that they asked for

	by   map[string]int // decisions, by the policy that decided
	back string         // why a learned policy was handed back; "" = it was not
}

// add takes over a receipt, and returns what is worth telling of it. Receipts
// come in order; one that is known already is passed over.
//
// Between two receipts the farm had the workers that the platform was found to
// want at the second one; workers that start count. A scale call stands in the
// first receipt after it: that of a controller which was killed in between is not
// counted.
func (c *course) add(r *controller.Receipt) (news string) {
	if r.Seq <= c.seq || !r.At.After(c.begun) {
		return ""
	}
	since := c.begun
	if c.seq > 0 {
		since = c.at
	}
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[r.Decider()]++
	passed := r.At.Sub(since).Seconds()
	c.workerSeconds += float64(r.Before) * passed
	c.peak = max(c.peak, r.Before)
	if a := r.Acted; a != nil {
		c.peak = max(c.peak, a.ReadBack) // what was asked for may be more than there can be
		switch {
		case a.ReadBack > a.From:
			c.ups++
			c.starts += a.ReadBack - a.From
		case a.ReadBack < a.From:
			c.downs++
		}
	}
	news = c.tell(r)
	if b := r.HandedBack; b != nil {
		c.back = b.Cause + ": " + b.Reason
	}
	if c.owner != "" && c.owner != r.Controller {
		news = fmt.Sprintf("↻ another controller goes on, %.1f s after the last decision: %s", passed, cmp.Or(news, "no change"))
	}
	c.seq, c.at, c.owner = r.Seq, r.At, r.Controller
	return news
}

// tell tells a decision that changes the count, or that a limit keeps from it, and a
// hand-back.
func (c *course) tell(r *controller.Receipt) string {
	before, limit := c.limit, ""
	if n := len(r.Outcome.Limits); n > 0 {
		limit = r.Outcome.Limits[n-1].Name
	}
	c.limit = limit
	switch {
	case r.HandedBack != nil:
		return fmt.Sprintf("↩ %d workers: %s", r.Replicas, r.Why())
	case r.Replicas > r.Before:
		return fmt.Sprintf("▲ %d → %d workers: %s", r.Before, r.Replicas, r.Why())
	case r.Replicas < r.Before:
		return fmt.Sprintf("▼ %d → %d workers: %s", r.Before, r.Replicas, r.Why())
	case limit != "" && limit != before:
		return fmt.Sprintf("= %d workers stay: %s", r.Replicas, r.Why())
	}
	return ""
}

// horizon is the time that receipts tell of.
func (c *course) horizon() time.Duration { return max(0, c.at.Sub(c.begun)) }

// mean is the mean number of workers.
func (c *course) mean() float64 {
	if c.horizon() == 0 {
		return 0
	}
	return c.workerSeconds / c.horizon().Seconds()
}

// deciders tells who decided how often.
func (c *course) deciders() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(c.by)) {
		list = append(list, fmt.Sprintf("%d decisions by %s", c.by[name], name))
	}
	return strings.Join(list, ", ")
}
