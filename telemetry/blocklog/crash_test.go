package blocklog_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"farmhand/internal/redistest"
	"farmhand/telemetry/blocklog"
)

var errCrash = errors.New("crashed")

// crash breaks a client at its nth round trip and ever after: before the trip, or
// after it, when Redis has done all but the answer is not heard.
type crash struct {
	at    int
	after bool
	trips int
}

func (c *crash) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *crash) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := c.trip(func() error { return next(ctx, cmd) }); err != nil {
			cmd.SetErr(err)
			return err
		}
		return nil
	}
}

func (c *crash) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := c.trip(func() error { return next(ctx, cmds) })
		if errors.Is(err, errCrash) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

func (c *crash) trip(next func() error) error {
	c.trips++
	if c.trips > c.at || c.trips == c.at && !c.after {
		return errCrash
	}
	err := next()
	if c.trips == c.at {
		return errCrash
	}
	return err
}

// Wherever a writer dies, the next one finds every entry that was acknowledged,
// once; and an entry whose answer was lost, once, if it is appended again.
func TestACrashBetweenStepsLosesNothing(t *testing.T) {
	each(t, blocklog.Spec{Entries: 4, Keep: 2}, func(f *fixture) {
		ctx := context.Background()
		for at := 1; at <= 30; at++ {
			for _, after := range []bool{false, true} {
				f.must(f.Forget(ctx, farmName, logName))
				f.n = 0
				rdb := redis.NewClient(f.rdb.Options())
				rdb.AddHook(&crash{at: at, after: after})
				dying := f.store(rdb)
				for {
					err := dying.Append(ctx, farmName, logName, f.at, []byte(text(f.n)))
					if err != nil && !errors.Is(err, errCrash) {
						f.Fatal(err)
					}
					if err != nil && !errors.Is(err, blocklog.ErrNotSealed) {
						break
					}
					f.n++
					f.pass(time.Second)
				}
				f.must(rdb.Close())
				f.same(fmt.Sprintf("crash at trip %d, %v", at, after), f.read(blocklog.Query{Limit: f.n}), want(0, f.n-1)[:f.n])
				f.add(20, time.Second) // the first one again
				f.same(fmt.Sprintf("after crash at trip %d, %v", at, after), f.read(blocklog.Query{}), want(0, f.n-1))
				if s := f.stats(); s.Open > 6 {
					f.Errorf("blocks are not made any more: %+v", s)
				}
			}
		}
	})
}

// A server that is killed comes back with what it had acknowledged.
func TestAKilledServerLosesNothing(t *testing.T) {
	server := redistest.Start(t, "appendfsync always")
	f := setup(t, redistest.Client(t, server), blocklog.Spec{Entries: 4, Keep: 2})
	for range 15 {
		f.add(5, time.Second)
		server.Kill()
		if err := f.Append(context.Background(), farmName, logName, f.at, []byte(text(f.n))); err == nil {
			t.Error("appended to no server")
		}
		f.must(server.Run())
		f.same("after a kill", f.read(blocklog.Query{}), want(0, f.n-1))
	}
}

// A server that is restarted does not know the scripts any more.
func TestScriptsAreTaughtAgain(t *testing.T) {
	each(t, blocklog.Spec{Entries: 4, Keep: 2}, func(f *fixture) {
		for range 20 {
			f.must(f.rdb.ScriptFlush(context.Background()).Err())
			f.add(1, time.Second)
		}
		f.same("all", f.read(blocklog.Query{}), want(0, 19))
	})
}

// A server that is out of memory refuses, and nothing is half done.
func TestAFullServerRefuses(t *testing.T) {
	rdb := redistest.Client(t, redistest.Start(t))
	f := setup(t, rdb, blocklog.Spec{Entries: 4, Keep: 2})
	ctx := context.Background()
	f.add(5, time.Second)
	f.must(rdb.ConfigSet(ctx, "maxmemory", "1").Err())
	if err := f.Append(ctx, farmName, logName, f.at, []byte(text(5))); err == nil || errors.Is(err, blocklog.ErrNotSealed) {
		t.Error(err)
	}
	f.must(rdb.ConfigSet(ctx, "maxmemory", "0").Err())
	f.same("before", f.read(blocklog.Query{}), want(0, 4))
	f.add(20, time.Second)
	f.same("after", f.read(blocklog.Query{}), want(0, 24))
}

