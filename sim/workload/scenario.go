// Package workload describes what a farm is offered and what it runs on: arrival
// processes, laws of service and start-up times, scenarios and their files. Draw
// makes a scenario's tasks from a seed.
//
// Times are seconds, rates tasks per second. The package is pure but for its
// readers of files: the same scenario and seed give the same tasks, bit for bit.
package workload

import "math/rand/v2"

// Law is a distribution of durations in seconds, none of them negative.
type Law interface {
	Draw(r *rand.Rand) float64
	Mean() float64
	String() string // as in a scenario file
}

// Placed is a law that depends on which task it is, and when it arrives.
type Placed interface {
	Law
	DrawAt(r *rand.Rand, i int, at float64) float64
}

// Arrivals are an arrival process.
type Arrivals interface {
	// Draw appends the instants at which tasks arrive in [0, horizon), in
	// order, and says when the rate changed.
	Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []Change)
	String() string
}

// Change is an instant at which the rate of arrivals changed. Only oracles may
// look at it.
type Change struct {
	At   float64
	Rate float64 // from then on, tasks per second
}

// Tasks are what a farm is offered in one run. Task i arrives at At[i] and keeps
// a slot busy for Service[i]. Slices that are nil say the same of all tasks.
type Tasks struct {
	Horizon  float64
	At       []float64 // ascending, in [0, Horizon)
	Service  []float64
	Deadline []float64 // soft bound on its sojourn; nil: Farm.Deadline
	Class    []uint8   // nil: one class
	Tenant   []uint16  // nil: one tenant
	Changes  []Change
}

// Scenario is a farm, what it is offered, and the platform it runs on.
type Scenario struct {
	Name     string
	Doc      string // one line
	Horizon  float64
	Arrivals Arrivals
	Service  Law
	Farm     Farm
	Platform Platform
}

// Farm is what the operator of a farm has set.
type Farm struct {
	Interval       float64 // between decisions
	Deadline       float64 // soft bound on sojourn; 0 = none
	DeadlineFactor float64 // of a task's own service time, in place of Deadline; 0 = none
	Target         float64 // share of tasks on time
	Timeout        float64 // hard limit of an attempt
	Prior          float64 // of the service time; 0 = unknown
	Slots          int     // tasks a replica runs at once
	Min, Max       int
	Start          int     // replicas that are ready at the beginning
	Attempts       int     // of a task that fails
	Failing        float64 // share of attempts that fail
	FIFO           bool    // tasks are served as they arrive, whatever their class, tenant and due
}

// Platform is how the replicas of a farm behave. A nil Law takes no time.
type Platform struct {
	Startup  Law     // from the scale call's effect to ready
	Call     Law     // from a decision to the scale call's effect
	Seen     Law     // from ready to when controller and dispatcher know
	Stop     Law     // from a drained replica's last task to its end
	Answer   Law     // from a task's end to the acceptance of its result; it takes no slot
	Overhead float64 // a slot is busy with each task for so much longer
	Blocking bool    // a decision waits until the one before it took effect in full
	Cap      int     // replicas the platform gives at most, whatever is asked for; 0 = no bound
	Victim   Victim
	Balance  Balance
	Crashes  float64 // per second of a ready replica; it starts again by itself
}

// Victim is which replicas a platform drains.
type Victim string

// Victims.
const (
	IdleFirst    Victim = "idle-first"
	RandomVictim Victim = "random"
)

// Balance is how a platform spreads tasks over replicas.
type Balance string

// Balances. A random replica that is full answers 429: the task stays with the
// dispatcher, which offers it again after a pause.
const (
	LeastBusy     Balance = "least-busy"
	RandomReplica Balance = "random"
)

// Streams of randomness, so that what one policy does leaves what the others meet
// as it is: the k-th start-up of a run takes as long under each of them.
const (
	StreamArrivals = iota + 1
	StreamService
	StreamStartup
	StreamPlatform // calls, ready seen, stops, answers
	StreamFaults   // crashes, failures, victims
	StreamBalance
)

// Stream returns a source of randomness of its own for a seed.
func Stream(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// Draw makes the tasks of a run.
func (s *Scenario) Draw(seed uint64) *Tasks {
	t := &Tasks{Horizon: s.Horizon}
	t.At, t.Changes = s.Arrivals.Draw(Stream(seed, StreamArrivals), s.Horizon, nil)
	r := Stream(seed, StreamService)
	t.Service = make([]float64, len(t.At))
	placed, _ := s.Service.(Placed)
	for i := range t.Service {
		if placed != nil {
			t.Service[i] = placed.DrawAt(r, i, t.At[i])
		} else {
			t.Service[i] = s.Service.Draw(r)
		}
	}
	if f := s.Farm.DeadlineFactor; f > 0 {
		t.Deadline = make([]float64, len(t.At))
		for i, x := range t.Service {
			t.Deadline[i] = f * x
		}
	}
	return t
}
