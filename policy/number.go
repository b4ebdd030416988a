package policy

import (
	"math"
	"strconv"
	"time"
)

// most is the largest count a law wishes. It only keeps nonsense finite: the
// farm's own bounds are the guard's.
const most = 1_000_000

// count makes whole replicas of a wish, rounding up; from 0 to most. A sum that
// is a whole number but for its last digits is that number. NaN is none.
func count(x float64) int { return int(clip(math.Ceil(x-1e-9), 0, most)) }

// clip brings x between lo and hi; NaN is lo.
func clip(x, lo, hi float64) float64 {
	switch {
	case x > hi:
		return hi
	case x >= lo:
		return x
	default:
		return lo
	}
}

// tasks reads a gauge of tasks: what is unknown or below nothing counts as none.
func tasks(m Maybe) float64 { return clip(m.Or(0), 0, 1e12) }

// ready is how many tasks the ready replicas run at once.
func (o *Observation) ready() float64 { return max(0, float64(o.Ready)) * o.slots() }

// slots is how many tasks a replica runs at once, at least one.
func (o *Observation) slots() float64 { return max(1, float64(o.Slots)) }

// seconds is an instant as Memory keeps it: seconds since 1970.
func seconds(t time.Time) float64 { return float64(t.Unix()) + float64(t.Nanosecond())/1e9 }

// span writes seconds for people, as "150 ms" or "2.7 s".
func span(seconds float64) string {
	if math.Abs(seconds) < 1 {
		return digits(seconds*1000) + " ms"
	}
	return digits(seconds) + " s"
}

// digits writes a number for people, with three digits or as a whole.
func digits(x float64) string {
	if x >= 100 && x < 1e6 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
