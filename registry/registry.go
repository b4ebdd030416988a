// Package registry keeps learned policies, and says which of them acts for a farm.
//
// A version is a policy file; it is named by the SHA-256 of its bytes and so never
// changes. A farm has three aliases, which move: the champion acts, the challenger
// was trained last, and previous is what a rollback brings back. Moves are atomic,
// and a history says who made them and why.
//
// A version becomes champion when a gate's verdict for that farm says so, or when
// somebody insists and gives a reason. Files are checked on their way in (Validate)
// and on their way out (Verify); what was damaged in between is an error, and no
// champion is replaced by it.
package registry

import (
	"context"
	"errors"
	"time"
)

// The errors. What is returned wraps one of them where it fits, and says more.
var (
	ErrUnknown = errors.New("registry: no such version")
	ErrInvalid = errors.New("registry: no policy that could run here") // refused on its way in
	ErrDamaged = errors.New("registry: damaged")                       // what is kept is not what was put there
	ErrRefused = errors.New("registry: not promoted")                  // no verdict speaks for it
	ErrFull    = errors.New("registry: full")
	ErrNothing = errors.New("registry: nothing to roll back")
)

// Source is what a controller needs.
type Source interface {
	// Revision changes whenever an alias of any farm moves. It may go back when the
	// store was restored: compare with !=. One cheap call tells for all farms that
	// nothing was promoted.
	Revision(ctx context.Context) (int64, error)
	// Champion is the version that acts for a farm; "" where it has none. Its term
	// changes with each promotion and rollback, also where the same version was promoted
	// again: what was held against it counts no more.
	Champion(ctx context.Context, farm string) (version string, term int64, err error)
	// Policy returns the file of a version, whose bytes match its name. The error
	// wraps ErrUnknown or ErrDamaged; then what was loaded before is still good.
	Policy(ctx context.Context, version string) ([]byte, error)
	// Resolve finds the version that a name means: a version, or the beginning of
	// one, four digits at least. The error wraps ErrUnknown.
	Resolve(ctx context.Context, name string) (version string, err error)
}

// Registry keeps policies. It is safe for concurrent use.
type Registry interface {
	Source

	// Import keeps a policy file that Validate lets through, and returns its version.
	// What is known already is kept as it is; damaged bytes are mended. For a new one
	// the oldest versions go that no alias names; ErrFull says that there are none.
	Import(ctx context.Context, file []byte, o Origin) (version string, err error)
	// Challenge makes a version the challenger of a farm.
	Challenge(ctx context.Context, farm, version string, r Reason) error
	// Judge keeps what a gate found about a version, for a farm. A later verdict
	// replaces it.
	Judge(ctx context.Context, farm, version string, v Verdict) error
	// Promote makes a version the champion of a farm, and the champion there was the
	// previous one. The error wraps ErrRefused unless the farm's verdict on the version
	// is Promoted, its champion still the one that the verdict is about, and the version
	// not what was rolled back since, or r is forced and has a text. The champion itself
	// begins a new term by force; without, nothing is changed.
	Promote(ctx context.Context, farm, version string, r Reason) error
	// Rollback makes the previous version the champion and returns it; "" where the
	// champion was the first one, and the farm has none now. There is no previous one
	// after that, so that a second rollback in a hurry does not bring back what the
	// first one took away. ErrNothing says that there is no champion, or that it came
	// by a rollback.
	Rollback(ctx context.Context, farm string, r Reason) (version string, err error)
	// Forget the aliases and the history of a farm that is no more, so that its versions
	// make room.
	Forget(ctx context.Context, farm string) error

	// Aliases of a farm. One that is damaged is left out, and the error says which; a
	// forced promotion mends them.
	Aliases(ctx context.Context, farm string) (Aliases, error)
	// List all versions, the newest first.
	List(ctx context.Context) ([]Version, error)
	// History of a farm's aliases, the newest first; HistoryLength at most. A change
	// that is damaged is left out, and the error says so.
	History(ctx context.Context, farm string) ([]Change, error)
}

// Bounds of what is kept.
const (
	MaxFile       = 8 << 20  // bytes of a version
	MaxBytes      = 64 << 20 // of all of them
	MaxVersions   = 200
	HistoryLength = 100 // changes of a farm
	MaxText       = 500 // bytes of a reason, and of who gives it
)

// Origin says where a version comes from.
type Origin struct {
	By   string `json:"by,omitempty"`   // who imported it
	Note string `json:"note,omitempty"` // for what, or from where
}

// Reason says who moves an alias, and why.
type Reason struct {
	By     string `json:"by,omitempty"`
	Text   string `json:"reason,omitempty"`
	Forced bool   `json:"forced,omitempty"` // whatever a gate says
}

// Aliases are the versions that have a part in a farm; "" = none.
type Aliases struct {
	Champion   string `json:"champion,omitempty"`
	Challenger string `json:"challenger,omitempty"`
	Previous   string `json:"previous,omitempty"`
}

// Version is what is known of a policy beside its bytes.
type Version struct {
	Version  string             `json:"version"`
	At       time.Time          `json:"imported_at"`
	Origin   Origin             `json:"origin"`
	Bytes    int                `json:"bytes"`
	Summary  Summary            `json:"summary"`
	Uses     []Use              `json:"uses,omitempty"`     // by farms
	Verdicts map[string]Verdict `json:"verdicts,omitempty"` // by farm
}

// Use is an alias that names a version.
type Use struct {
	Farm  string `json:"farm"`
	Alias string `json:"alias"` // champion, challenger or previous
}

// Kind of a Change.
type Kind string

// The kinds.
const (
	Promotion Kind = "promotion"
	Rollback  Kind = "rollback"
	Challenge Kind = "challenge"
)

// Change is a move of a farm's alias: of the challenger in a Challenge, else of the
// champion.
type Change struct {
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	From string    `json:"from,omitempty"` // version; "" = none
	To   string    `json:"to,omitempty"`
	Reason
}
