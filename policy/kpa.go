package policy

import (
	"fmt"
	"math"
)

// kpa is Knative's pod autoscaler, as pods.go has it, on concurrency: the tasks that
// wait or run, as Knative counts the requests in its pods' queues and its activator.
//
//	⌈average of window/(target·slots)⌉; where the average of the panic window asks for
//	panic times the ready replicas, the largest of both until a window later
//
// Knative takes a sample each second; here there is one a decision. The buckets are as
// wide as the interval, at least a second, and a decision that was missed has the value
// of the next. Knative ticks every 2 s, the law with every decision.
//
// Zero: a window without any task and grace seconds more; where the farm may go there.
//
// Defaults are Knative's: a container's concurrency is the replica's slots, of which 70 %
// are aimed at; 60 s, of which a tenth may panic at 200 %; up thousandfold, down by
// half a decision. The metric in requests per second is left out: it needs to know
// how many a replica can do, which the service time tells better.
//
// Memory: that of knative, two of buckets, their width, and idle, since when zero was
// wished for.
var kpa = Law{
	Name: "kpa",
	Doc:  "Knative's pod autoscaler: mean concurrency over a minute, in a panic over six seconds",
	Params: []Param{
		{Name: "target", Doc: "tasks in the farm per slot", Default: 0.7, Min: 0.01, Max: 1000, Search: Range{Min: 0.1, Max: 5, Log: true}},
		{Name: "window", Doc: "seconds of the stable average", Default: 60, Min: 6, Max: knativeWindow, Search: Range{Min: 6, Max: knativeWindow, Log: true}},
		{Name: "panicwindow", Doc: "share of the window that is the panic window", Default: 0.1, Min: 0.01, Max: 1, Search: Range{Min: 0.03, Max: 0.5, Log: true}},
		{Name: "panic", Doc: "times the ready replicas, needed by the panic window, that are a panic", Default: 2, Min: 1.1, Max: 10, Search: Range{Min: 1.1, Max: 10, Log: true}},
		{Name: "up", Doc: "times the ready replicas, at most", Default: 1000, Min: 1.01, Max: 1000},
		{Name: "down", Doc: "ready replicas over what is left, at most", Default: 2, Min: 1.01, Max: 1000, Search: Range{Min: 1.05, Max: 20, Log: true}},
		{Name: "delay", Doc: "seconds whose largest count is kept", Default: 0, Min: 0, Max: 3600, Search: Range{Min: 0, Max: 120}},
		floorParam,
		capParam,
		{Name: "activation", Doc: "least replicas where there is any load; 0 none", Default: 0, Min: 0, Max: 1000, Integer: true},
		{Name: "grace", Doc: "seconds from the wish for zero to zero", Default: 30, Min: 0, Max: 3600},
		{Name: "average", Doc: "plain or exponentially weighted", Choices: []string{"linear", "weighted"}},
	},
	make: func(p Params) Policy {
		return &concurrencyScaler{
			spec: p.Spec(), target: p.Get("target"), panicWindow: p.Get("panicwindow"), grace: p.Get("grace"), weighted: p.Get("average") == 1,
			limits: newLimits(p),
			core: knative{
				window: p.Get("window"), threshold: p.Get("panic"), up: p.Get("up"), down: p.Get("down"),
				delay: p.Get("delay"), activation: int(p.Get("activation")), reachable: true,
			},
		}
	},
}

// knativeWindow is the longest stable window, in seconds, and so the most buckets.
const knativeWindow = 300

var (
	knativeStable = bucketsOf("stable", knativeWindow)
	knativePanic  = bucketsOf("panic", knativeWindow)
)

type concurrencyScaler struct {
	spec                       string
	target, panicWindow, grace float64
	weighted                   bool
	core                       knative
	limits
}

func (s *concurrencyScaler) Name() string { return s.spec }

func (s *concurrencyScaler) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	now, width := seconds(o.At), clip(o.Interval, 1, knativeWindow)
	if m["width"] != width {
		clear(m)
		m["width"] = width
	}
	k := s.core
	k.target, k.tick = s.target*o.slots(), width
	stable, rush := knativeStable.of(k.window/width), knativePanic.of(k.window*s.panicWindow/width)
	at := math.Floor(now / width)
	hold(&stable, m, at, inFarm(o))
	hold(&rush, m, at, inFarm(o))

	k.begin(m, now, o.Ready)
	in := knativeReading{now: now, ready: max(0, o.Ready), stable: s.average(&stable, m, at), panic: s.average(&rush, m, at)}
	a := k.scale(m, in)
	if !a.valid {
		return Hold(o, "the averages are unknown")
	}
	n := s.last(m, now, o.Desired, a.desired)
	d := Decision{Replicas: s.clamp(o, n)}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("%s tasks over %s, %s over %s, at %s a replica", digits(float64(in.stable)), span(k.window),
			digits(float64(in.panic)), span(k.window*s.panicWindow), digits(k.target))
		if a.panicking {
			d.Reason += "; it panics"
		}
		if n != a.desired {
			d.Reason += "; the last one stays a while"
		}
		d.Reason += bounded(n, d.Replicas)
	}
	return d
}

func (s *concurrencyScaler) average(b *buckets, m Memory, at float64) Maybe {
	if s.weighted {
		return Maybe(b.weighted(m, at))
	}
	return Maybe(b.average(m, at))
}

// missed is for how many decisions that did not come the next one's value stands.
const missed = 3

// hold adds a sample once a bucket, and to those before that were missed.
func hold(b *buckets, m Memory, at, value float64) {
	from := at
	if last, ok := m[b.last]; ok && last <= at && at-last <= missed+1 {
		from = last + 1
	}
	for ; from <= at; from++ {
		b.add(m, from, value)
	}
}

// last keeps one replica until zero was wished for throughout the grace.
func (s *concurrencyScaler) last(m Memory, now float64, asked, n int) int {
	if n > 0 || asked <= 0 {
		delete(m, "idle")
		return n
	}
	since, idle := m["idle"]
	if !idle || since > now {
		m["idle"], since = now, now
	}
	if now-since < s.grace {
		return 1
	}
	return 0
}
