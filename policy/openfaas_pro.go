package policy

import (
	"fmt"
	"math"
)

// openfaas-pro is the autoscaling of OpenFaaS Pro:
//
//	⌈load/(target·proportion)⌉, the largest of the last window seconds, from floor to cap
//
// where load is over all replicas, by type:
//
//	rps       ⌈results a second⌉ over the short window (there: 30 s)
//	capacity  tasks that run, the most of 45 s
//	queue     tasks that wait
//
// The documentation has the mean load a replica instead, times the ready ones, which is
// the same. The period of its loop is not published; its rules are evaluated every 15 s.
//
// Zero: after idle seconds without any task, where the farm may go there; from zero the
// gateway asks for max(1, min) with the first call. A floor or min above zero keeps it from zero.
//
// Defaults: type rps, target 50, proportion 0.9, no window (off), idle 15 minutes. The
// target is a replica's.
//
// Memory: look, when it looks again; the trails of the most that ran and of the window;
// active, when there were tasks last.
var openfaasPro = Law{
	Name: "openfaas-pro",
	Doc:  "OpenFaaS Pro: load over target, for results a second, tasks that run, or a queue",
	Params: []Param{
		{Name: "type", Doc: "the load", Choices: []string{"rps", "capacity", "queue"}},
		{Name: "target", Doc: "of the load a replica", Default: 50, Min: 0.01, Max: 1e6, Search: Range{Min: 0.1, Max: 200, Log: true}},
		{Name: "proportion", Doc: "of the target that is aimed at", Default: 0.9, Min: 0.01, Max: 1},
		{Name: "window", Doc: "seconds whose largest count is kept", Default: 0, Min: 0, Max: 300, Search: Range{Min: 0, Max: 300}},
		{Name: "look", Doc: "seconds between looks", Default: 15, Min: 1, Max: 300, Search: Range{Min: 2, Max: 60, Log: true}},
		floorParam,
		capParam,
		{Name: "idle", Doc: "seconds without tasks before zero", Default: 900, Min: 0, Max: 86_400},
	},
	make: func(p Params) Policy {
		return loadScaler{
			p.Spec(), int(p.Get("type")), p.Get("target") * p.Get("proportion"), p.Get("window"), p.Get("look"), p.Get("idle"), newLimits(p),
		}
	},
}

// The types of load.
const (
	loadRate = iota
	loadCapacity
	loadQueue
)

// capacityWindow is the seconds whose most running tasks are the capacity in use.
const capacityWindow = 45

var capacityRunning, proWishes = trailOf("running", "n", roomiest), wishes("")

type loadScaler struct {
	spec                       string
	kind                       int
	target, window, look, idle float64
	limits
}

func (s loadScaler) Name() string { return s.spec }

func (s loadScaler) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	load, of := s.load(o, m)
	if !load.Known() {
		return Hold(o, "nothing is known of the results")
	}
	now := seconds(o.At)
	active, seen := m["active"]
	if inFarm(o) > 0 || !seen || active > now {
		m["active"], active = now, now
	}
	lo, hi := s.bounds(o)
	if o.Desired <= 0 {
		d := Decision{Replicas: lo}
		if inFarm(o) > 0 {
			d.Replicas = max(1, lo)
		}
		if !o.Quiet {
			d.Reason = fmt.Sprintf("at zero with %s tasks", digits(inFarm(o)))
		}
		return d
	}
	if !due(m, "look", now, s.look) {
		return wait(o, m, "look", now)
	}
	n := count(float64(load) / s.target)
	if lo == 0 && now-active >= s.idle {
		n = 0
	} else {
		n = count(proWishes.peak(m, now, s.window, float64(min(max(n, lo, 1), hi))))
	}
	d := Decision{Replicas: n}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("%s %s at %s a replica", digits(float64(load)), of, digits(s.target))
	}
	return d
}

// load is the load of all replicas; unknown where nothing was measured.
func (s loadScaler) load(o *Observation, m Memory) (load Maybe, of string) {
	switch s.kind {
	case loadCapacity:
		return Maybe(capacityRunning.peak(m, seconds(o.At), capacityWindow, tasks(o.Running))), "tasks run"
	case loadQueue:
		return Maybe(tasks(o.Waiting)), "tasks wait"
	}
	if o.Short.Covered <= 0 {
		return Unknown, ""
	}
	return Maybe(clip(math.Ceil(o.Short.Done/o.Short.Covered), 0, fastest)), "results/s"
}
