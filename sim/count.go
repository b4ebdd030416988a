package sim

import "math"

// counts are what a run has come to so far.
type counts struct {
	Done, Dead, Delayed, Lost, Busy        int
	timed, late                            int // tasks that ended and had a due
	Actions, Starts, Flaps, Crashes        int
	saturated                              bool
	wait, service, busy, maxSojourn        float64 // sums over the finished; slot-seconds of ended attempts
	sojourns                               quantiles
	inSystem, paid, peak                   int
	systemArea, paidArea, systemAt, paidAt float64
	perInterval                            float64
	intervals                              []tallied
}

// tallied are the tasks decided in an interval.
type tallied struct{ decided, late int32 }

func (c *counts) reset(s *Sim, w work) {
	*c = counts{sojourns: c.sojourns, intervals: c.intervals, perInterval: 1 / s.farm.Interval}
	c.sojourns.reset()
	c.intervals = zeroed(c.intervals, int(math.Ceil(s.horizon*c.perInterval-1e-9)))
	most := s.farm.Max
	if p := s.platform.Cap; p > 0 && (most == 0 || p < most) {
		most = p
	}
	offered := w.total + float64(len(s.at))*s.overhead
	c.saturated = most > 0 && offered > s.horizon*float64(most*s.slots)
}

// system counts tasks that enter or leave the system, and keeps the area under
// that count.
func (c *counts) system(now float64, n int) {
	c.systemArea += float64(c.inSystem) * (now - c.systemAt)
	c.inSystem += n
	c.systemAt = now
}

// pay counts replicas that are paid for from now on, or no more.
func (c *counts) pay(now float64, n int) {
	c.paidArea += float64(c.paid) * (now - c.paidAt)
	c.paid += n
	c.paidAt = now
	c.peak = max(c.peak, c.paid)
}

// decide counts a task that ended at an instant and had a due. It was decided then,
// or when its due passed, if that was before.
func (c *counts) decide(due, now float64, late bool) {
	c.timed++
	c.tally(min(due, now), late)
	if late {
		c.late++
	}
}

func (c *counts) tally(at float64, late bool) {
	i := &c.intervals[min(int(at*c.perInterval), len(c.intervals)-1)]
	i.decided++
	if late {
		i.late++
	}
}

func (c *counts) quantile(share float64) float64 { return min(c.sojourns.at(share), c.maxSojourn) }

// quantiles are the counts of durations in bins of one width per octave: each
// octave between 1 µs and 12 days is cut into 128 bins, so that a duration is known
// to 0.8 %, and a quantile, interpolated in its bin, much better.
type quantiles struct {
	n    int
	bins []uint32
}

const (
	octaveBits  = 7
	binShift    = 52 - octaveBits
	shortestExp = -20
	octaves     = 40
	firstBin    = (1023 + shortestExp) << octaveBits
	lastBin     = octaves << octaveBits
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

// at is the duration that a share of all does not exceed.
func (q *quantiles) at(share float64) float64 {
	if q.n == 0 {
		return 0
	}
	rank := share * float64(q.n)
	seen := 0.0
	for bin, n := range q.bins {
		if n == 0 {
			continue
		}
		if seen += float64(n); seen >= rank {
			lo, hi := border(bin), border(bin+1)
			return hi - (hi-lo)*(seen-rank)/float64(n)
		}
	}
	return border(lastBin)
}

func border(bin int) float64 {
	if bin == 0 {
		return 0
	}
	return math.Float64frombits(uint64(bin+firstBin) << binShift)
}
