package sim

import "math"

// counts are what a run has come to so far.
type counts struct {
	done, dead, delayed int // tasks
	timed, late         int // tasks that ended and had a due; of them the late ones
	lost, busy          int // attempts; answers of busy replicas
	actions, starts     int
	flaps, crashes      int
	handBacks           int // of a learned policy

	wait, service, maxSojourn float64 // of the done: sums, and the longest
	sojourns                  quantiles
	worked                    float64 // slot-seconds of the attempts that ended
	inSystem                  area    // tasks that arrived and have not ended
	paid                      area    // replicas
	peak                      int     // of paid

	intervals   []tallied
	perInterval float64 // 1/s
}

// tallied are the tasks decided in an interval.
type tallied struct{ decided, late int32 }

func (c *counts) reset(horizon, interval float64) {
	*c = counts{sojourns: c.sojourns, intervals: c.intervals, perInterval: 1 / interval}
	c.sojourns.reset()
	c.intervals = zeroed(c.intervals, int(math.Ceil(horizon*c.perInterval-1e-9)))
}

// pay counts replicas that are paid for from now on, or no more.
func (c *counts) pay(now float64, n int) {
	c.paid.add(now, n)
	c.peak = max(c.peak, c.paid.n)
}

// decide counts a task that ended at an instant and had a due. It was decided then,
// or when its due passed, if that was before.
func (c *counts) decide(due, now float64, late bool) {
	c.timed++
	i := &c.intervals[min(int(min(due, now)*c.perInterval), len(c.intervals)-1)]
	i.decided++
	if late {
		c.late++
		i.late++
	}
}

// quantile is the sojourn that a share of the done did not exceed.
func (c *counts) quantile(share float64) float64 { return min(c.sojourns.at(share), c.maxSojourn) }

// area is a number that changes in time, and the area under it.
type area struct {
	n   int
	sum float64 // until at
	at  float64
}

func (a *area) add(now float64, n int) {
	a.sum = a.until(now)
	a.n += n
	a.at = now
}

// until is the area from the beginning to now.
func (a *area) until(now float64) float64 { return a.sum + float64(a.n)*(now-a.at) }

// quantiles count durations in bins, 128 for each doubling between 1 µs and 12 days.
// A bin is 0.8 % wide at most; inside one, durations are taken to be spread evenly.
type quantiles struct {
	n    int
	bins []uint32
}

// The leading bits of a number, its exponent and the first bits of its fraction,
// are its bin.
const (
	fraction = 7
	binShift = 52 - fraction
	firstBin = (1023 - 20) << fraction // of 2^-20 s
	lastBin  = 40 << fraction          // of 2^20 s, less firstBin
)

func (q *quantiles) reset() {
	q.n = 0
	q.bins = zeroed(q.bins, lastBin+1)
}

func (q *quantiles) add(x float64) {
	q.n++
	bin := int(math.Float64bits(x)>>binShift) - firstBin
	q.bins[min(max(0, bin), lastBin)]++
}

func (q *quantiles) at(share float64) float64 {
	rank, seen := share*float64(q.n), 0.0
	for bin, n := range q.bins {
		if n == 0 {
			continue
		}
		if seen += float64(n); seen >= rank {
			lo, hi := binBegins(bin), binBegins(bin+1)
			return hi - (hi-lo)*(seen-rank)/float64(n)
		}
	}
	return 0
}

func binBegins(bin int) float64 {
	if bin == 0 {
		return 0
	}
	return math.Float64frombits(uint64(bin+firstBin) << binShift)
}
