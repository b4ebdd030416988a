// Package ledger says what keeps the state of every task of a farm: one state
// machine per task, changed atomically, never by the expiry of a key.
//
//	          submit                take                 settle(Done)
//	(staged) ───────▶ waiting ───────────────▶ leased ───────────────▶ done
//	                    ▲ ▲ ▲                  │ │ │ └─ settle(Rejected) ─▶ dead
//	                    │ │ └── settle(Released)┘ │                          │
//	                    │ └──── lapse (lost + 1) ─┤            redrive        │
//	                    ├── due ── delayed ◀──────┘ settle(Failed | Lost)     │
//	                    └─────────────────────────────────────────────────────┘
//	cancel takes waiting, leased and delayed tasks to cancelled.
//
// At every instant submitted = waiting + leased + delayed + done + dead +
// cancelled. A task is executed at least once; its result is accepted exactly
// once, because Settle checks the fence of the lease.
//
// There is no counter of slots: Take hands out at most window − live leases, so
// the slots of a dead dispatcher come back when its leases lapse. All times are
// those of the store.
//
// The suite in ledgertest proves an implementation.
package ledger

import (
	"context"
	"errors"
	"time"

	"farmhand/skeleton"
)

// Errors of a ledger. ErrUnavailable wraps every refusal of the store itself
// (connection lost, READONLY, LOADING, MISCONF, OOM …): nothing was decided,
// try again later, never charge a task for it.
var (
	ErrUnavailable = errors.New("ledger: store unavailable")
	ErrNotFound    = errors.New("ledger: no such job")
	ErrClosed      = errors.New("ledger: job takes no more tasks")
	ErrFull        = errors.New("ledger: queue full")           // the farm's waiting tasks or bytes: try again later
	ErrTooLarge    = errors.New("ledger: submission too large") // larger than an empty queue takes: send pieces
	ErrGone        = errors.New("ledger: stage is gone")        // swept because its client was silent too long
	ErrRef         = errors.New("ledger: no reference to a task, or no cursor")
	ErrKeyUsed     = errors.New("ledger: the idempotency key belongs to another submission") // to another job, or of another kind
	ErrExists      = errors.New("ledger: job exists")                                        // job id taken by another submission
	ErrSome        = errors.New("ledger: some farms, not all of them")
	ErrSchema      = errors.New("ledger: schema is newer than this program")
)

// Numbers of the contract. Limits carries those that may be set.
const (
	LeaseTime   = 15 * time.Second       // a lease lasts this long unless renewed
	RenewEvery  = 5 * time.Second        // how often a dispatcher renews
	MaxBatch    = 500                    // leases, renewals or outcomes in one call
	MaxInline   = 4 << 10                // larger bodies and results live in keys of their own
	BusyEvery   = 100 * time.Millisecond // the window's factor falls at most this often
	BusyFactor  = 0.9                    // what too many busy answers do to the factor
	BusyRecover = 0.02                   // what a second adds again
	BusyPeriod  = time.Second            // busy answers are counted for this long
	BusyTries   = 2                      // see TooBusy
	MinFactor   = 0.25
	AgeFactor   = 10               // a task that waited this many deadlines is served next
	NoDeadline  = 60 * time.Second // the deadline that ageing assumes where there is none
)

// TooBusy reports whether so many busy answers from n replicas, while so many tasks
// ended, say that fewer slots are free than the window holds. Where tasks go to random
// replicas, one free among n is found after n tries in the mean: n busy answers for
// each task that ends are nobody's fault. Twice as many are.
func TooBusy(busy, n, ended int) bool { return busy > 0 && busy >= BusyTries*n*(1+ended) }

// Limits bound what a farm keeps. The zero value means the defaults.
type Limits struct {
	QueueTasks  int           // unfinished tasks (1,000,000)
	QueueBytes  int           // bodies of unfinished tasks (256 MB)
	KeptBytes   int           // results and dead letters not yet collected (256 MB); beyond it Take stops
	StageRuns   int           // changes of class, tenant, due … in one submission (10,000)
	KeyedTasks  int           // tasks with a key in one submission (10,000)
	StageIdle   time.Duration // a silent stage is swept after this (10 min)
	Retention   time.Duration // an ended job is kept this long (24 h)
	DeadRetains time.Duration // an ended job with dead letters is kept this long (7 days)
}

