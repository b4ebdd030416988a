// Package sim simulates a farm and the platform it runs on, event by event.
//
// A Sim plays the tasks of a workload.Scenario against replicas that start, crash
// and drain. Whoever drives it (Run, the learning environment, an oracle) looks
// at an observation, which the live farm's own code makes of what was measured,
// asks for a number of replicas, and lets it run to the next decision. The same
// scenario, tasks and seed give the same trajectory.
package sim

import (
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim/workload"
)

// Config of a Sim.
type Config struct {
	Scenario *workload.Scenario
	Tasks    *workload.Tasks // shared by runs that are compared; not changed
	Seed     uint64          // of the platform: start-ups, crashes, balancing …
}

// Driver decides for a simulated farm as the controller does for a live one: the
// policy wishes, the guard limits.
type Driver struct {
	Policy policy.Policy
	Rule   policy.Policy   // nil: the policy itself
	Guard  *guard.Settings // nil: no guard but the bounds of the farm
	Step   func(*Step)     // nil; called after each decision, with memory that is used again
}

// Step is one decision of a run.
type Step struct {
	At          float64
	Observation *policy.Observation
	Wish, Rule  policy.Decision
	Outcome     guard.Outcome
}

// Result is what a run came to. Times are seconds.
type Result struct {
	Horizon       float64
	Tasks         int // arrived
	Decided       int // with a due: every one counts, the unfinished as late
	Late          int
	Done          int
	Dead          int
	Unfinished    int
	P50, P95, P99 float64 // of the sojourns of the finished
	MaxSojourn    float64
	Wait, Service float64 // means over the finished
	WorkerSeconds float64
	MeanWorkers   float64
	PeakWorkers   int
	BusyFraction  float64 // of slot-seconds of started replicas
	Windows       int     // intervals in which tasks were decided
	Violating     int     // of them below the target
	Actions       int
	Starts        int
	Flaps         int
	Crashes       int
	Lost          int     // attempts
	Busy          int     // answers of busy replicas
	Saturated     bool    // the offered load is more than max replicas can do
	Events        int     // arrivals and completions
	Mean          float64 // number in system, averaged over time (for Little's law)
}

// OnTime is the share of tasks on time; unknown where none has a due.
func (r *Result) OnTime() policy.Maybe {
	if r.Decided == 0 {
		return policy.Unknown
	}
	return policy.Maybe(1 - float64(r.Late)/float64(r.Decided))
}
