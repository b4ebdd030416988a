package blocklog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"farmhand/telemetry/blocklog"
)

func TestEntriesAreReadInAnyDirection(t *testing.T) {
	each(t, blocklog.Spec{Entries: 10, Keep: 3}, func(f *fixture) {
		f.same("nothing yet", f.read(blocklog.Query{}), nil)
		start := f.at
		f.add(58, time.Second)
		if s := f.stats(); s.Blocks != 5 || s.Open != 8 {
			f.Errorf("%+v", s)
		}
		sec := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
		for from := -1; from <= 59; from += 4 {
			for to := from + 1; to <= 60; to += 7 {
				lo, hi := max(0, from), min(57, to-1)
				q := blocklog.Query{From: sec(from), To: sec(to)}
				all := []string(nil)
				if lo <= hi {
					all = want(lo, hi)
				}
				f.same("oldest first", f.read(q), all)
				q.Limit = 9
				f.same("oldest first, few", f.read(q), all[:min(9, len(all))])
				q.Newest = true
				slices.Reverse(all)
				f.same("newest first, few", f.read(q), all[:min(9, len(all))])
				q.Limit = 0
				f.same("newest first", f.read(q), all)
			}
		}
		f.same("open ends", f.read(blocklog.Query{}), want(0, 57))
		f.same("a part of a microsecond", f.read(blocklog.Query{From: sec(56).Add(1), To: sec(57).Add(1)}), want(57, 57))
	})
}

func TestTail(t *testing.T) {
	each(t, blocklog.Spec{Entries: 10, Keep: 3}, func(f *fixture) {
		f.add(2, time.Second)
		for i := range 60 {
			f.add(1, time.Second)
			for _, n := range []int{0, 1, 3, 25, 100} {
				got, err := f.Tail(context.Background(), farmName, logName, n)
				f.must(err)
				last := i + 2
				f.same("tail", texts(got), want(last, max(0, last-n+1))[:min(n, last+1)])
			}
		}
	})
}

// A slow log makes blocks by time; the newest entries stay open.
func TestBlocksAreMadeByCountTimeAndSize(t *testing.T) {
	each(t, blocklog.Spec{Entries: 100, Span: 5 * time.Minute, Keep: 2}, func(f *fixture) {
		f.add(8, time.Minute) // the first six lie five minutes apart
		if s := f.stats(); s.Blocks != 1 || s.Open != 2 {
			f.Errorf("%+v", s)
		}
	})
	each(t, blocklog.Spec{Entries: 100, Bytes: 10 * len(text(0)), Keep: 2}, func(f *fixture) {
		f.add(40, time.Millisecond)
		if s := f.stats(); s.Blocks < 4 || s.Open > 12 {
			f.Errorf("%+v", s)
		}
		f.same("all", f.read(blocklog.Query{}), want(0, 39))
	})
}

func TestOldBlocksAreDropped(t *testing.T) {
	each(t, blocklog.Spec{Entries: 10, Keep: 1, Retention: time.Minute}, func(f *fixture) {
		f.add(200, time.Second)
		got := f.read(blocklog.Query{})
		if len(got) < 60 || len(got) > 80 {
			f.Errorf("%d entries are left", len(got))
		}
		f.same("the newest", got, want(200-len(got), 199))
		if s := f.stats(); s.Aged != int64(200-len(got)) || s.Cut != 0 {
			f.Errorf("%+v", s)
		}
	})
}

func TestALogHasABound(t *testing.T) {
	const bound = 20_000
	each(t, blocklog.Spec{Entries: 10, Keep: 5, MaxBytes: bound}, func(f *fixture) {
		f.add(1000, time.Second)
		got := f.read(blocklog.Query{})
		f.same("the newest", got, want(1000-len(got), 999))
		s := f.stats()
		if s.Cut != int64(1000-len(got)) || s.Cut == 0 || s.Aged != 0 || s.Bytes > bound || s.Bytes < bound/2 {
			f.Errorf("%+v, %d entries are left", s, len(got))
		}
		if n := f.memory(); n > bound*11/10 {
			f.Errorf("%d bytes of memory, the bound is %d", n, bound)
		}
	})
	// Entries that are larger than the bound push out all but themselves.
	each(t, blocklog.Spec{Entries: 100, Keep: 50, MaxBytes: bound}, func(f *fixture) {
		for i := range 10 {
			f.must(f.Append(context.Background(), farmName, logName, f.at, bytes.Repeat([]byte{'a' + byte(i)}, bound)))
			f.pass(time.Second)
		}
		if got := f.read(blocklog.Query{}); len(got) != 1 || got[0][0] != 'j' || f.stats().Cut != 9 {
			f.Errorf("%d entries, %+v", len(got), f.stats())
		}
	})
}

