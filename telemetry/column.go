package telemetry

import (
	"math"
	"time"

	"farmhand/policy"
)

// A column is one number of a row, kept in whole units. What is not known has
// no number.
type column struct {
	get func(*Row) (units int64, known bool)
	set func(*Row, int64, bool)
}

// The units that numbers are kept in, per 1.
const (
	tasks   = 100 // a part of a task stems from a window that cuts a second
	seconds = 1e6
	cores   = 1e3
	shares  = 1e4
)

// largest whole number that a column keeps, either side of 0: up to there the
// way into a float64 and back is exact. Times go on until 2255.
const (
	largest = 1 << 51
	latest  = 1 << 53
)

// columns in the order in which blocks keep them. Others may be added at the end:
// a program passes over the columns it does not know, and of those that a block
// does not have yet the values are unknown. A column never changes its place,
// its unit or its meaning.
var columns = []column{
	{ // when, in microseconds since 1970
		func(r *Row) (int64, bool) { return min(latest, max(-latest, r.At.UnixMicro())), true },
		func(r *Row, x int64, _ bool) { r.At = time.UnixMicro(x).UTC() },
	},
	maybe(seconds, func(r *Row) *policy.Maybe { return &r.Length }),
	maybe(seconds, func(r *Row) *policy.Maybe { return &r.Covered }),
	maybe(tasks, func(r *Row) *policy.Maybe { return &r.Arrivals }),
	maybe(tasks, func(r *Row) *policy.Maybe { return &r.Starts }),
	maybe(tasks, func(r *Row) *policy.Maybe { return &r.Done }),
	maybe(tasks, func(r *Row) *policy.Maybe { return &r.Decided }),
	maybe(tasks, func(r *Row) *policy.Maybe { return &r.Late }),
	maybe(tasks, func(r *Row) *policy.Maybe { return &r.Failed }),
	maybe(tasks, func(r *Row) *policy.Maybe { return &r.Lost }),
	maybe(tasks, func(r *Row) *policy.Maybe { return &r.BusyAnswers }),
	maybe(seconds, func(r *Row) *policy.Maybe { return &r.ServiceMean }),
	maybe(seconds, func(r *Row) *policy.Maybe { return &r.ServiceSD }),
	maybe(seconds, func(r *Row) *policy.Maybe { return &r.SojournP95 }),
	maybe(1, func(r *Row) *policy.Maybe { return &r.Waiting }),
	maybe(1, func(r *Row) *policy.Maybe { return &r.Running }),
	maybe(1, func(r *Row) *policy.Maybe { return &r.Delayed }),
	maybe(seconds, func(r *Row) *policy.Maybe { return &r.OldestWait }),
	maybe(1, func(r *Row) *policy.Maybe { return &r.Overdue }),
	count(func(r *Row) *int { return &r.Desired }),
	count(func(r *Row) *int { return &r.Ready }),
	maybe(seconds, func(r *Row) *policy.Maybe { return &r.StartupLag }),
	maybe(cores, func(r *Row) *policy.Maybe { return &r.CPU }),
	maybe(shares, func(r *Row) *policy.Maybe { return &r.BusyShare }),
	count(func(r *Row) *int { return &r.Slots }),
	maybe(seconds, func(r *Row) *policy.Maybe { return &r.Deadline }),
	count(func(r *Row) *int { return &r.Wish }),
	count(func(r *Row) *int { return &r.Final }),
}

// maybe is the column of a number that may be unknown.
func maybe(units float64, at func(*Row) *policy.Maybe) column {
	return column{
		func(r *Row) (int64, bool) {
			m := *at(r)
			if !m.Known() {
				return 0, false
			}
			return int64(math.Round(min(largest, max(-largest, float64(m)*units)))), true
		},
		func(r *Row, x int64, known bool) {
			if !known {
				*at(r) = policy.Unknown
				return
			}
			*at(r) = policy.Maybe(float64(x) / units)
		},
	}
}

// count is the column of a whole number that is always known. One that an old
// block lacks is 0.
func count(at func(*Row) *int) column {
	return column{
		func(r *Row) (int64, bool) { return int64(min(largest, max(-largest, *at(r)))), true },
		func(r *Row, x int64, _ bool) { *at(r) = int(x) },
	}
}
