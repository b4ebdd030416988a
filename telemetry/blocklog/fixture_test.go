package blocklog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"farmhand/internal/redistest"
	"farmhand/telemetry/blocklog"
)

const (
	farmName = "w"
	logName  = "receipts"
)

// fixture is a log whose time stands still unless it is moved.
type fixture struct {
	testing.TB
	rdb  *redis.Client
	spec blocklog.Spec
	at   time.Time     // of the next entry
	lag  time.Duration // from Redis TIME to at, moved with it
	n    int           // entries so far
	*blocklog.Store
}

// each runs a test on the server that is built in and on a real one.
func each(t *testing.T, spec blocklog.Spec, test func(*fixture)) {
	t.Run("miniredis", func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		test(setup(t, rdb, spec))
	})
	t.Run("redis-server", func(t *testing.T) { test(setup(t, redistest.Client(t, redistest.Start(t)), spec)) })
}

func setup(t testing.TB, rdb *redis.Client, spec blocklog.Spec) *fixture {
	f := &fixture{TB: t, rdb: rdb, spec: spec, at: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)}
	now, err := rdb.Time(context.Background()).Result()
	f.must(err)
	f.lag = f.at.Sub(now) + time.Second
	f.Store = f.store(rdb)
	return f
}

// store is another program that writes to the same log.
func (f *fixture) store(rdb redis.UniversalClient) *blocklog.Store {
	return blocklog.New(rdb, blocklog.Options{Logs: map[string]blocklog.Spec{logName: f.spec}, Offset: func() time.Duration { return f.lag }})
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) pass(d time.Duration) { f.at, f.lag = f.at.Add(d), f.lag+d }

// text is what entry number i holds.
func text(i int) string { return fmt.Sprintf(`{"n":%d,"reason":"%d tasks wait","hold":null}`, i, i*i) }

// add appends n more entries, a duration apart.
func (f *fixture) add(n int, apart time.Duration) {
	f.Helper()
	for range n {
		f.must(f.Append(context.Background(), farmName, logName, f.at, []byte(text(f.n))))
		f.n++
		f.pass(apart)
	}
}

func (f *fixture) read(q blocklog.Query) []string {
	f.Helper()
	entries, err := f.Read(context.Background(), farmName, logName, q)
	f.must(err)
	return texts(entries)
}

func texts(entries []blocklog.Entry) (list []string) {
	for _, e := range entries {
		list = append(list, string(e.Data))
	}
	return list
}

// want are the entries from one number up to another, or down.
func want(from, to int) (list []string) {
	step := 1
	if to < from {
		step = -1
	}
	for i := from; i != to+step; i += step {
		list = append(list, text(i))
	}
	return list
}

func (f *fixture) same(what string, got, want []string) {
	f.Helper()
	if !slices.Equal(got, want) {
		f.Errorf("%s: %d entries, want %d\n%s\nwant\n%s", what, len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (f *fixture) stats() blocklog.Stats {
	f.Helper()
	s, err := f.Stats(context.Background(), farmName, logName)
	f.must(err)
	return s
}

// memory is what the log takes in Redis; 0 where the server cannot tell.
func (f *fixture) memory() (sum int64) {
	ctx := context.Background()
	if info, err := f.rdb.Info(ctx, "server").Result(); err != nil || !strings.Contains(info, "redis_version") {
		return 0
	}
	keys, err := f.rdb.Keys(ctx, "farmhand:{"+farmName+"}:*").Result()
	f.must(err)
	for _, k := range keys {
		n, err := f.rdb.MemoryUsage(ctx, k, 0).Result()
		f.must(err)
		sum += n
	}
	return sum
}
