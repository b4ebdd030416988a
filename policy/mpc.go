package policy

import (
	"fmt"
	"math"
)

// mpc is model predictive control over a short horizon: the count whose cost, as a model
// of the farm has it, is least until what is asked for now works.
//
//	L   the start-up lag, averaged: L += smooth·(measured − L)
//	h   ⌈L/I⌉ + 1 intervals
//	λ   the rate of rate.go, with trend times its slope
//
// The model is fluid. Of n replicas asked for, those that are ready work at once, those
// that start after L/2, new ones after L. In each interval the queue grows by λI and
// shrinks by what they do, and of the tasks that arrive a share is late: all, where
// the queue's own wait leaves no slack until the deadline, else as in a queue M/G/c with
// that much slack, Erlang's C by Halfin and Whitt: C = 1/(1 + βΦ(β)/φ(β)), β =
// (c − a)/√a. Of what is queued at the end those are late that n replicas do not come to
// in time.
//
//	cost = Σ n·I + late·(late tasks)·S/((1 − target)·slots) + churn·L·|n − desired|
//
// in replica-seconds. A late task is worth as many services as tasks may be late: at a
// target of 95 % twenty.
//
// Source: the controller of ADAPT (arXiv 2605.15788), which averages the measured lag
// with 0.3, plans over one interval more than it, and weighs violations, count and
// changes (10, 1, 0.5); its forecasters are left out.
//
// Defaults: late and trend 1, churn 0.5, smooth 0.3.
//
// Memory: lag.
var mpc = Law{
	Name: "mpc",
	Doc:  "model predictive control: the cheapest count over the averaged start-up lag",
	Params: []Param{
		{Name: "late", Doc: "times the weight of a late task", Default: 1, Min: 0, Max: 1000, Search: Range{Min: 0.03, Max: 30, Log: true}},
		{Name: "churn", Doc: "start-up lags of a replica that a change costs", Default: 0.5, Min: 0, Max: 100, Search: Range{Min: 0, Max: 5}},
		{Name: "trend", Doc: "times the growth of the arrival rate", Default: 1, Min: 0, Max: 10, Search: Range{Min: 0, Max: 5}},
		{Name: "smooth", Doc: "weight of a measured start-up lag in its mean", Default: 0.3, Min: 0.01, Max: 1},
		floorParam,
		capParam,
	},
	make: func(p Params) Policy {
		return planner{p.Spec(), p.Get("late"), p.Get("churn"), p.Get("trend"), p.Get("smooth"), newLimits(p)}
	},
}

type planner struct {
	spec                       string
	late, churn, trend, smooth float64
	limits
}

func (s planner) Name() string { return s.spec }

func (s planner) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	lambda := rate(o)
	service := clip(float64(o.Service), 0, 1e6)
	switch {
	case !lambda.Known() && inFarm(o) == 0:
		return Hold(o, "no task is there, and nothing is known of the arrivals")
	case lambda == 0 && inFarm(o) == 0:
		return s.say(o, o.Min, "idle")
	case !lambda.Known() || service == 0:
		return s.say(o, count(sizer{beta: betaParam.Default}.blind(o)), "arrival rate or service time unknown")
	}
	f := s.model(o, float64(lambda), service, s.lag(o, m))
	n, cost := f.best()
	d := Decision{Replicas: n}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("%s/s at %s, %s waiting; the next %s cost %s replica-seconds", digits(float64(lambda)), span(service),
			digits(f.queue), span(f.steps*f.interval), digits(cost))
	}
	return d
}

func (s planner) say(o *Observation, n int, why string) Decision {
	d := Decision{Replicas: s.clamp(o, n)}
	if !o.Quiet {
		d.Reason = why
	}
	return d
}

// lag averages the measured start-up lag.
func (s planner) lag(o *Observation, m Memory) float64 {
	mean, ok := m["lag"]
	if !ok {
		mean = lag(o)
	}
	m["lag"] = clip(mean+s.smooth*(lag(o)-mean), 0, 1e9)
	return m["lag"]
}

