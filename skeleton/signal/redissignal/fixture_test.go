package redissignal_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"farmhand/internal/redistest"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/redisledger"
	"farmhand/skeleton/signal"
	"farmhand/skeleton/signal/redissignal"
)

// The client of Redis rests a second between two attempts to dial, closed or not.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

const farm = "w"

// fixture is a server whose clock stands still unless the test moves it: each
// call finds it where it was, but for the time that the call itself takes.
type fixture struct {
	t     testing.TB
	rdb   *redis.Client
	store *redissignal.Store
	now   time.Time
}

// both runs a test on a real redis-server and on miniredis.
func both(t *testing.T, test func(f *fixture)) {
	t.Run("redis", func(t *testing.T) { test(setup(t, redistest.Client(t, redistest.Start(t)))) })
	t.Run("miniredis", func(t *testing.T) {
		c := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr(), MaxRetries: -1})
		t.Cleanup(func() { _ = c.Close() })
		test(setup(t, c))
	})
}

func setup(t testing.TB, rdb *redis.Client) *fixture {
	f := &fixture{t: t, rdb: rdb, now: time.Date(2026, 1, 2, 3, 4, 5, 250e6, time.UTC)}
	f.store = redissignal.New(rdb, redissignal.Options{Offset: f.offset})
	return f
}

// offset is how far the clock of the fixture is from that of the server, which is
// ours.
func (f *fixture) offset() time.Duration { return time.Until(f.now) }

func (f *fixture) pass(d time.Duration) { f.now = f.now.Add(d) }

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) flush(t signal.Tally) {
	f.t.Helper()
	d := signal.Deltas{farm: &t}
	f.must(f.store.Flush(context.Background(), d))
	if len(d) != 0 {
		f.t.Errorf("%d tallies are left", len(d))
	}
}

func (f *fixture) read(since int64) signal.Reading {
	f.t.Helper()
	r, err := f.store.Read(context.Background(), map[string]int64{farm: since})
	f.must(err)
	return r[farm]
}

// tally counts n tasks that took s, 2s, 3s … seconds.
func tally(n int, s float64) signal.Tally {
	t := signal.Tally{Starts: n, Busy: 2, Failed: 1, Lost: 3}
	for i := range n {
		x := s * float64(1+i)
		t.Wait.Add(x / 3)
		t.Service.Add(x)
		t.Sojourn.Add(x * 4 / 3)
	}
	return t
}

var nearly = cmpopts.EquateApprox(1e-9, 1e-12)

// ledgerOf is the farm's ledger on the same server, with the same clock.
func ledgerOf(f *fixture) ledger.Ledger {
	s := redisledger.New(f.rdb, redisledger.Options{Offset: f.offset})
	f.t.Cleanup(s.Close)
	return s.Farm(farm)
}

func submit(f *fixture, l ledger.Ledger, tasks int) {
	f.t.Helper()
	ctx := context.Background()
	st, err := l.Stage(ctx, ledger.Submission{Job: skeleton.Job{ID: farm + "~" + ulid.Make().String()}})
	f.must(err)
	f.must(st.Add(ctx, make([]skeleton.NewTask, tasks)))
	_, err = st.Commit(ctx)
	f.must(err)
}
