package policy

import (
	"fmt"
	"math"
	"strconv"
)

// forecast sizes the farm for an arrival rate that it forecasts, by the additive method
// of Holt and Winters, at a quantile:
//
//	x = arrivals a second in a bin                        every bin seconds
//	l = alpha·(x − s) + (1 − alpha)·(l + b)               level
//	b = beta·(l − l before) + (1 − beta)·b                trend a bin
//	s = gamma·(x − l) + (1 − gamma)·s                     season, one of season/bin
//	v = 0.9·v + 0.1·(x − forecast)²                       variance of the errors
//	λ = l + k·b + s(k) + z(quantile)·√v                   k bins on from the last
//
// The rate to size for is the largest λ of now to L + I from now, when what is asked for
// now works, and never below the one of rate.go: what nobody foresaw is reacted to.
// From there on it is staffing: the model of sizing.go, a backlog drained, wishes held.
//
// Season 0 has none: level and trend alone (Holt). A season of more than 96 bins has
// wider ones. Seasons are counted from 1970, so that a restart does not shift them.
//
// Sources: Holt (1957), Winters (1960); the largest forecast over the start-up time, and
// the maximum with a reactive rule, are what is known of Netflix' Scryer; a quantile
// in the place of the mean is what OptScaler (VLDB 2024) gains by.
//
// Defaults: alpha 0.3, beta 0.05 and gamma 0.3 are in the middle of what is usual, 90 %
// covers most errors; no season, since nobody knows which.
//
// Memory: bin, its number since 1970; arrivals and covered, its counts so far; l, b, v;
// s0 and on, the season; the past wishes that are held.
var forecast = Law{
	Name: "forecast",
	Doc:  "staffing for a quantile of the arrival rate that Holt and Winters forecast",
	Params: []Param{
		headroomParam,
		{Name: "quantile", Doc: "of the forecast", Default: 0.9, Min: 0.5, Max: 0.9999, Search: Range{Min: 0.5, Max: 0.999}},
		{Name: "alpha", Doc: "weight of a bin in the level", Default: 0.3, Min: 0, Max: 1, Search: Range{Min: 0.02, Max: 0.9, Log: true}},
		{Name: "beta", Doc: "weight of a bin in the trend", Default: 0.05, Min: 0, Max: 1, Search: Range{Min: 0.001, Max: 0.5, Log: true}},
		{Name: "gamma", Doc: "weight of a bin in the season", Default: 0.3, Min: 0, Max: 1, Search: Range{Min: 0.05, Max: 0.9, Log: true}},
		{Name: "season", Doc: "seconds of the season; 0 none", Default: 0, Min: 0, Max: 604_800, Search: Range{Min: 30, Max: 3600, Log: true}},
		{Name: "bin", Doc: "seconds of a bin, at least the interval", Default: 10, Min: 1, Max: 3600},
		floorParam,
		capParam,
		{Name: "down", Doc: "seconds that a wish is held", Default: 60, Min: 0, Max: 3600, Search: Range{Min: 2, Max: 600, Log: true}},
	},
	make: func(p Params) Policy {
		q := p.Get("quantile")
		return seer{
			spec: p.Spec(), sizer: sizer{p.Get("headroom"), betaParam.Default, drainParam.Default},
			z: math.Sqrt2 * math.Erfinv(2*q-1), alpha: p.Get("alpha"), beta: p.Get("beta"), gamma: p.Get("gamma"),
			season: p.Get("season"), bin: p.Get("bin"), down: p.Get("down"), limits: newLimits(p),
		}
	},
}

// seasonBins is the most bins of a season.
const seasonBins = 96

var seasonKeys = func() (keys [seasonBins]string) {
	for i := range keys {
		keys[i] = "s" + strconv.Itoa(i)
	}
	return keys
}()

type seer struct {
	spec string
	sizer
	z, alpha, beta, gamma float64
	season, bin, down     float64
	limits
}

func (s seer) Name() string { return s.spec }

