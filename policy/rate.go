package policy

import "math"

// rate estimates how many tasks arrive a second from now on; unknown where no
// window has measured anything. Three estimates compete, each good at one thing:
//
//   - The level's mean, over all the time since the load last changed, has the least
//     noise, and it forgets what was before a change.
//   - The short window sees a drift that is too slow to be declared a change.
//   - The last interval sees a rise first, but is mostly noise.
//
// The level's mean holds while the short window's count agrees with it within two
// standard deviations of a Poisson count, or while the window still reaches back
// to the interval of the change, which is of both levels; else the short window's rate
// does. The last interval only
// raises the estimate: to the rate of which its count N is two standard deviations
// too many, (N − 2√N) over its length. Example: after 20/s a two-second interval
// brings 400 tasks; the estimate is (400 − 40)/2 = 180/s before anything else
// has noticed, while 50 tasks, a common excess, leave it at 20/s.
//
// A long window without any arrival is quiet whatever the level says.
//
// A farm with time to wait for that long is estimated otherwise: there a job of a
// thousand tasks is work to be drained, not a stream of five hundred a second. Of a
// stream tasks arrive and are handed to workers all the time, so the rate is the least
// of the short window's arrivals, the long one's, and what it handed out, over a minute
// at least. Where a stream grows the queue tells, and there is time.
func rate(o *Observation) Maybe {
	long, short := o.Long.Rate(), o.Short.Rate()
	switch {
	case long == 0:
		return 0
	case patient(o) && long.Known() && short.Known():
		taken := min(o.Long.Arrivals, o.Long.Starts) / max(o.Long.Covered, drainTime)
		return Maybe(clip(min(taken, float64(short)), 0, fastest))
	}
	estimate := short
	for _, other := range []Maybe{long, o.Last.Rate()} {
		if !estimate.Known() {
			estimate = other
		}
	}
	if level := o.Level; level.Age > 0 && Maybe(level.Rate).Known() {
		expected := level.Rate * o.Short.Covered
		if !short.Known() || level.Age < o.Short.Covered+2*o.Interval || math.Abs(o.Short.Arrivals-expected) <= 2*math.Sqrt(expected) {
			estimate = Maybe(level.Rate)
		}
	}
	if !estimate.Known() {
		return Unknown
	}
	if n := o.Last.Arrivals; n > 0 && o.Last.Rate().Known() {
		estimate = max(estimate, Maybe((n-2*math.Sqrt(n))/o.Last.Covered))
	}
	return Maybe(clip(float64(estimate), 0, fastest))
}

// patient reports whether tasks may wait until a stream is told from a job, and then for
// the replicas that it needs: a short window, and a lead time.
func patient(o *Observation) bool {
	return !(o.Deadline > 0) || o.Deadline >= o.Short.Length+leadTime(o)
}

// fastest is a rate beyond that of any farm; it only keeps nonsense finite.
const fastest = 1e9
