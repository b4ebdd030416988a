// Package blocklog keeps what a farm does in Redis, in the order in which it is
// told: receipts of decisions, rows of telemetry. A log belongs to one farm and
// has one name.
//
// An entry is first appended to a plain list. Once enough have come together the
// oldest become a compressed block: they are read, packed here, and swapped for
// the block by one script, which does so only if they are still there. A crash
// before the script changes nothing, two programs at once make one block, and a
// reader sees the entries either here or there. The newest entries always stay
// in the list, so that the end of a log is one cheap read.
//
// What is older than a log's retention is dropped when the log is written to, and
// so is the oldest part of a log that is larger than its bound; both are counted.
//
// All keys of a log have its farm's hash tag, and no script touches two logs.
// Time is Redis TIME: an entry is never later than now, nor earlier than the one
// before it, whatever the clock of its writer says. A log that nobody writes to
// is gone a day after its retention.
package blocklog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/telemetry/internal/frame"
)

// MostEntry is how long an entry is at most, in bytes.
const MostEntry = 1 << 20

var (
	// ErrDamaged says that a block is not what was kept. What else was asked for
	// is returned nevertheless.
	ErrDamaged = frame.ErrDamaged
	// ErrNotSealed says that all entries are kept, but some could not be packed
	// into blocks now. The next call tries again.
	ErrNotSealed = errors.New("kept, but not packed into blocks")
	// ErrInvalid says that an entry has no place: its farm or name is no name, or
	// it is longer than MostEntry.
	ErrInvalid = errors.New("not valid")
)

// Entry is something that was appended.
type Entry struct {
	At   time.Time // to the microsecond
	Data []byte
}

// Addition is an entry on its way to a log.
type Addition struct {
	Farm, Name string
	Entry
}

// Codec packs the entries of a log in a way of its own. Unpack gives exactly the
// entries that Pack was given. Where Pack fails the entries are packed in the
// common way. Unpack must bound the memory that it takes.
type Codec interface {
	Pack([]Entry) ([]byte, error)
	Unpack([]byte) ([]Entry, error)
}

// Spec says how a log is kept. Each zero field is its default.
type Spec struct {
	Entries   int           // in a block, at most (150)
	Span      time.Duration // of a block, after which it is made (5 min)
	Bytes     int           // of the entries in a block, about, before packing (1 MB; 4 MB at most)
	Keep      int           // newest entries that stay as they are (20)
	Retention time.Duration // how old a block becomes (24 h)
	MaxBytes  int           // of the log in Redis's memory, with its keys (16 MB)
	Codec     Codec         // of blocks; nil = the common way, which suits JSON
}

const (
	mostPacked = 4 << 20
	// goodbye is how long after its retention a log that nobody writes to is gone.
	goodbye = 24 * time.Hour
)

func (s Spec) filled() Spec {
	or := func(x, y int) int {
		if x < 1 {
			return y
		}
		return x
	}
	s.Entries = min(or(s.Entries, 150), mostEntries)
	s.Bytes = min(or(s.Bytes, 1<<20), mostPacked)
	s.Keep = or(s.Keep, 20)
	s.MaxBytes = or(s.MaxBytes, 16<<20)
	if s.Span <= 0 {
		s.Span = 5 * time.Minute
	}
	if s.Retention <= 0 {
		s.Retention = 24 * time.Hour
	}
	return s
}

// Options of a store. The zero value is fit for production.
type Options struct {
	Logs map[string]Spec // by name; what is not named has the zero Spec
	// Offset is added to Redis TIME; tests move it. Nil means 0.
	Offset func() time.Duration
}

// Store holds logs in Redis. It is safe for concurrent use.
type Store struct {
	rdb   redis.UniversalClient
	specs map[string]Spec
	shift func() time.Duration
}

// New returns the store in rdb, which it does not own. It asks nothing of the
// server, which may be away.
func New(rdb redis.UniversalClient, o Options) *Store {
	s := &Store{rdb: rdb, specs: map[string]Spec{}, shift: o.Offset}
	for name, spec := range o.Logs {
		s.specs[name] = spec.filled()
	}
	if s.shift == nil {
		s.shift = func() time.Duration { return 0 }
	}
	return s
}

func (s *Store) spec(name string) Spec {
	if spec, ok := s.specs[name]; ok {
		return spec
	}
	return Spec{}.filled()
}

// Stats are the size of a log, and what was dropped since it began.
type Stats struct {
	Open   int   // entries in the list
	Blocks int   // compressed blocks
	Bytes  int   // of both in Redis, estimated as for the bound
	Aged   int64 // entries dropped because of their age
	Cut    int64 // entries dropped because of the log's size
}

// Stats returns the size of a log; that of a log that is not there is zero.
func (s *Store) Stats(ctx context.Context, farm, name string) (Stats, error) {
	id := logID{farm, name}
	key := id.key()
	pipe := s.rdb.TxPipeline()
	open, blocks := pipe.LLen(ctx, key), pipe.HLen(ctx, key+":b")
	counts := pipe.HMGet(ctx, key+":n", "open", "blocks", "aged", "cut")
	if _, err := pipe.Exec(ctx); err != nil {
		return Stats{}, fmt.Errorf("blocklog: size of %s: %w", id, err)
	}
	var c [4]int64
	for i, v := range counts.Val() {
		if text, ok := v.(string); ok {
			_, _ = fmt.Sscan(text, &c[i]) // what only this package writes
		}
	}
	return Stats{Open: int(open.Val()), Blocks: int(blocks.Val()), Bytes: int(c[0]*9/8 + c[1]), Aged: c[2], Cut: c[3]}, nil
}

// Forget removes logs of a farm. Logs that are not there are no error.
func (s *Store) Forget(ctx context.Context, farm string, names ...string) error {
	for _, name := range names {
		id := logID{farm, name}
		key := id.key()
		if err := s.rdb.Unlink(ctx, key, key+":i", key+":b", key+":n").Err(); err != nil {
			return fmt.Errorf("blocklog: forget %s: %w", id, err)
		}
	}
	return nil
}

// logID is which log.
type logID struct{ farm, name string }

func (id logID) key() string { return "farmhand:{" + id.farm + "}:log:" + id.name }

func (id logID) String() string { return id.name + " of " + id.farm }

// check says what is wrong with an addition.
func (a *Addition) check() error {
	switch {
	case a.Farm == "" || strings.ContainsAny(a.Farm, "{}"):
		return fmt.Errorf("no farm is called %q: %w", a.Farm, ErrInvalid)
	case a.Name == "" || strings.ContainsAny(a.Name, ":{}"):
		return fmt.Errorf("no log is called %q: %w", a.Name, ErrInvalid)
	case len(a.Data) > MostEntry:
		return fmt.Errorf("an entry of %d bytes, %d at most: %w", len(a.Data), MostEntry, ErrInvalid)
	}
	return nil
}
