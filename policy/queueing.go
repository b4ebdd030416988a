package policy

import "math"

// This file knows farms as queues: c servers, an offered load of a Erlangs (the
// mean number of servers at work, λ·S), one line of waiting tasks.
//
// With Poisson arrivals and exponential service the queue is M/M/c and exact:
// Erlang's C is the share of tasks that have to wait, and their wait is
// exponential with mean S/(c − a). For other arrivals and services Allen and
// Cunneen's approximation stretches the waits by (ca² + cs²)/2, half the sum of
// the squared coefficients of variation of gaps and services. It is exact for
// M/G/1 (Pollaczek and Khinchine), and good where c grows.

// ErlangB is the share of tasks that c servers without a queue turn away. The
// recursion over 1, 2 … c servers adds and divides positive numbers below 1 only,
// so it is stable for any c.
func ErlangB(c int, a float64) float64 {
	b := 1.0
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	return b
}

// ErlangC is the share of tasks that wait for one of c servers, and 1 where the
// load is more than they can do.
func ErlangC(c int, a float64) float64 { return waits(c, a, ErlangB(c, a)) }

// waits turns Erlang's B into his C.
func waits(c int, a, b float64) float64 {
	rho := a / float64(c)
	if c < 1 || rho >= 1 {
		return 1
	}
	return b / (1 - rho*(1-b))
}

// Wait is the mean wait in seconds of all tasks, those that do not wait included:
// C·S/(c − a)·(ca² + cs²)/2. It is infinite where the load is more than c servers
// can do.
func Wait(c int, a, service, ca2, cs2 float64) float64 {
	if a >= float64(c) {
		return math.Inf(1)
	}
	return ErlangC(c, a) * waitOfWaiting(c, a, service, ca2, cs2)
}

// waitOfWaiting is the mean wait of the tasks that wait at all.
func waitOfWaiting(c int, a, service, ca2, cs2 float64) float64 {
	return service / (float64(c) - a) * (ca2 + cs2) / 2
}

// exactLoad is the load up to which fewest searches. Beyond it one server more
// is less than a hundredth of the square root of the load, and the search slow.
const exactLoad = 10_000

// fewest is the smallest number of servers, not below from and more than the
// load, for which enough(c, C) holds, where C is Erlang's. enough must stay true
// as c grows; where it is false even for a + 10·√a + 20 servers, where practically
// no task waits, that number is the answer. Above exactLoad no C is asked for: a + 2·√a
// servers are taken, with which one task in forty waits (Halfin and Whitt).
func fewest(a, from float64, enough func(c int, wait float64) bool) float64 {
	if a > exactLoad {
		return max(from, a+2*math.Sqrt(a))
	}
	top := math.Ceil(a + 10*math.Sqrt(a) + 20)
	c := int(clip(math.Ceil(from), math.Floor(a)+1, top))
	for b := ErlangB(c, a); c < int(top) && !enough(c, waits(c, a, b)); {
		c++
		b = a * b / (float64(c) + a*b)
	}
	return max(from, float64(c))
}

// lognormal is the law of service times with a given mean and squared coefficient
// of variation: positive and longer on the right, as measured ones are. With
// cv² = 0 all services take the mean.
type lognormal struct{ mu, sigma float64 }

func newLognormal(mean, cv2 float64) lognormal {
	v := math.Log1p(cv2)
	return lognormal{math.Log(mean) - v/2, math.Sqrt(v)}
}

// within is the share of services that take at most x seconds.
func (l lognormal) within(x float64) float64 {
	d := math.Log(x) - l.mu
	if l.sigma == 0 {
		if d < 0 {
			return 0
		}
		return 1
	}
	return math.Erfc(-d/l.sigma/math.Sqrt2) / 2
}

// quantile is the time within which a share p of the services is done.
func (l lognormal) quantile(p float64) float64 {
	if l.sigma == 0 {
		return math.Exp(l.mu)
	}
	return math.Exp(l.mu + l.sigma*math.Sqrt2*math.Erfinv(2*p-1))
}

// nodes are how many services punctuality looks at.
const nodes = 16

// punctuality is how many tasks of a queue are on time: P(wait + service ≤ D).
//
// A share F(D) of the tasks has a service that fits into the deadline D at all.
// Of those, a task with service x is late if it waits more than D − x: with
// probability C·e^(−(D−x)/w), where w is the mean wait of the waiting. The mean of
// that is an integral over the ranks 0…1 of the services that fit. It is taken
// with the midpoint rule over s, rank 1 − s³, which looks closest at the long
// services, where the integrand rises; the error is below 0.0003.
//
// The zero value knows nothing yet: see of.
type punctuality struct {
	deadline float64
	service  lognormal
	fits     float64        // F(D)
	slack    [nodes]float64 // D − x
}

// ranks and weights are those of the services that punctuality looks at.
var ranks, weights = midpoints()

func midpoints() (ranks, weights [nodes]float64) {
	sum := 0.0
	for i := range nodes {
		s := (float64(i) + 0.5) / nodes
		ranks[i], weights[i] = 1-s*s*s, s*s
		sum += s * s
	}
	for i := range nodes {
		weights[i] /= sum
	}
	return ranks, weights
}

// of makes p that of a positive deadline and services. Where it is already, that costs
// nothing: sizes for several loads share one p.
func (p *punctuality) of(deadline float64, service lognormal) {
	if p.deadline == deadline && p.service == service {
		return
	}
	p.deadline, p.service, p.fits = deadline, service, service.within(deadline)
	for i, rank := range ranks {
		p.slack[i] = max(0, deadline-service.quantile(p.fits*rank))
	}
}

// share is the share on time where a share wait of the tasks waits, and those w
// seconds in the mean.
func (p *punctuality) share(wait, w float64) float64 {
	late := 0.0
	for i, slack := range p.slack {
		late += weights[i] * math.Exp(-slack/w)
	}
	return p.fits * (1 - wait*late)
}
