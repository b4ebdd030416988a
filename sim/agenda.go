package sim

import "math"

// event is something that will happen. Events of one instant happen in the order
// in which they were planned.
type event struct {
	at  float64
	seq uint32 // in which order it was planned; also tells a plan that was given up
	id  uint32 // kind, and which lease, replica or task
}

// kind is what happens. It stands in the upper bits of an event's id, above the
// index of what it happens to.
type kind = uint32

const (
	attemptEnds    kind = iota << indexBits // of a lease
	resultComes                             // of a lease
	delayEnds                               // of a task
	offerComes                              // one of the parked leases is offered again
	replicaReady                            // index: the replica
	replicaCrashes                          // likewise
	replicaEnds                             // likewise
	callWorks                               // the scale call takes effect
	readyIsSeen                             // by controller and dispatcher
	lowerIsTried                            // a scale-down that waits for its call
	lookIsMade                              // at what is ready
	nothing                                 // stands at the end of the agenda

	indexBits = 28
	maxIndex  = 1<<indexBits - 1
)

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && int32(e.seq-o.seq) < 0
}

// agenda is a binary heap of events. At its end stands one that never happens, so
// that there always is a next one.
//
// What happens mostly plans something else: a completion plans that of the next
// task. So taking an event leaves a hole at the root, which the next plan fills in
// one pass down, in place of one to close it and another one up.
type agenda struct {
	list []event
	seq  uint32
	hole bool // the root has been taken
}

func (a *agenda) reset() {
	a.list = append(a.list[:0], event{at: math.Inf(1), id: nothing})
	a.seq, a.hole = 0, false
}

// next is the event that happens next.
func (a *agenda) next() *event {
	if a.hole {
		a.close()
	}
	return &a.list[0]
}

// take takes the event that next returned off the agenda.
func (a *agenda) take() { a.hole = true }

// plan enters an event and returns its seq.
func (a *agenda) plan(at float64, id uint32) uint32 {
	a.seq++
	e := event{at, a.seq, id}
	if a.hole {
		a.hole = false
		a.down(e)
		return e.seq
	}
	i := len(a.list)
	a.list = append(a.list, e)
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&a.list[parent]) {
			break
		}
		a.list[i] = a.list[parent]
		i = parent
	}
	a.list[i] = e
	return e.seq
}

func (a *agenda) close() {
	last := len(a.list) - 1
	e := a.list[last]
	a.list = a.list[:last]
	a.hole = false
	a.down(e)
}

// down puts an event at the root's place or below.
func (a *agenda) down(e event) {
	list := a.list
	i := 0
	for {
		child := 2*i + 1
		if child >= len(list) {
			break
		}
		if right := child + 1; right < len(list) && list[right].before(&list[child]) {
			child = right
		}
		if !list[child].before(&e) {
			break
		}
		list[i] = list[child]
		i = child
	}
	list[i] = e
}

// all calls fn with what is planned, in no particular order.
func (a *agenda) all(fn func(event)) {
	if a.hole {
		a.close()
	}
	for _, e := range a.list {
		fn(e)
	}
}