func (s seer) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	lambda := rate(o)
	if !lambda.Known() && inFarm(o) == 0 {
		return Hold(o, "no task is there, and nothing is known of the arrivals")
	}
	at, soon := seconds(o.At), leadTime(o)
	c := s.calendar(o)
	s.learn(o, m, c, at, lambda)
	ahead := s.ahead(m, c, at, soon)
	if lambda == 0 && ahead*soon < 0.1 {
		ahead = 0 // no task to be expected: an idle farm goes to its least
	}
	z := s.size(o, max(lambda, Maybe(ahead)), &punctuality{}) // NaN where the rate is unknown
	now := s.clamp(o, count(z.replicas))
	held := count(steadyWishes.peak(m, at, s.down, possible(o, s.clamp(o, count(z.level)))))
	draining := count(drainWishes.peak(m, at, soon, possible(o, now)))
	d := Decision{Replicas: max(now, held, draining)}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("%s/s foreseen within %s; ", digits(ahead), span(soon)) + z.explain(o) + bounded(count(z.replicas), now)
		if d.Replicas > now {
			d.Reason += fmt.Sprintf("; %d was wished before", d.Replicas)
		}
	}
	return d
}

// calendar is how time is cut: bins of a width, so many a season, none or one without.
type calendar struct {
	width float64
	bins  int
}

func (s seer) calendar(o *Observation) calendar {
	width := max(s.bin, clip(o.Interval, 0, 3600), s.season/seasonBins)
	return calendar{width, int(clip(math.Round(s.season/width), 0, seasonBins))}
}

// bin is the number of the bin at a time.
func (c calendar) bin(at float64) float64 { return clip(math.Floor(at/c.width), 0, 1e15) }

// key is the name of a bin in its season, "" where there is no season.
func (c calendar) key(bin float64) string {
	if c.bins == 0 {
		return ""
	}
	return seasonKeys[int64(clip(bin, 0, 1e15))%int64(c.bins)]
}

// learn adds what arrived in the last interval to the bin, and the bin, once it ends, to
// the model.
func (s seer) learn(o *Observation, m Memory, c calendar, at float64, lambda Maybe) {
	if !o.Last.Rate().Known() {
		return
	}
	bin := c.bin(at - o.Last.Covered/2)
	if m["bin"] != bin {
		s.update(m, c)
		m["bin"] = bin
	}
	arrivals := o.Last.Arrivals
	if patient(o) { // a job is no stream, see rate
		arrivals = lambda.Or(0) * o.Last.Covered
	}
	m["arrivals"] = clip(m["arrivals"]+arrivals, 0, 1e15)
	m["covered"] = clip(m["covered"]+o.Last.Covered, 0, 1e9)
	if c.bin(at) > bin {
		s.update(m, c)
	}
}

// update ends the bin.
func (s seer) update(m Memory, c calendar) {
	if !(m["covered"] > 0) {
		return
	}
	x := clip(m["arrivals"]/m["covered"], 0, fastest)
	m["arrivals"], m["covered"] = 0, 0
	level, begun := m["l"]
	if !begun {
		m["l"], m["b"], m["v"] = x, 0, x/c.width // the variance of a Poisson count
		return
	}
	key := c.key(m["bin"])
	season, trend := 0.0, m["b"]
	if key != "" {
		season = m[key]
	}
	wrong := x - (level + trend + season)
	next := s.alpha*(x-season) + (1-s.alpha)*(level+trend)
	m["l"] = clip(next, -fastest, fastest)
	m["b"] = clip(s.beta*(next-level)+(1-s.beta)*trend, -fastest, fastest)
	m["v"] = clip(0.9*m["v"]+0.1*wrong*wrong, 0, fastest*fastest)
	if key != "" {
		m[key] = clip(s.gamma*(x-next)+(1-s.gamma)*season, -fastest, fastest)
	}
}

// ahead is the largest rate forecast from now to so many seconds on; 0 before there is
// a model.
func (s seer) ahead(m Memory, c calendar, at, soon float64) float64 {
	level, begun := m["l"]
	if !begun {
		return 0
	}
	largest, now := 0.0, c.bin(at)
	last := min(c.bin(at+soon), now+seasonBins)
	for bin := now; bin <= last; bin++ {
		x := level + (bin-now+1)*m["b"] // the level is that of the bin before
		if key := c.key(bin); key != "" {
			x += m[key]
		}
		largest = max(largest, x)
	}
	return clip(largest+s.z*math.Sqrt(max(0, m["v"])), 0, fastest)
}
