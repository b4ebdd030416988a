package dispatch

import (
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Observer watches a dispatcher, for metrics and signals. Its methods are called
// by many goroutines, must not block and must not keep the slices.
type Observer interface {
	// Taken is called after each successful Take that brought tasks.
	Taken(farm string, tasks int)
	// Answered is called for each call that came to an end by itself, those
	// included that met a busy worker.
	Answered(farm string, m skeleton.Meaning, service time.Duration)
	// Settled is called after each successful Settle: what ended, what the
	// ledger made of it, and how many busy answers were reported with it. A
	// ledger.TimedOut may still be running: the overlap is counted from here.
	Settled(farm string, outcomes []ledger.Outcome, verdicts []ledger.Verdict, busy int)
}

type blind struct{}

func (blind) Taken(string, int)                                       {}
func (blind) Answered(string, skeleton.Meaning, time.Duration)        {}
func (blind) Settled(string, []ledger.Outcome, []ledger.Verdict, int) {}
