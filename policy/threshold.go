package policy

import "fmt"

// threshold is step scaling, the simplest law that looks at the queue at all: with
// q = waiting tasks per slot that is ready (no slot counts as one),
//
//	q > up                                  step replicas more
//	q ≤ down, and the running tasks would   step replicas fewer
//	fit into the slots that remain
//	else, or within cooldown of a step      as many as there are
//
// Between down and up nothing happens: without that band a farm would swing around
// a single threshold. The queue alone cannot tell a farm that is busy and just in
// time from one that is idle, hence the second condition on the way down. The law
// is the one that cloud vendors offer under the name of step scaling.
//
// Defaults: at up = 1 a new task waits about a service time, which is when
// deadlines of a few service times begin to suffer; down = 0.1 is practically an
// empty queue; one replica a step, and ten seconds from step to step so that the
// effect of one is seen before the next.
//
// Memory: stepped, when the law last wished for a step (seconds since 1970).
var threshold = Law{
	Name: "threshold",
	Doc:  "a step up or down when the queue per slot leaves a band",
	Params: []Param{
		{Name: "up", Doc: "waiting tasks per ready slot above which replicas are added", Default: 1, Min: 0, Max: 1000},
		{Name: "down", Doc: "waiting tasks per ready slot at which replicas are taken away", Default: 0.1, Min: 0, Max: 1000},
		{Name: "step", Doc: "replicas a step", Default: 1, Min: 1, Max: 1000},
		{Name: "cooldown", Doc: "seconds from a step to the next", Default: 10, Min: 0, Max: 3600},
	},
	make: func(p Params) Policy {
		return stepper{p.Spec(), p.Get("up"), p.Get("down"), p.Get("step"), p.Get("cooldown")}
	},
}

type stepper struct {
	spec                     string
	up, down, step, cooldown float64
}

func (s stepper) Name() string { return s.spec }

func (s stepper) Decide(o *Observation, m Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	waiting, running := tasks(o.Waiting), tasks(o.Running)
	queue := waiting / max(1, o.ready())
	seen := fmt.Sprintf("%s waiting for each of %s slots", digits(queue), digits(o.ready()))

	desired, now := float64(o.Desired), seconds(o.At)
	wish := desired
	switch {
	case queue > s.up:
		wish = desired + s.step
		seen += fmt.Sprintf(", over %g", s.up)
	case queue <= s.down && running <= (desired-s.step)*o.slots():
		wish = desired - s.step
		seen += fmt.Sprintf(", at most %g", s.down)
	default:
		return Decision{Replicas: count(desired), Reason: seen + ", nothing to do"}
	}
	if last, ok := m["stepped"]; ok && now >= last && now < last+s.cooldown {
		return Decision{Replicas: count(desired), Reason: fmt.Sprintf("%s, but stepped %s ago", seen, span(now-last))}
	}
	m["stepped"] = now
	return Decision{Replicas: count(wish), Reason: fmt.Sprintf("%s: %+.3g", seen, wish-desired)}
}
