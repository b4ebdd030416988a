package policy

import "fmt"

// threshold is step scaling, the simplest law that looks at the queue at all: with
// q = waiting tasks per slot that is ready (no slot counts as one),
//
//	q > up                               step replicas more
//	q ≤ down, the running tasks fit      step replicas fewer
//	into the slots that remain, and no
//	step for cooldown seconds
//	else                                 as many as there are
//
// Between down and up nothing happens: without that band a farm would swing around
// a single threshold. A queue cannot tell a farm that is idle from one that is busy
// and just in time, hence the other two conditions of a step down. A step up waits
// for nothing, since a queue that is there grows. What cloud vendors offer under the
// name of step scaling is step-scaling.
//
// Defaults: at up = 1 a new task waits about a service time, which is when
// deadlines of a few service times begin to suffer; down = 0.1 is practically an
// empty queue; one replica a step; cooldown a minute, as staffing's, since with
// ten seconds even a steady load loses replicas in each lull.
//
// Memory: stepped, when the law last wished for a step (seconds since 1970).
var threshold = Law{
	Name: "threshold",
	Doc:  "a step up or down when the queue per slot leaves a band",
	Params: []Param{
		{Name: "up", Doc: "waiting tasks per ready slot above which replicas are added", Default: 1, Min: 0, Max: 1000, Search: Range{Min: 0.05, Max: 20, Log: true}},
		{Name: "down", Doc: "waiting tasks per ready slot at which replicas are taken away", Default: 0.1, Min: 0, Max: 1000, Search: Range{Min: 0, Max: 1}},
		{Name: "step", Doc: "replicas a step", Default: 1, Min: 1, Max: 1000, Integer: true, Search: Range{1, 32, true, true}},
		{Name: "cooldown", Doc: "seconds from any step to a step down", Default: 60, Min: 0, Max: 3600, Search: Range{Min: 2, Max: 600, Log: true}},
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
	desired, now := max(0, float64(o.Desired)), seconds(o.At)
	fewer := max(0, desired-s.step)
	last, stepped := m["stepped"]

	over, below := queue > s.up, queue <= s.down && desired > 0
	busy := running > fewer*o.slots()
	soon := stepped && now >= last && now < last+s.cooldown
	wish := desired
	switch {
	case over:
		wish = desired + s.step
	case below && !busy && !soon:
		wish = fewer
	}
	if wish != desired {
		m["stepped"] = now
	}
	d := Decision{Replicas: count(wish)}
	if o.Quiet {
		return d
	}
	why := "nothing to do"
	switch {
	case over:
		why = fmt.Sprintf("over %g: up by %g", s.up, s.step)
	case below && busy:
		why = fmt.Sprintf("but %s tasks run", digits(running))
	case below && soon:
		why = fmt.Sprintf("but the last step was %s ago", span(now-last))
	case below:
		why = fmt.Sprintf("at most %g: down by %g", s.down, desired-fewer)
	}
	d.Reason = fmt.Sprintf("%s waiting per ready slot, %s", digits(queue), why)
	return d
}