// Times never go down, and none is in the future: whatever clock a writer has.
func TestTimesAreInOrder(t *testing.T) {
	each(t, blocklog.Spec{Entries: 3, Keep: 1}, func(f *fixture) {
		ctx := context.Background()
		for i, at := range []time.Duration{0, time.Hour, -time.Hour, 0, 2 * time.Hour, -time.Minute} {
			f.must(f.Append(ctx, farmName, logName, f.at.Add(at), []byte(text(i))))
		}
		entries, err := f.Read(ctx, farmName, logName, blocklog.Query{})
		f.must(err)
		f.same("order of writing", texts(entries), want(0, 5))
		for i := 1; i < len(entries); i++ {
			if e := entries[i]; e.At.Before(entries[i-1].At) || e.At.After(f.at.Add(time.Minute)) {
				f.Errorf("entry %d is of %v, now is %v", i, e.At, f.at)
			}
		}
	})
}

func TestALogThatIsForgottenBeginsAnew(t *testing.T) {
	each(t, blocklog.Spec{Entries: 10, Keep: 3}, func(f *fixture) {
		f.add(30, time.Second)
		for _, key := range f.rdb.Keys(context.Background(), "*").Val() {
			if ttl := f.rdb.PTTL(context.Background(), key).Val(); ttl < 47*time.Hour || ttl > 48*time.Hour {
				f.Errorf("%s lives for %v", key, ttl)
			}
		}
		for _, key := range f.rdb.Keys(context.Background(), "*").Val() {
			f.must(f.rdb.PExpire(context.Background(), key, time.Hour).Err())
		}
		f.pass(13 * time.Hour)
		f.add(1, time.Second)
		for _, key := range f.rdb.Keys(context.Background(), "*").Val() {
			if ttl := f.rdb.PTTL(context.Background(), key).Val(); ttl < 47*time.Hour {
				f.Errorf("%s was written to and lives for %v", key, ttl)
			}
		}
		f.must(f.Forget(context.Background(), farmName, logName, "none"))
		f.same("forgotten", f.read(blocklog.Query{}), nil)
		if keys := f.rdb.Keys(context.Background(), "*").Val(); len(keys) > 0 {
			f.Errorf("left: %v", keys)
		}
		f.n = 0
		f.add(15, time.Second)
		f.same("anew", f.read(blocklog.Query{}), want(0, 14))
	})
}

func TestManyLogsAtOnce(t *testing.T) {
	each(t, blocklog.Spec{Entries: 5, Keep: 1}, func(f *fixture) {
		ctx := context.Background()
		for i := range 30 {
			var all []blocklog.Addition
			for farm := range 20 {
				all = append(all, blocklog.Addition{Farm: fmt.Sprint("f", farm), Name: logName, Entry: blocklog.Entry{At: f.at, Data: []byte(text(2 * i))}})
				all = append(all, blocklog.Addition{Farm: fmt.Sprint("f", farm), Name: logName, Entry: blocklog.Entry{At: f.at, Data: []byte(text(2*i + 1))}})
			}
			bad := []blocklog.Addition{{Farm: "a{b}", Name: logName}, {Farm: "a", Name: "x:n"}, {Farm: "a", Name: "x", Entry: blocklog.Entry{Data: make([]byte, blocklog.MostEntry+1)}}}
			f.must(f.AppendAll(ctx, all))
			if err := f.AppendAll(ctx, append(bad, all[0])); !errors.Is(err, blocklog.ErrInvalid) || strings.Count(err.Error(), "\n") != 2 {
				f.Errorf("want three refusals: %v", err)
			}
			f.must(f.AppendAll(ctx, nil))
			f.pass(time.Second)
		}
		for farm := 1; farm < 20; farm++ {
			entries, err := f.Read(ctx, fmt.Sprint("f", farm), logName, blocklog.Query{})
			f.must(err)
			f.same("farm", texts(entries), want(0, 59))
		}
	})
}

func TestADamagedBlockIsToldAndPassedOver(t *testing.T) {
	each(t, blocklog.Spec{Entries: 10, Keep: 5}, func(f *fixture) {
		f.add(35, time.Second)
		key := "farmhand:{" + farmName + "}:log:" + logName + ":b"
		f.must(f.rdb.HSet(context.Background(), key, "0000000000000010", "spoilt").Err())
		entries, err := f.Read(context.Background(), farmName, logName, blocklog.Query{})
		if !errors.Is(err, blocklog.ErrDamaged) || !strings.Contains(err.Error(), "block 0000000000000010") {
			f.Error(err)
		}
		f.same("the others", texts(entries), append(want(0, 9), want(20, 34)...))
		f.must(f.rdb.Set(context.Background(), "farmhand:{"+farmName+"}:log:other", "no list", 0).Err())
		if _, err := f.Read(context.Background(), farmName, "other", blocklog.Query{}); err == nil {
			f.Error("read from something else")
		}
	})
}
