package policy

import "fmt"

// reactive-average and reactive-maximum are the two rules that the published farm
// of Li and others (arXiv 2602.06555) was compared with, after the code published
// with it. One replica at most is added or taken away at a decision:
//
//	S    = max(mean sojourn, 0.1 s)              maximum: max(longest sojourn, mean sojourn, 0.1 s)
//	H    = max(horizon, S, 1 s)
//	need = max(1, (waiting/H·S + λ·S)·safety)
//	busy = min(replicas, max(0, active − [active > 0]))/H·S·½    maximum: without the ½
//	d    = need − (replicas − busy)
//	       +1 where d ≥ 0.5, −1 where d ≤ −0.5
//
// They are kept as they are because published figures were measured with them. S
// is a sojourn time, so a queue makes tasks look long and the need grows with its
// square; the law of a queue is staffing.
//
// What the paper reads from its queues, and what stands for it here:
//
//	worker_q      tasks in the queue of the workers     Waiting
//	λ             tasks enqueued between two steps      arrival rate of the window
//	avg, max_time sojourn of the tasks collected in     Sojourn of the window
//	              the last step (8 s)
//	1.5 s         taken where none was collected: the   Service, and 0.1 s where it is
//	              mean service time                     unknown
//	active        enqueued − worker_q − result_q −      Running
//	              output_q: tasks at the workers
//	workers       replicas, all ready, since it waits   Desired: those that start are not
//	              for each change                       asked for twice
//
// The window is the shortest of last, short and long that is at least horizon
// long; at the paper's interval of 8 s that is the last one. The paper's worker has
// one slot; of a replica with more, need and active are divided by the slots.
//
// Defaults: horizon 8 s and safety 1 are the published values. Nothing stands in
// Memory.
var (
	reactiveAverage = newReactive("reactive-average", "one replica up or down after the mean sojourn (Li and others, 2026)", false)
	reactiveMaximum = newReactive("reactive-maximum", "one replica up or down after the longest sojourn (Li and others, 2026)", true)
)

func newReactive(name, doc string, longest bool) Law {
	return Law{
		Name: name,
		Doc:  doc,
		Params: []Param{
			{Name: "horizon", Doc: "seconds in which the queue should be worked off", Default: 8, Min: 1, Max: 900, Search: Range{Min: 1, Max: 120, Log: true}},
			{Name: "safety", Doc: "times the computed need", Default: 1, Min: 0.1, Max: 10, Search: Range{Min: 0.3, Max: 5, Log: true}},
		},
		make: func(p Params) Policy {
			return reactive{p.Spec(), longest, p.Get("horizon"), p.Get("safety")}
		},
	}
}

type reactive struct {
	spec            string
	longest         bool
	horizon, safety float64
}

func (r reactive) Name() string { return r.spec }

func (r reactive) Decide(o *Observation, _ Memory) Decision {
	if o.Stale() {
		return Hold(o, stale)
	}
	w := r.window(o)
	rate := w.Rate()
	if !rate.Known() {
		return Hold(o, "nothing is known of the arrivals")
	}
	waiting, lambda := tasks(o.Waiting)/o.slots(), tasks(rate)/o.slots()
	active, replicas := tasks(o.Running)/o.slots(), max(0, float64(o.Desired))

	s, idle := r.sojourn(o, w), 0.5
	if r.longest {
		idle = 1
	}
	h := max(r.horizon, s, 1)
	need := max(1, (waiting/h*s+lambda*s)*r.safety)
	if active > 0 {
		active = max(0, active-1/o.slots())
	}
	busy := min(replicas, active) / h * s * idle
	step, why := 0.0, "as it is"
	switch d := need - (replicas - busy); {
	case d >= 0.5:
		step, why = 1, "up by 1"
	case d <= -0.5:
		step, why = -1, "down by 1"
	}
	d := Decision{Replicas: count(replicas + step)}
	if !o.Quiet {
		d.Reason = fmt.Sprintf("need %s and have %s free, for %s waiting and %s/s at %s each: %s",
			digits(need), digits(replicas-busy), digits(tasks(o.Waiting)), digits(float64(rate)), span(s), why)
	}
	return d
}

// window is the shortest one that holds the horizon, or the longest there is.
func (r reactive) window(o *Observation) *Window {
	for _, w := range []*Window{&o.Last, &o.Short} {
		if w.Length >= r.horizon {
			return w
		}
	}
	return &o.Long
}

// sojourn is S, at least 0.1 s.
func (r reactive) sojourn(o *Observation, w *Window) float64 {
	s := float64(o.Service)
	if w.Sojourn.N > 0 {
		s = w.Sojourn.Mean
		if r.longest {
			s = max(s, w.Sojourn.Max)
		}
	}
	return clip(s, 0.1, 1e6)
}