// Several programs append to one log at once, while another reads: each entry is
// there once, those of one writer in their order, and a reader never misses what
// it has seen.
func TestSeveralWritersAtOnce(t *testing.T) {
	const writers, entries = 4, 150
	f := setup(t, redistest.Client(t, redistest.Start(t)), blocklog.Spec{Entries: 5, Keep: 2})
	ctx := context.Background()
	var wg sync.WaitGroup
	for w := range writers {
		s := f.store(redis.NewClient(f.rdb.Options()))
		wg.Go(func() {
			for i := range entries {
				if err := s.Append(ctx, farmName, logName, f.at, fmt.Appendf(nil, "%d %d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for seen, ended := 0, false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		next := [writers]int{}
		all := f.read(blocklog.Query{})
		for _, text := range all {
			var w, i int
			if _, err := fmt.Sscan(text, &w, &i); err != nil || i != next[w] {
				t.Fatalf("writer %d: entry %d, want %d, %v", w, i, next[w], err)
			}
			next[w]++
		}
		if len(all) < seen || ended && len(all) != writers*entries {
			t.Fatalf("%d entries, %d were there before", len(all), seen)
		}
		seen = len(all)
	}
}

// Something that is no log of ours is left as it is.
func TestAForeignKeyIsAnError(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	f := setup(t, rdb, blocklog.Spec{Entries: 2, Keep: 1})
	ctx := context.Background()
	key := "farmhand:{" + farmName + "}:log:" + logName
	f.must(rdb.Set(ctx, key, "mine", 0).Err())
	err := f.AppendAll(ctx, []blocklog.Addition{{Farm: farmName, Name: logName}, {Farm: "other", Name: logName}})
	if err == nil || errors.Is(err, blocklog.ErrNotSealed) {
		t.Error(err)
	}
	if rdb.Get(ctx, key).Val() != "mine" || rdb.LLen(ctx, "farmhand:{other}:log:"+logName).Val() != 1 {
		t.Error("it was changed, or kept from others")
	}
	// Entries that nobody appended have no time, and are dropped for their age.
	f.must(rdb.Del(ctx, key).Err())
	f.must(rdb.RPush(ctx, key, "?", "a list of somebody else").Err())
	f.add(5, time.Second)
	f.same("beside others", f.read(blocklog.Query{}), want(0, 4))
}

// What is appended once more right away is there once; the same thing at another
// time, or the half of it, is something new.
func TestRepeatedEntriesCountOnce(t *testing.T) {
	each(t, blocklog.Spec{Entries: 3, Keep: 2}, func(f *fixture) {
		ctx := context.Background()
		batch := func(numbers ...int) (all []blocklog.Addition) {
			for _, n := range numbers {
				all = append(all, blocklog.Addition{Farm: farmName, Name: logName, Entry: blocklog.Entry{At: f.at, Data: []byte(text(n))}})
			}
			return all
		}
		for _, numbers := range [][]int{{0}, {0}, {1, 2}, {1, 2}, {0, 2}, {1, 2, 0, 2}, {0, 2}} {
			f.must(f.AppendAll(ctx, batch(numbers...)))
		}
		f.pass(time.Second)
		f.must(f.AppendAll(ctx, batch(0, 2)))
		var expect []string
		for _, n := range []int{0, 1, 2, 0, 2, 1, 2, 0, 2, 0, 2} {
			expect = append(expect, text(n))
		}
		f.same("all", f.read(blocklog.Query{}), expect)
	})
}

// When Redis is away, the error of a thousand farms is one line.
func TestARedisThatIsAwayIsToldOnce(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	var all []blocklog.Addition
	for i := range 1000 {
		all = append(all, blocklog.Addition{Farm: fmt.Sprint("f", i), Name: logName})
	}
	err := blocklog.New(rdb, blocklog.Options{}).AppendAll(context.Background(), all)
	var op *net.OpError
	if err == nil || !errors.As(err, &op) || !strings.Contains(err.Error(), "receipts of f0 and 999 more") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}