// WithDefaults fills in the fields that are zero.
func (l Limits) WithDefaults() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	defTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&l.QueueTasks, 1_000_000)
	def(&l.QueueBytes, 256<<20)
	def(&l.KeptBytes, 256<<20)
	def(&l.StageRuns, 10_000)
	def(&l.KeyedTasks, 10_000)
	defTime(&l.StageIdle, 10*time.Minute)
	defTime(&l.Retention, 24*time.Hour)
	defTime(&l.DeadRetains, 7*24*time.Hour)
	return l
}

// Store holds the ledgers of all farms and the roster that the controller
// publishes.
type Store interface {
	// Farm returns the ledger of one farm. It is cheap and keeps no resources.
	Farm(name string) Ledger
	// Roster returns what the controller published last.
	Roster(ctx context.Context) (skeleton.Roster, error)
	// PublishWindows sets the counts of farms, ready and target, which bound what
	// Take hands out, and wakes the dispatchers where the window grew. ErrSome
	// stands for an error that the others did not have.
	PublishWindows(ctx context.Context, farms []skeleton.Farm) error
	// PublishRoster replaces the list of farms. The store stamps the time.
	PublishRoster(ctx context.Context, r skeleton.Roster) error
	// WatchRoster calls fn after every change until ctx ends, and once at the
	// start and after each reconnection.
	WatchRoster(ctx context.Context, fn func()) error
	// Durability says how well an acknowledged write is kept: "memory",
	// "process", "disk" or "replica". It is read from the server itself.
	Durability(ctx context.Context) (string, error)
}

// Publish sets the windows of all farms of a roster and then the roster itself,
// for who looks after all of them alone.
func Publish(ctx context.Context, s Store, r skeleton.Roster) error {
	if err := s.PublishWindows(ctx, r.Farms); err != nil {
		return err
	}
	return s.PublishRoster(ctx, r)
}

// Ledger is the ledger of one farm. It is safe for concurrent use.
type Ledger interface {
	Producer
	Dispatch
	Keeper
}

// Producer is what submits jobs and reads their results.
type Producer interface {
	// Stage begins a submission. Nothing of it is visible before Commit.
	Stage(ctx context.Context, s Submission) (Stage, error)
	// Close ends the appending to a job; closing twice is fine.
	Close(ctx context.Context, job string) (skeleton.Job, error)
	// Cancel cancels a job's unfinished tasks. Running ones are cancelled at
	// once; their leases stay until the call ends or lapses. Calling it again
	// continues one that was cut off.
	Cancel(ctx context.Context, job string) (skeleton.Job, error)
	// Job returns a job's progress.
	Job(ctx context.Context, job string) (skeleton.Job, error)
	// Jobs lists jobs, newest first, beginning after the given id ("" = newest).
	Jobs(ctx context.Context, after string, limit int) ([]skeleton.Job, error)
	// Results reads results from a cursor on.
	Results(ctx context.Context, job string, q Query) (Page, error)
	// Acknowledge drops the results before a cursor of Results: the client has
	// them.
	Acknowledge(ctx context.Context, job string, ordered bool, cursor int) error
	// WatchJob calls fn whenever results may have been added or the job ended,
	// and once at the start and after each reconnection, until ctx ends.
	WatchJob(ctx context.Context, job string, fn func()) error
	// Dead lists dead letters, oldest first, beginning after a cursor ("" = the
	// oldest).
	Dead(ctx context.Context, after string, limit int) ([]DeadLetter, string, error)
	// Redrive puts dead letters back into the queue with fresh budgets: those
	// named by refs, or up to limit of them where refs is nil. It returns how
	// many.
	Redrive(ctx context.Context, refs []string, limit int) (int, error)
}

// Dispatch is what a dispatcher does with a farm.
type Dispatch interface {
	// Take leases up to max tasks to owner, in the order of service, and at
	// most window − live leases. Before that it ends lapsed leases and delays.
	Take(ctx context.Context, owner string, max int) (Taken, error)
	// TakeAny leases regardless of the window: for a farm whose worker is gone.
	TakeAny(ctx context.Context, owner string, max int) (Taken, error)
	// Body returns the body of a leased task; Take delivers only small ones.
	Body(ctx context.Context, l Lease) ([]byte, error)
	// Renew extends leases and says how each stands; one answer per lease.
	Renew(ctx context.Context, leases []Lease) ([]Standing, error)
	// Settle ends leases. busy is the number of busy answers since the last
	// call; they shrink the window. One verdict per outcome. Repeating a call
	// whose answer was lost is safe.
	Settle(ctx context.Context, outcomes []Outcome, busy int) (Settled, error)
	// Exchange is Settle followed by Take, in one step where the store can do that:
	// under load a dispatcher does nothing else.
	Exchange(ctx context.Context, owner string, outcomes []Outcome, busy, max int) (Settled, Taken, error)
	// Watch calls fn on every event of the farm until ctx ends; after each
	// (re)connection it is called with a Wake, since events may have been missed.
	Watch(ctx context.Context, fn func(Event)) error
	// Beat says that a dispatcher is alive.
	Beat(ctx context.Context, owner string) error
}

