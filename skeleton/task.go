package skeleton

import "time"

// State is where a task is in its life. Every accepted task is in exactly one
// state at every instant.
type State string

// The states of a task. Done, Dead and Cancelled are final; a dead task can be
// redriven.
const (
	Waiting   State = "waiting"   // accepted, in the queue
	Leased    State = "leased"    // handed to a dispatcher, which holds a lease
	Delayed   State = "delayed"   // an attempt failed, waits for its back-off
	Done      State = "done"      // its result was accepted
	Dead      State = "dead"      // given up, kept as a dead letter
	Cancelled State = "cancelled" // its job was cancelled
)

// Classes of priority: class 0 is served before class 1, and so on.
const (
	Classes      = 10
	DefaultClass = 5
)

// Limits of a task's attempts.
const (
	DefaultAttempts = 5   // attempts that may fail before a task is dead
	MaxAttempts     = 100 // the most a job may ask for
	LostBudget      = 8   // attempts that may be lost with their replica
	MaxKey          = 200 // bytes of an idempotency key
	MaxTenant       = 64  // bytes of a tenant's name
)

// NewTask is a task as it is submitted.
type NewTask struct {
	Body     []byte        // opaque to the farm
	Type     string        // media type of Body; "" = application/octet-stream
	Key      string        // idempotency key: the farm accepts a key once; "" = none
	Class    int           // 0 … Classes-1
	Tenant   string        // whose turn it is in the round-robin; "" is a tenant too
	Deadline time.Duration // due = accepted + Deadline; 0 = see Due
	Due      time.Time     // zero = no due
	Timeout  time.Duration // hard limit of one attempt; 0 = the farm's
	Attempts int           // attempts that may fail; 0 = DefaultAttempts
	NoRetry  bool          // a lost or timed-out attempt is final: "unknown outcome"
	Stage    string        // kept for pipelines
	Parent   string        // kept for map-reduce
}

// Task is an accepted task.
type Task struct {
	NewTask
	Farm     string    // the worker function's name
	Job      string    // FARM~ULID
	Index    int       // position in the job, from 0
	Size     int       // bytes of the body
	Accepted time.Time // when it became visible, by the ledger's clock
	Attempt  int       // 1 + attempts that failed before
	Lost     int       // attempts lost with their replica or their dispatcher
}

// Job is a set of tasks with one progress and one stream of results.
type Job struct {
	ID       string // FARM~ULID
	Farm     string
	Ordered  bool   // the client wants its results in the order of the tasks
	Callback string // URL told when the job has ended; "" = none
	Open     bool   // tasks may still be appended

	Created time.Time // when its first tasks became visible
	Ended   time.Time // when it was closed and its last task finished; zero = not yet
	Expires time.Time // when the ledger forgets it; zero = not ended

	Total     int // tasks accepted
	Done      int
	Dead      int
	Cancelled int
	Late      int // decided later than due, or dead

	Position  int  // results in the stream so far, acknowledged ones included
	Cancel    bool // it was cancelled
	BodyBytes int  // bytes of bodies still kept for it
	KeptBytes int  // bytes of results not acknowledged
}

// Pending returns the number of tasks that are not final.
func (j Job) Pending() int { return j.Total - j.Done - j.Dead - j.Cancelled }

// Result is what became of one task.
type Result struct {
	Index    int
	State    State  // Done or Dead
	Status   int    // HTTP status of the last answer; 0 = there was none
	Type     string // media type of Body
	Body     []byte // the worker's answer; of a dead task its last answer, shortened
	Key      string
	Reason   string        // of a dead task: why
	Attempt  int           // attempts charged, the last one included
	Lost     int           // attempts lost
	Late     bool          // accepted later than due
	Wait     time.Duration // accepted → last hand-over to a worker
	Service  time.Duration // hand-over → answer
	Sojourn  time.Duration // accepted → result accepted
	Finished time.Time     // when it was accepted, by the ledger's clock
}
