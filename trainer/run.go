// Package trainer holds what is kept about trainings in production, and how they get
// on without a process of their own.
//
// A Run learns a policy for a farm or a scenario in slices of some seconds. Each slice
// is an asynchronous call of the function trainer with a Ticket: which run, and which
// slice. Who serves it takes the run (Store.Begin), works, keeps a checkpoint and
// raises the number of the next slice (Store.Commit), posts the next ticket, and only
// then answers. A ticket that comes again finds the run held, or its number too low,
// and does nothing; one that is lost is posted again by a Watch, which the controller
// runs. So a run is done once by whatever is delivered how often, and a crash costs a
// slice at most.
//
// What a slice does is in package work; redisruns keeps runs in Redis; trainapi is
// the HTTP API; fit makes a simulated farm of telemetry.
package trainer

import (
	"context"
	"errors"
	"time"

	"farmhand/policy"
	"farmhand/registry"
)

// State of a run.
type State string

// The states. All but Running are for good.
const (
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Phase is what a run is at.
type Phase string

// The phases, in their order.
const (
	Calibrate Phase = "calibrate" // make a simulated farm of the telemetry, and find the rule's parameters
	Learn     Phase = "learn"
	Judge     Phase = "gate" // compare what was learned with rule and champion
)

// Run is one training, and how far it is.
type Run struct {
	ID        string    `json:"run"`
	Request   Request   `json:"request"`
	State     State     `json:"state"`
	Slice     int       `json:"slice"` // the next one, from 0
	Created   time.Time `json:"created"`
	Heartbeat time.Time `json:"heartbeat"` // of who works at it, or did last
	Ended     time.Time `json:"ended,omitzero"`
	Held      bool      `json:"held"` // somebody works at it now
	Progress  Progress  `json:"progress"`
	Error     string    `json:"error,omitempty"` // why it failed

	Checkpoint string `json:"-"` // name of it in the Store; empty: none yet
}

// Progress is what is shown of a run on its way, and in the end.
type Progress struct {
	Phase   Phase        `json:"phase"`
	Share   float64      `json:"share"`             // of the phase that is done, 0…1
	Steps   int          `json:"steps"`             // that were learned from
	Return  policy.Maybe `json:"return"`            // mean of the last episodes
	OnTime  policy.Maybe `json:"on_time"`           // of the policy in the last round
	Workers policy.Maybe `json:"mean_workers"`      // likewise
	Spent   float64      `json:"spent_s"`           // s of work in all
	Left    policy.Maybe `json:"remaining_s"`       // s of work until the phase is over, at the pace until now
	Version string       `json:"version,omitempty"` // of the policy that came out
	// Verdict of the gate; nil until then.
	Verdict  *registry.Verdict `json:"verdict,omitempty"`
	Promoted bool              `json:"promoted"`
	// Calibration says what the run learned in; nil until the first phase is over.
	Calibration *Calibration `json:"calibration,omitempty"`
}

// NewProgress is that of a run which has not begun.
func NewProgress() Progress {
	return Progress{Phase: Calibrate, Return: policy.Unknown, OnTime: policy.Unknown, Workers: policy.Unknown, Left: policy.Unknown}
}

// Calibration says which simulated farm a run learned in, and how much it is like the
// real one.
type Calibration struct {
	Scenario  string     `json:"scenario"`
	Telemetry bool       `json:"telemetry"` // it was made of the farm's telemetry
	Seconds   float64    `json:"seconds"`   // of telemetry that were used
	Tasks     float64    `json:"tasks"`     // that arrived in them
	Rule      string     `json:"rule"`      // calibrated there, for the gate
	Distances []Distance `json:"distances,omitempty"`
	Notes     []string   `json:"notes,omitempty"` // what was left out, or is not known
}

// Distance is how far a simulated distribution is from the measured one.
type Distance struct {
	Of        string       `json:"of"`
	KS        policy.Maybe `json:"ks"` // Kolmogorov–Smirnov: the largest distance between the distribution functions
	Simulated policy.Maybe `json:"simulated_mean"`
	Measured  policy.Maybe `json:"measured_mean"`
	N         int          `json:"n"` // measured
}

// The errors of a Store.
var (
	ErrUnknown = errors.New("trainer: no such run")
	ErrNotNext = errors.New("trainer: not the run's next slice")
	ErrHeld    = errors.New("trainer: the run is held by another one")
	ErrOver    = errors.New("trainer: the run is over")
	ErrLost    = errors.New("trainer: the run is held by another one now, or over")
	ErrFull    = errors.New("trainer: as many runs as may be are under way")
	ErrEarly   = errors.New("trainer: the farm's last training by schedule is not long enough ago")
	ErrGone    = errors.New("trainer: the checkpoint is gone")
	ErrDamaged = errors.New("trainer: the record of the run is damaged")

	// ErrNoDeadline: nothing is ever late there, and a policy that learned with a deadline
	// would be handed back as soon as it acts.
	ErrNoDeadline = errors.New("trainer: the farm has no deadline")
)

// Store keeps runs and their checkpoints. Times are the store's own. It is safe for
// concurrent use.
type Store interface {
	// Create keeps a new run, of which ID, Request and the length of its slices are
	// given. Where one of that id is known, it returns that, and false. With apart > 0
	// the error is ErrEarly where the farm had such a run within that time; too many
	// runs under way are ErrFull.
	Create(ctx context.Context, id string, r Request, slice, apart time.Duration) (run Run, created bool, err error)
	// Begin takes a run to do a slice, for as long as Hold or Commit follow within a
	// lease. The error is ErrUnknown, ErrNotNext, ErrHeld or ErrOver, the last also
	// where the slice was begun too often without coming to an end: then the run has
	// failed.
	Begin(ctx context.Context, id string, slice int, holder string) (Run, error)
	// Checkpoint is what the last slice kept; nil before the first. ErrGone says that
	// it has expired.
	Checkpoint(ctx context.Context, r *Run) ([]byte, error)
	// Hold tells that the holder is alive, and how far it is. ErrLost says that it no
	// longer has the run.
	Hold(ctx context.Context, id, holder string, p Progress) error
	// Commit ends a slice: it keeps the checkpoint, and the run is at the next slice,
	// or over. The error is ErrLost, with nothing changed. A holder that does not know
	// whether it was kept may call again.
	Commit(ctx context.Context, r *Run, holder string, checkpoint []byte) error
	// Cancel a run. It returns what the run is then.
	Cancel(ctx context.Context, id string) (Run, error)
	Get(ctx context.Context, id string) (Run, error)
	// List runs, the newest first. Where the error wraps ErrDamaged, the runs that it
	// names are left out, and the others are good.
	List(ctx context.Context) ([]Run, error)
	// Overdue are the runs that nobody has worked at for three slices, with the slice
	// that is next: for the one that asks to post again. Each is named once in three
	// slices, whoever asks; one that was named too often without effect has failed.
	// Where the error wraps ErrDamaged, the runs that it names are given up, and the
	// others are good.
	Overdue(ctx context.Context) ([]Ticket, error)
}

// Limits of a Store.
const (
	Lease         = 15 * time.Second   // of a run without a sign of life
	MaxRunning    = 8                  // runs under way
	MaxTries      = 5                  // of a slice
	MaxPosts      = 20                 // of a slice, by watches
	KeptRuns      = 100                // the newest
	RunExpiry     = 8 * 24 * time.Hour // of what is known of a run, since its last change
	Expiry        = 48 * time.Hour     // of a checkpoint, since it was kept
	MaxCheckpoint = 32 << 20           // bytes
	Apart         = 12 * time.Hour     // between trainings of a farm by schedule
	MaxProgress   = 128 << 10          // bytes of a Progress as JSON
)