// fluid is the model of a farm over the horizon. Counts are replicas.
type fluid struct {
	planner
	interval, steps, lag, deadline float64 // steps is a count
	rate, slope, service, stretch  float64 // stretch of waits, (1 + cs²)/2
	queue, slots, weight           float64 // weight of a late task, in replica-seconds
	ready, starting, desired       float64
	least, most                    float64
}

// longestPlan is the most intervals of a plan.
const longestPlan = 30

func (s planner) model(o *Observation, lambda, service, lag float64) fluid {
	lo, hi := s.bounds(o)
	f := fluid{
		planner: s, interval: clip(o.Interval, 1e-3, 3600), lag: lag, deadline: patience(o),
		rate: lambda, slope: s.trend * slope(o), service: service, stretch: (1 + variation(o)) / 2,
		queue: tasks(o.Waiting), slots: o.slots(),
		ready: max(0, float64(o.Ready)), starting: max(0, float64(o.Starting)), desired: float64(asked(o)),
		least: max(1, float64(lo)), most: float64(hi),
	}
	f.steps = min(math.Ceil(lag/f.interval), longestPlan-1) + 1
	f.weight = s.late * service / (1 - clip(o.Target, 0, 0.9999)) / f.slots
	return f
}

// tries is about how many counts the search looks at, at most.
const tries = 64

// best is the cheapest count, and what it costs. The cost may have several valleys, so
// it looks at all from the load, below which tasks pile up without end, to where the
// queue is gone before it makes tasks late and practically no task waits; in large
// farms at some.
func (f *fluid) best() (n int, cost float64) {
	load := f.rate * f.service / f.slots
	from := clip(math.Floor(load), f.least, f.most)
	backlog := f.queue*f.service/f.slots + max(0, load-f.ready)*(f.lag+f.interval) // replica-seconds, when new ones are ready
	slack := clip(f.deadline-f.service, f.interval/20, f.interval/2)
	to := clip(load+4*math.Sqrt(load)+4+backlog/slack, from, f.most)
	step := max(1, math.Floor((to-from)/tries))
	best, cost := from, f.cost(from)
	for at := from + step; at <= to; at += step {
		if c := f.cost(at); c < cost {
			best, cost = at, c
		}
	}
	return count(best), cost
}

// cost is that of asking for n replicas until the horizon.
func (f *fluid) cost(n float64) float64 {
	sum := n*f.steps*f.interval + f.churn*f.lag*math.Abs(n-f.desired)
	queue := f.queue
	for k := range int(f.steps) {
		middle := (float64(k) + 0.5) * f.interval
		able := min(n, f.ready)
		if middle > f.lag/2 {
			able = min(n, f.ready+f.starting)
		}
		if middle > f.lag {
			able = n
		}
		able *= f.slots
		lambda := max(0, f.rate+f.slope*middle)
		next := max(0, queue+(lambda-able/f.service)*f.interval)
		wait := math.Inf(1)
		if able > 0 {
			wait = (queue + next) / 2 * f.service / able
		}
		sum += f.weight * lambda * f.interval * f.lateShare(able, lambda*f.service, wait)
		queue = next
	}
	if queue > 0 {
		wait := queue * f.service / max(1, n*f.slots) // of the last; the first has none
		sum += f.weight * queue * max(0, 1-max(0, f.deadline-f.service)/wait)
	}
	return sum
}

// lateShare is the share of late tasks among those that come to so many slots under a
// load, behind a queue with a wait of its own.
func (f *fluid) lateShare(slots, load, wait float64) float64 {
	slack := f.deadline - f.service - wait
	spare := slots - load
	if slack <= 0 || spare <= 0 {
		return 1
	}
	if load <= 0 {
		return 0
	}
	return erlangCHalfinWhitt(spare/math.Sqrt(load)) * math.Exp(-spare*slack/(f.service*f.stretch))
}

// erlangCHalfinWhitt is the share of tasks that wait where β square roots of the load
// are spare, in the limit of large farms: 1/(1 + βΦ(β)/φ(β)).
func erlangCHalfinWhitt(beta float64) float64 {
	return 1 / (1 + beta*math.Sqrt(math.Pi/2)*math.Erfc(-beta/math.Sqrt2)*math.Exp(beta*beta/2))
}
