package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// ObservationVersion changes when the meaning of an Observation does. A learned
// policy of another version is not run.
const ObservationVersion = 1

// Levels is how many past levels an Observation remembers.
const Levels = 4

// Maybe is a number that may be unknown. Unknown is NaN in memory and null in
// JSON; it is never zero.
type Maybe float64

// Unknown is the number nobody knows.
var Unknown = Maybe(math.NaN())

// Known reports whether the number is known.
func (m Maybe) Known() bool { return !math.IsNaN(float64(m)) && !math.IsInf(float64(m), 0) }

// Or returns the number, or x where it is unknown.
func (m Maybe) Or(x float64) float64 {
	if !m.Known() {
		return x
	}
	return float64(m)
}

// MarshalJSON implements json.Marshaler.
func (m Maybe) MarshalJSON() ([]byte, error) {
	if !m.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(m))
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Maybe) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*m = Unknown
		return nil
	}
	var x float64
	if err := json.Unmarshal(b, &x); err != nil {
		return fmt.Errorf("policy: want a number or null: %w", err)
	}
	*m = Maybe(x)
	return nil
}

// Stats describe a quantity over a window: its count, mean, standard deviation
// and quantiles, in seconds. All but N are 0 where N is 0.
type Stats struct {
	N    float64 `json:"n"`
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// CV2 is the squared coefficient of variation; 0 where it is not defined.
func (s Stats) CV2() float64 {
	if s.N < 2 || s.Mean <= 0 {
		return 0
	}
	return s.SD * s.SD / (s.Mean * s.Mean)
}

// Window is what a farm did over a stretch of time that ends at the observation.
// Counts are tasks, or attempts where it says so.
type Window struct {
	Length   float64 `json:"length"`  // seconds asked for
	Covered  float64 `json:"covered"` // seconds of it that were measured; the rest is unknown, not quiet
	Arrivals float64 `json:"arrivals"`
	Starts   float64 `json:"starts"` // attempts handed to workers
	Done     float64 `json:"done"`   // results accepted
	Decided  float64 `json:"decided"`
	Late     float64 `json:"late"`   // of the decided
	Failed   float64 `json:"failed"` // attempts
	Lost     float64 `json:"lost"`   // attempts lost by the infrastructure
	Busy     float64 `json:"busy"`   // answers of busy workers
	Wait     Stats   `json:"wait"`
	Service  Stats   `json:"service"`
	Sojourn  Stats   `json:"sojourn"`
}

// Rate is the arrival rate over the measured part, in tasks per second.
func (w Window) Rate() Maybe {
	if w.Covered <= 0 {
		return Unknown
	}
	return Maybe(w.Arrivals / w.Covered)
}

// OnTime is the share of decided tasks that were on time, unknown where none was
// decided.
func (w Window) OnTime() Maybe {
	if w.Decided <= 0 {
		return Unknown
	}
	return Maybe(1 - w.Late/w.Decided)
}

// Level is a stretch of time with a steady arrival rate.
type Level struct {
	Rate    float64 `json:"rate"`    // mean arrivals per second since it began
	Age     float64 `json:"age"`     // seconds since it began; of a past level its whole length
	Load    float64 `json:"load"`    // Erlangs: rate × service time ÷ slots
	Sojourn float64 `json:"sojourn"` // mean seconds of the tasks finished in it
}

// Observation is all that a policy may look at. Times and ages are seconds.
type Observation struct {
	Version int       `json:"version"`
	Farm    string    `json:"farm"`
	At      time.Time `json:"at"`
	// Age is how old the newest signal is; unknown where there never was one.
	Age Maybe `json:"age"`

	// What the farm is asked to keep.
	Interval float64 `json:"interval"` // between decisions
	Deadline float64 `json:"deadline"` // soft bound on sojourn; 0 = none
	Target   float64 `json:"target"`   // share of tasks on time, 0…1
	Timeout  float64 `json:"timeout"`  // hard limit of an attempt
	Slots    int     `json:"slots"`    // tasks a replica runs at once
	Min      int     `json:"min"`
	Max      int     `json:"max"`

	// Replicas. Starting is max(0, desired − ready).
	Desired    int   `json:"desired"`
	Ready      int   `json:"ready"`
	Starting   int   `json:"starting"`
	Draining   Maybe `json:"draining"`    // unknown on a plain OpenFaaS
	StartupLag Maybe `json:"startup_lag"` // measured mean, scale call → ready

	// Gauges of this instant; unknown where the ledger could not be read.
	Waiting    Maybe `json:"waiting"`     // tasks
	Running    Maybe `json:"running"`     // tasks handed to workers
	Delayed    Maybe `json:"delayed"`     // tasks that wait for their next attempt
	OldestWait Maybe `json:"oldest_wait"` // of the waiting tasks; 0 where none waits
	Overdue    Maybe `json:"overdue"`     // tasks past their due, waiting or running
	NextDue    Maybe `json:"next_due"`    // until the first waiting task is due, negative when past; unknown where none has a due
	RunningAge Maybe `json:"running_age"` // mean age of the running attempts

	Last  Window `json:"last"`  // one interval
	Short Window `json:"short"` // max(10 s, 3 intervals)
	Long  Window `json:"long"`  // max(120 s, 20 intervals), 15 minutes at most

	// Service is the estimate of a task's service time: measured, with the ages
	// of running attempts; else its last value; else the farm's prior; else unknown.
	Service Maybe `json:"service"`

	Level    Level   `json:"level"`     // since the load last changed level
	Past     []Level `json:"past"`      // the levels before, newest first, at most Levels
	PeakLoad Maybe   `json:"peak_load"` // Erlangs, highest short window of 15 minutes

	// Of the replicas, where the platform tells.
	CPU    Maybe `json:"cpu"`    // cores in use by all replicas
	Memory Maybe `json:"memory"` // bytes in use by all replicas
	Busy   Maybe `json:"busy"`   // share of slots in use, 0…1

	// Quiet spares laws the Reason of their decisions, for a caller that asks millions
	// of times and reads none. It is not observed, and what is wished is the same.
	Quiet bool `json:"-"`
}

// Windows returns the lengths of the short and the long window for an interval,
// in seconds.
func Windows(interval float64) (short, long float64) {
	return min(900, max(10, 3*interval)), min(900, max(120, 20*interval))
}

// Load is the offered load in Erlangs of a replica, λ·S ÷ slots, over a window;
// unknown where the rate or the service time is.
func (o *Observation) Load(w Window) Maybe {
	rate := w.Rate()
	if !rate.Known() || !o.Service.Known() || o.Slots < 1 {
		return Unknown
	}
	return Maybe(float64(rate) * float64(o.Service) / float64(o.Slots))
}

// Stale reports whether the signals are too old or too few to act on: none ever,
// older than three intervals (but at least 5 s), or the gauges unknown.
func (o *Observation) Stale() bool {
	return Silent(o.Age, o.Interval) || !o.Waiting.Known() || !o.Running.Known()
}

// Silent reports whether signals of that age are too old to act on, in a farm
// that is decided for at that interval, in seconds.
func Silent(age Maybe, interval float64) bool {
	return !age.Known() || float64(age) > max(5, 3*interval) || age < 0
}
