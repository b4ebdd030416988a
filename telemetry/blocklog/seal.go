package blocklog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// ripe are open entries that should become a block: so many from number seq on.
type ripe struct {
	farm, name string
	seq        string
	count      int64
}

func ripeOf(a *Addition, seq string, count int64) ripe { return ripe{a.Farm, a.Name, seq, count} }

// choose picks what is packed in one call: four logs, and one more for every 64
// entries, those first that have most to pack. What has to wait meanwhile makes
// a larger block, so this keeps up however many logs there are.
func choose(all map[string]ripe, entries int) []ripe {
	chosen := make([]ripe, 0, len(all))
	for _, r := range all {
		chosen = append(chosen, r)
	}
	slices.SortFunc(chosen, func(a, b ripe) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.farm, b.farm), cmp.Compare(a.name, b.name))
	})
	return chosen[:min(len(chosen), 4+entries/64)]
}

// seal packs open entries into blocks, in two round trips: read, swap. What
// another writer has packed meanwhile is left alone.
func (s *Store) seal(ctx context.Context, logs []ripe) error {
	if len(logs) == 0 {
		return nil
	}
	pipe := s.rdb.Pipeline()
	lists := make([]*redis.StringSliceCmd, len(logs))
	for i, r := range logs {
		lists[i] = pipe.LRange(ctx, keyOf(r.farm, r.name), 0, r.count-1)
	}
	_, _ = pipe.Exec(ctx) // each command keeps its own error
	var errs []error
	var calls []call
	for i, r := range logs {
		open, err := lists[i].Result()
		if err != nil {
			errs = append(errs, fmt.Errorf("read %s of %s: %w", r.name, r.farm, err))
			continue
		}
		if len(open) > 0 {
			calls = append(calls, call{keyOf(r.farm, r.name), s.spec(r.name).sealArgs(r.seq, open)})
		}
	}
	for i, cmd := range s.run(ctx, scriptSeal, calls) {
		if err := cmd.Err(); err != nil {
			errs = append(errs, fmt.Errorf("swap %s: %w", calls[i].key, err))
		}
	}
	return errors.Join(errs...)
}

// sealArgs are those of the script seal: as many of the open entries as fit into
// a block, at least one.
func (s Spec) sealArgs(seq string, open []string) []any {
	n, bytes := 0, 0
	for n < len(open) && (n == 0 || bytes+len(open[n]) <= s.Bytes) {
		bytes += len(open[n])
		n++
	}
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = parse(open[i])
	}
	return []any{seq, n, stamp(open[0]), stamp(open[n-1]), bytes, pack(entries, s.Codec),
		s.Retention.Microseconds(), s.MaxBytes, s.life()}
}

// stampLen is the length of an open entry's time.
const stampLen = 16

func stamp(open string) string { return open[:min(stampLen, len(open))] }

// parse reads an open entry. What did not come from the script append, and has
// no time, is of 1970.
func parse(open string) Entry {
	at := stamp(open)
	us, _ := strconv.ParseInt(at, 10, 64) // see above
	return Entry{time.UnixMicro(us).UTC(), []byte(open[len(at):])}
}
