package skeleton

import (
	"fmt"
	"time"
)

// Failure says how a call ended without a full answer.
type Failure int

// Failures of a call.
const (
	NoFailure   Failure = iota // there was a full answer
	Refused                    // nobody listened
	Reset                      // reset or end of file before a full answer
	Overtime                   // the dispatcher's own client timeout
	Oversize                   // the answer is larger than a result may be
	Unreachable                // any other failure to get the request out
)

// Call is what a dispatcher saw of one attempt: the answer of a worker, seen
// through a gateway, or the lack of one.
type Call struct {
	Failure   Failure
	Status    int
	Empty     bool          // the body of the answer is empty
	Platform  bool          // the answer carries X-OpenFaaS-Internal
	CallID    bool          // the answer carries X-Call-Id
	Elapsed   time.Duration // since the request was sent
	Timeout   time.Duration // of the attempt
	RetryWait time.Duration // Retry-After of the answer; 0 = none
	Type      string        // media type of Body
	Body      []byte
	Limit     int // Oversize: the limit in bytes
}

// Meaning is what a call comes to.
type Meaning string

// Meanings of a call (the answer table of docs/workers.md).
const (
	IsResult   Meaning = "result"
	IsBusy     Meaning = "busy"     // offer again soon; no attempt
	IsLost     Meaning = "lost"     // the replica went away; own budget
	IsTimedOut Meaning = "timeout"  // failed, and may still be running
	IsFailed   Meaning = "failed"   // the attempt failed
	IsRejected Meaning = "rejected" // the task is bad
)

// maxRetryWait bounds what a worker's Retry-After can ask for.
const maxRetryWait = 5 * time.Minute

// timeoutSlack says from which share of the attempt's timeout on a failure of
// the platform is taken for an upstream timeout. By the contract the gateway's
// limit is no shorter than the attempt's and runs from a moment after ours, so
// its empty 502 cannot come earlier but for two clocks that drift; a replica that
// is lost in the last hundredth is charged as a timeout, which errs on the safe
// side: it backs off, since the run may still be going.
const timeoutSlack = 0.99

// Classify reads a call by the answer table. The reason is empty for a result;
// wait is the worker's Retry-After where it counts, bounded.
func Classify(c Call) (m Meaning, reason string, wait time.Duration) {
	overtime := c.Timeout > 0 && float64(c.Elapsed) >= timeoutSlack*float64(c.Timeout)
	switch c.Failure {
	case Refused:
		return IsBusy, "the gateway refuses connections", 0
	case Unreachable:
		return IsBusy, "the gateway cannot be reached", 0
	case Reset:
		return lost(overtime, c.Elapsed, "the connection broke before a full answer")
	case Overtime:
		return IsTimedOut, fmt.Sprintf("no answer within %s", c.Timeout), 0
	case Oversize:
		return IsRejected, fmt.Sprintf("the result is larger than %d bytes", c.Limit), 0
	}
	platform := c.Platform || (c.Status == 502 && c.Empty)
	switch s := c.Status; {
	case s >= 200 && s < 300:
		return IsResult, "", 0
	case (s == 429 || s == 503) && c.Platform:
		return IsBusy, "no free worker", 0
	case s == 404 && !c.CallID:
		return IsBusy, "the gateway does not know the worker", 0
	case s == 504 || s == 408:
		return IsTimedOut, fmt.Sprintf("the attempt timed out (%d)", s), 0
	case (s == 500 || s == 502) && platform:
		return lost(overtime, c.Elapsed, fmt.Sprintf("the replica was lost (%d)", s))
	case s == 425 || s == 429 || s == 503:
		return IsFailed, fmt.Sprintf("the worker asks to try again (%d)", s), min(c.RetryWait, maxRetryWait)
	case s >= 500:
		return IsFailed, fmt.Sprintf("the worker failed (%d)", s), 0
	case s >= 300 && s < 400:
		return IsRejected, fmt.Sprintf("the worker redirects (%d)", s), 0
	default:
		return IsRejected, fmt.Sprintf("the worker refuses the task (%d)", s), 0
	}
}

// lost is a failure of the platform: before the attempt's timeout the replica was
// lost, after it the call outlasted somebody's limit. A limit of the gateway that
// is shorter than farmhand.timeout looks like a lost replica: hence the hint.
func lost(overtime bool, elapsed time.Duration, what string) (Meaning, string, time.Duration) {
	after := elapsed.Round(time.Millisecond)
	if overtime {
		return IsTimedOut, fmt.Sprintf("%s after %s: the attempt outlasted the gateway's upstream_timeout", what, after), 0
	}
	return IsLost, fmt.Sprintf("%s after %s (always the same time? then a timeout on the way is shorter than farmhand.timeout)", what, after), 0
}
