// Package farmday plays days of a farm for the tests of telemetry: what its
// controller observes each tick, with the noise that decides how well a record
// of it compresses. It is no simulator: queues are counted, not played.
package farmday

import (
	"math"
	"math/rand/v2"
	"time"

	"farmhand/policy"
)

// Tick is the time between two observations, in seconds.
const Tick = 2

// Kind of a farm.
type Kind struct {
	Rate    float64 // mean arrivals per second over the day
	Service float64 // mean service time, in seconds
	Spread  float64 // coefficient of variation of the service time
}

// Web is a busy farm of short tasks, Batch a slow one of long tasks, Flood one
// where no number is like the one before.
var (
	Web   = Kind{Rate: 60, Service: 0.040, Spread: 0.6}
	Batch = Kind{Rate: 0.5, Service: 30, Spread: 1.2}
	Flood = Kind{Rate: 1500, Service: 0.015, Spread: 0.8}
)

// Farm is a farm that gets work by day and night, with bursts. It scales itself
// to the load seen a minute before.
type Farm struct {
	Kind
	rng   *rand.Rand
	at    time.Time
	drift float64 // of the service time, a slow walk
	burst float64 // factor on the rate
	until time.Time

	queue, delayed float64
	running        float64
	desired, ready int
	past           []tick // newest last, at most kept
	began          time.Time
}

// kept is how many ticks the longest window needs.
const kept = 62

type tick struct {
	arrivals, starts, done, late, failed, lost, busy float64
	wait, service, sojourn                           sums
}

// sums are the exact moments of a distribution.
type sums struct{ n, sum, squares, max float64 }

// New returns a farm whose first observation is one tick after a time.
func New(k Kind, seed uint64, at time.Time) *Farm {
	return &Farm{Kind: k, rng: rand.New(rand.NewPCG(seed, seed)), at: at, began: at, drift: 1, burst: 1, desired: 1, ready: 1}
}

// Next is what the controller sees a tick later.
func (f *Farm) Next() *policy.Observation {
	// A tick comes late by some of the loop's own time, a timer's or a network's.
	f.at = f.at.Add(time.Duration((Tick + 0.002*f.rng.NormFloat64()) * 1e9)).Truncate(time.Microsecond)
	f.weather()
	t := f.work()
	f.past = append(f.past, t)
	f.past = f.past[max(0, len(f.past)-kept):]
	return f.observe()
}

// weather moves what the farm does not decide: bursts, and how long tasks are.
func (f *Farm) weather() {
	f.drift = min(2, max(0.5, f.drift*math.Exp(0.002*f.rng.NormFloat64())))
	if f.at.After(f.until) {
		f.burst = 1
		if f.rng.Float64() < Tick/600.0 { // one in ten minutes
			f.burst = 2 + 4*f.rng.Float64()
			f.until = f.at.Add(time.Duration(15+60*f.rng.Float64()) * time.Second)
		}
	}
}

// rate follows the sun, with a quiet hour at night and a weekend.
func (f *Farm) rate() float64 {
	day := math.Mod(f.at.Sub(f.began).Hours(), 24)
	sun := max(0, 1+0.9*math.Sin(2*math.Pi*(day-9)/24))
	if day < 1 {
		sun = 0
	}
	if int(f.at.Sub(f.began).Hours()/24)%7 >= 5 {
		sun /= 3
	}
	return f.Rate * sun * f.burst
}

func (f *Farm) work() (t tick) {
	t.arrivals = f.poisson(f.rate() * Tick)
	mean := f.Service * f.drift
	could := f.poisson(float64(f.ready) * Tick / mean)
	had := f.queue
	f.queue += t.arrivals
	t.starts = max(0, min(f.queue, could)-f.poisson(0.01*t.arrivals)) // some came just before the tick
	f.queue -= t.starts
	before := f.running
	f.running = min(float64(f.ready), f.poisson(t.starts*mean/Tick))
	t.done = max(0, t.starts+before-f.running)
	t.failed = f.poisson(t.done * 0.001)
	t.lost = f.poisson(0.0005)
	t.busy = f.poisson(t.done * 0.01)
	f.delayed = max(0, f.delayed+t.failed-f.poisson(f.delayed*0.3))
	wait := 0.0005 + (had+f.queue)/2*mean/float64(f.ready)
	if wait > 3*f.Service {
		t.late = f.poisson(t.done * 0.5)
	}
	t.late = min(t.late, t.done)
	t.service = f.draw(t.done, mean, f.Spread)
	t.wait = f.draw(t.done, wait, 1)
	t.sojourn = f.draw(t.done, wait+mean+0.001, f.Spread)
	want := int(math.Ceil(1.2*f.mean(30)*mean + 2*f.queue*mean/10))
	f.ready = max(1, f.desired)
	f.desired = min(64, max(1, want))
	return t
}

// mean is the arrival rate over the last ticks, in tasks per second.
func (f *Farm) mean(ticks int) float64 {
	n := 0.0
	p := f.past[max(0, len(f.past)-ticks):]
	for _, t := range p {
		n += t.arrivals
	}
	return n / (float64(max(1, len(p))) * Tick)
}

// draw adds up n durations of a lognormal distribution, to the nanosecond as
// clocks give them: one by one where they are few, by their sum where many.
func (f *Farm) draw(n, mean, cv float64) (s sums) {
	sigma := math.Sqrt(math.Log(1 + cv*cv))
	one := func() float64 {
		return math.Round(1e9*mean*math.Exp(sigma*f.rng.NormFloat64()-sigma*sigma/2)) / 1e9
	}
	few := min(n, 16)
	for range int(few) {
		x := one()
		s.n, s.sum, s.squares, s.max = s.n+1, s.sum+x, s.squares+x*x, max(s.max, x)
	}
	if rest := n - few; rest >= 1 {
		sum := rest*mean + math.Sqrt(rest)*mean*cv*f.rng.NormFloat64()
		s.n, s.sum = s.n+rest, s.sum+math.Round(1e9*max(0, sum))/1e9
		s.squares += rest * mean * mean * (1 + cv*cv) * (1 + f.rng.NormFloat64()/math.Sqrt(rest)/3)
		s.max = max(s.max, one()*math.Exp(sigma*math.Sqrt(2*math.Log(rest))/2))
	}
	return s
}

func (f *Farm) poisson(mean float64) float64 {
	if mean > 50 {
		return max(0, math.Round(mean+math.Sqrt(mean)*f.rng.NormFloat64()))
	}
	n, p := 0.0, math.Exp(-mean)
	for x := f.rng.Float64(); x > p; x *= f.rng.Float64() {
		n++
	}
	return n
}
