package policy

import "fmt"

// keda scales on the length of a queue as KEDA does, in two loops:
//
//	every polling seconds  from 0 to max(1, floor) where more than activation tasks are
//	                       there; from any count to 0, where that may be, once there were
//	                       no more than that at any poll for cooldown seconds, or ever
//	every sync seconds     above 0: the autoscaler of Kubernetes on ⌈tasks/target⌉, as
//	                       horizontal.go has it, from max(1, floor) to cap
//
// The tasks are those that wait and, with inflight, those that run: its scaler of SQS
// counts both by default, that of RabbitMQ those that wait alone over AMQP. A scaler whose
// queue cannot be read leaves the count alone, as the law does on missing signals.
//
// Defaults are KEDA's: 5 tasks a replica (SQS), activation 0, polling 30 s, cooldown 300
// s; those of the autoscaler are as in hpa.go. Unlike the other laws' target this one is
// a replica's, whatever its slots.
//
// Memory: poll and next, when either loop looks again; active, when tasks were last
// seen at a poll; and that of horizontal.
var keda = Law{
	Name: "keda",
	Doc:  "KEDA: tasks/target through the autoscaler of Kubernetes, and a switch to and from zero",
	Params: []Param{
		{Name: "target", Doc: "tasks a replica", Default: 5, Min: 0.01, Max: 10_000, Search: Range{Min: 0.1, Max: 20, Log: true}},
		{Name: "inflight", Doc: "whether running tasks count", Choices: []string{"yes", "no"}},
		{Name: "activation", Doc: "tasks that are as good as none", Default: 0, Min: 0, Max: 10_000},
		{Name: "polling", Doc: "seconds between looks of the switch", Default: 30, Min: 1, Max: 300},
		{Name: "cooldown", Doc: "seconds without tasks before zero", Default: 300, Min: 0, Max: 3600},
		syncParam,
		toleranceParam,
		windowParam,
		floorParam,
		capParam,
	},
	make: func(p Params) Policy {
		return &queueScaler{
			spec: p.Spec(), target: p.Get("target"), running: p.Get("inflight") == 0, activation: p.Get("activation"),
			polling: p.Get("polling"), cooldown: p.Get("cooldown"), sync: p.Get("sync"), core: newHorizontal(p), limits: newLimits(p),
		}
	},
}

type queueScaler struct {
	spec                                        string
	target, activation, polling, cooldown, sync float64
	running                                     bool
	core                                        horizontal
	limits
}

func (s *queueScaler) Name() string { return s.spec }

func (s *queueScaler) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	now, queue := seconds(o.At), tasks(o.Waiting)
	if s.running {
		queue = inFarm(o)
	}
	if due(m, "poll", now, s.polling) {
		if d, switched := s.poll(o, m, now, queue); switched {
			return d
		}
	}
	switch {
	case o.Desired <= 0:
		return wait(o, m, "poll", now)
	case !due(m, "next", now, s.sync):
		return wait(o, m, "next", now)
	}
	lo, hi := s.bounds(o)
	return s.core.decide(o, m, max(1, lo), max(1, hi), queue, s.target, metricTasks)
}

// poll switches to and from zero.
func (s *queueScaler) poll(o *Observation, m Memory, now, queue float64) (d Decision, switched bool) {
	lo, _ := s.bounds(o)
	active := queue > s.activation
	if active {
		m["active"] = now
	}
	last := clip(m["active"], 0, now) // never: long ago
	switch {
	case active && o.Desired <= 0:
		d.Replicas = max(1, lo)
	case !active && o.Desired > 0 && lo == 0 && now >= last+s.cooldown:
	default:
		return d, false
	}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("%s tasks, active above %g: switched to %d", digits(queue), s.activation, d.Replicas)
	}
	return d, true
}