// Keeper is what looks after a farm.
type Keeper interface {
	// Sweep ends lapsed leases, delays, silent stages, expired jobs and
	// cancellations that were cut off, a bounded amount per call. More says
	// whether another call would find work.
	Sweep(ctx context.Context) (more bool, err error)
	// Callbacks claims up to limit ended jobs whose callback is owed, for
	// CallbackLease: a dispatcher that dies leaves them to another.
	Callbacks(ctx context.Context, limit int) ([]CallbackDue, error)
	// CallbackDone ends a claim: the callback is owed again after that time, or
	// never again where it is 0.
	CallbackDone(ctx context.Context, job string, again time.Duration) error
	// Gauges reads the farm's numbers of this instant.
	Gauges(ctx context.Context) (Gauges, error)
	// Audit counts every task and compares with the counters: expensive, for
	// tests and doctors.
	Audit(ctx context.Context) (Audit, error)
}

// Submission says where staged tasks go.
type Submission struct {
	Job    skeleton.Job // ID, Ordered, Callback and Open are used; Farm is implied
	Append bool         // add to the existing job of that ID
	Key    string       // idempotency key of the submission; "" = none
}

// Stage collects the tasks of a submission. It belongs to one goroutine.
type Stage interface {
	// Add stages tasks; it may keep their bodies until Commit. ErrFull,
	// ErrTooLarge: the limits of the farm; ErrGone.
	Add(ctx context.Context, tasks []skeleton.NewTask) error
	// Commit makes all tasks visible at once. A repeated Submission.Key commits
	// nothing and returns the first receipt with Repeated set. A Commit whose
	// answer was lost may be called again: it returns the same receipt.
	Commit(ctx context.Context) (Receipt, error)
	// Abort forgets the stage. After Commit it does nothing.
	Abort(ctx context.Context) error
}

// Receipt is the answer to a committed submission.
type Receipt struct {
	Job        skeleton.Job
	First      int  // index of the first task accepted
	Tasks      int  // tasks accepted
	Duplicates int  // tasks left out because the farm knows their key
	Repeated   bool // the submission itself was known
}

// Query says which results to read.
type Query struct {
	Cursor   int  // 0, or Page.Next of an earlier call
	Limit    int  // results (1,000)
	MaxBytes int  // stop after this many bytes of bodies, but return one (8 MB)
	Ordered  bool // by index; else as they were finished. What is redriven behind an acknowledged cursor comes only in the latter
}

// Page is a stretch of results.
type Page struct {
	Results []skeleton.Result
	Next    int          // cursor after these
	Job     skeleton.Job // as of this read
	End     bool         // the job has ended and nothing follows
}

// Taken is the answer to Take.
type Taken struct {
	Leases  []Lease
	Window  int           // the farm's window
	Live    int           // live leases, these included
	Waiting int           // tasks left waiting
	Next    time.Duration // until the next delay or lease ends; 0 = none
	Blocked string        // why nothing is handed out although work waits; "" = it is not so
}

// Lease is the right to run one attempt of a task.
type Lease struct {
	skeleton.Task
	Ref     string    // where the ledger keeps the task
	Locator string    // where it keeps a body that Take did not deliver; "" = it did
	Fence   int64     // of this lease: an outcome with an older one is refused
	Taken   time.Time // when it was handed out
}

// Standing is how a lease stands.
type Standing string

// Standings of a lease.
const (
	Held       Standing = "held"      // renewed
	WasLost    Standing = "lost"      // lapsed: the task is somebody else's now
	WasCancel  Standing = "cancelled" // the job was cancelled: stop, then settle
	HasTimeout Standing = "timeout"   // the attempt is over its time: stop, then settle
)

// Kind is how an attempt ended.
type Kind string

