package controller

import (
	"context"
	"time"

	"farmhand/skeleton/signal"
)

// Claim asks for the lease of a farm; the farm "" is the roster.
type Claim struct {
	Farm  string
	Fence int64 // of the lease that this controller believes to hold; 0 = none
}

// Held is the answer to a Claim.
type Held struct {
	Now       time.Time // by the store's clock
	Fence     int64     // of the lease, which is ours; 0 = another controller holds it
	Owner     string    // who holds it
	State     []byte    // what its last holder saved; nil where the claimed fence still holds
	Overrides []byte    // nil = none
	Err       error     // of this farm alone; it is nobody's then
}

// Save is what a tick leaves behind.
type Save struct {
	Farm  string
	Fence int64
	State []byte
}

// Keeper keeps what has to survive a controller. Batches are one round trip, so
// that many farms cost little more than one.
type Keeper interface {
	// Claim takes or renews leases of that length. A lease of another owner that
	// is not over is left to it.
	Claim(ctx context.Context, owner string, length time.Duration, claims []Claim) ([]Held, error)
	// Release ends the leases that owner still holds.
	Release(ctx context.Context, owner string, claims []Claim) error
	// Save keeps states. It reports for each whether the fence still held; where
	// it did not, nothing was kept.
	Save(ctx context.Context, saves []Save) ([]bool, error)
	// Override replaces a farm's overrides, if they are still what old says. It
	// reports whether they were.
	Override(ctx context.Context, farm string, old, new []byte) (bool, error)
	// Kept returns what was kept of a farm, whoever holds its lease.
	Kept(ctx context.Context, farm string) (Held, error)
}

// Signals are what dispatchers measured.
type Signals interface {
	// Read returns the seconds of each farm after the given one of Unix time, 0
	// for all that is kept. A farm that cannot be read is left out; the error
	// tells why.
	Read(ctx context.Context, since map[string]int64) (map[string]signal.Reading, error)
}

// Entry is what a farm's log keeps of one decision.
type Entry struct {
	Farm    string
	At      time.Time
	Data    []byte      // the receipt as JSON
	Receipt *Receipt    // the same, for what else is made of it; to be read only
	Service signal.Hist // service times measured since the last entry
}

// Log keeps the past of farms.
type Log interface {
	// Append adds entries, of many farms at once.
	Append(ctx context.Context, entries []Entry) error
	// Tail returns the last n entries of a farm, newest first.
	Tail(ctx context.Context, farm string, n int) ([][]byte, error)
}
