package blocklog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// ripe are open entries that should become a block: so many from number seq on.
type ripe struct {
	logID
	seq   string
	count int64
}

// ripeOf reads what a script that writes returns.
func ripeOf(id logID, cmd *redis.Cmd) (ripe, error) {
	r, err := cmd.Slice()
	if err != nil {
		return ripe{}, err
	}
	return ripe{id, r[0].(string), r[1].(int64)}, nil
}

// seal packs open entries into blocks. Of all logs together it makes four blocks
// at most, and one more for every 128 entries that were appended; first of the
// logs that have most to pack. What has to wait meanwhile makes a larger block,
// so this keeps up however many logs there are.
func (s *Store) seal(ctx context.Context, due []ripe, appended int, failed *failures) {
	for room := 4 + appended/128; room > 0 && len(due) > 0; {
		slices.SortStableFunc(due, func(a, b ripe) int { return cmp.Compare(b.count, a.count) })
		due = due[:min(len(due), room)]
		room -= len(due)
		due = s.sealOnce(ctx, due, failed)
	}
}

// sealOnce makes one block of each log, in two round trips: read, swap. What
// another writer has packed meanwhile is left alone. It returns what is ripe now.
func (s *Store) sealOnce(ctx context.Context, due []ripe, failed *failures) (more []ripe) {
	pipe := s.rdb.Pipeline()
	lists := make([]*redis.StringSliceCmd, len(due))
	for i, r := range due {
		lists[i] = pipe.LRange(ctx, r.key(), 0, r.count-1)
	}
	_, _ = pipe.Exec(ctx) // each command keeps its own error
	var logs []logID
	var calls []call
	for i, r := range due {
		open, err := lists[i].Result()
		if err != nil {
			failed.add("read", r.logID, fmt.Errorf("%w: %w", ErrNotSealed, err))
		} else if len(open) > 0 {
			logs = append(logs, r.logID)
			calls = append(calls, call{r.key(), s.spec(r.name).sealArgs(r.seq, open)})
		}
	}
	for i, cmd := range s.run(ctx, scriptSeal, calls) {
		r, err := ripeOf(logs[i], cmd)
		if err != nil {
			failed.add("swap", logs[i], fmt.Errorf("%w: %w", ErrNotSealed, err))
		} else if r.count > 0 {
			more = append(more, r)
		}
	}
	return more
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
	return append(s.args(), seq, n, stamp(open[0]), stamp(open[n-1]), bytes, pack(entries, s.Codec))
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