// Kinds of outcomes.
const (
	Success  Kind = "done"     // the worker's result
	Failed   Kind = "failed"   // the attempt failed: charged, retried after a delay
	TimedOut Kind = "timeout"  // as Failed, but may still be running: NoRetry makes it final
	Lost     Kind = "lost"     // the replica went away: the lost budget is charged
	Rejected Kind = "rejected" // the task is bad or cannot be served: dead at once
	Released Kind = "released" // not run: back to its old place, nothing charged
)

// Outcome ends a lease.
type Outcome struct {
	Lease   Lease
	Kind    Kind
	Status  int           // HTTP status of the answer; 0 = none
	Type    string        // media type of Body
	Body    []byte        // the result, or the last answer of a failed attempt
	Reason  string        // of anything but Success
	Delay   time.Duration // Failed, TimedOut, Lost: before it may run again
	Started time.Time     // hand-over to the worker, by the dispatcher's clock
	Service time.Duration // hand-over → answer
	Waited  time.Duration // lease taken → hand-over, by the dispatcher's clock
}

// Verdict is what Settle made of an outcome: the task's state now, or Refused.
type Verdict string

// Refused means that the lease was not the task's current one (or already
// settled): the outcome was counted and dropped.
const Refused Verdict = "refused"

// Settled is the answer to Settle.
type Settled struct {
	Verdicts []Verdict
	Window   int
	Live     int // live leases left
	Waiting  int
}

// EventKind says what happened.
type EventKind int

// Kinds of events.
const (
	Wake   EventKind = iota // work arrived where none may have waited, or the window grew
	Cancel                  // the job Event.Job was cancelled
)

// Event is something a dispatcher should look at.
type Event struct {
	Kind EventKind
	Job  string
}

// CallbackLease is how long a claimed callback is left alone.
const CallbackLease = time.Minute

// CallbackDue is a job whose client wants to be told that it ended.
type CallbackDue struct {
	Job skeleton.Job
	Try int // this one, from 1
}

// DeadLetter is a task that was given up.
type DeadLetter struct {
	Ref      string    `json:"ref"`
	Job      string    `json:"job"`
	Index    int       `json:"index"`
	Reason   string    `json:"reason"`
	Status   int       `json:"status,omitempty"`
	Attempts int       `json:"attempts"` // attempts charged
	Lost     int       `json:"lost,omitempty"`
	Answer   string    `json:"answer,omitempty"` // beginning of the last answer
	Died     time.Time `json:"died"`
}

// Gauges are a farm's numbers at one instant.
type Gauges struct {
	Counts
	Live       int           // live leases; those of cancelled tasks included
	OldestWait time.Duration // of the waiting tasks
	Overdue    int           // waiting tasks past their due, at most OverdueScan
	Dated      bool          // some waiting task has a due
	NextDue    time.Duration // until the first of them is due; negative when it was
	// Of the running tasks, at most RunningScan of them:
	RunningAge     time.Duration // mean time since they were leased; of those that somebody renews
	RunningOverdue int           // past their due
	Window         int
	Factor         float64 // the window's factor f
	QueueBytes     int
	KeptBytes      int
	Late           int // ended late so far; a dead one with a due is late
	Timed          int // ended so far with a due: those that could be late
	Refused        int // outcomes refused because of an old fence
	Lapsed         int // leases that lapsed
	Blocked        string
	Beats          map[string]time.Duration // age of each dispatcher's last heartbeat
}

// OverdueScan bounds how many runs of waiting tasks Gauges looks at.
const OverdueScan = 10_000

// Renewed is how long a lease has left at least while its dispatcher lives and
// renews it every RenewEvery. What has less may be a dead one's: its task does not
// run, whatever its age.
const Renewed = LeaseTime - RenewEvery - 2*time.Second

// RunningScan bounds how many leases Gauges looks at.
const RunningScan = 1_000

// Counts are tasks by state.
type Counts struct {
	Submitted, Waiting, Leased, Delayed, Done, Dead, Cancelled int
}

// Conserved reports whether the states add up.
func (c Counts) Conserved() bool {
	return c.Submitted == c.Waiting+c.Leased+c.Delayed+c.Done+c.Dead+c.Cancelled
}

// Audit compares the counters with a count of the tasks themselves.
type Audit struct {
	Counters Counts
	Counted  Counts
	Problems []string // anything that does not fit; empty = sound
}
