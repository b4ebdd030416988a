package redistelemetry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"farmhand/internal/redistest"
	"farmhand/policy"
	"farmhand/skeleton/signal"
	"farmhand/telemetry"
	"farmhand/telemetry/internal/farmday"
)

var (
	ctx   = context.Background()
	began = time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
)

// fixture is a store whose time is moved by the test.
type fixture struct {
	testing.TB
	*Store
	rdb *redis.Client
	lag time.Duration
}

func setup(t testing.TB, rdb *redis.Client) *fixture {
	f := &fixture{TB: t, rdb: rdb}
	f.Store = New(rdb, func() time.Duration { return f.lag })
	f.now(began)
	return f
}

// now sets the time to a second after an instant.
func (f *fixture) now(at time.Time) {
	now, err := f.rdb.Time(ctx).Result()
	f.must(err)
	f.lag = at.Sub(now) + time.Second
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func each(t *testing.T, test func(*fixture)) {
	t.Run("miniredis", func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		test(setup(t, rdb))
	})
	t.Run("redis-server", func(t *testing.T) { test(setup(t, redistest.Client(t, redistest.Start(t)))) })
}

// diff tells rows apart; unknown is like unknown.
func diff(a, b []telemetry.Row) string {
	same := cmp.Comparer(func(a, b policy.Maybe) bool { return a == b || !a.Known() && !b.Known() })
	return cmp.Diff(a, b, same, cmpopts.EquateEmpty())
}

func rowFrom(o *policy.Observation) telemetry.Row { return telemetry.RowOf(o, o.Desired+1, o.Desired) }

func TestRowsAreKept(t *testing.T) {
	each(t, func(f *fixture) {
		web, batch := farmday.New(farmday.Web, 1, began), farmday.New(farmday.Batch, 2, began)
		var rows []telemetry.Row
		for range 400 {
			o, other := web.Next(), batch.Next()
			f.now(o.At)
			rows = append(rows, rowFrom(o))
			tick := map[string]telemetry.Row{"web": rows[len(rows)-1], "batch.night": rowFrom(other)}
			f.must(f.Append(ctx, tick))
			f.must(f.Append(ctx, tick)) // its answer was lost
		}
		got, err := f.Rows(ctx, "web", time.Time{}, time.Time{})
		f.must(err)
		if d := diff(rows, got); d != "" {
			f.Error(d)
		}
		got, err = f.Rows(ctx, "web", rows[10].At, rows[390].At)
		f.must(err)
		if d := diff(rows[10:390], got); d != "" {
			f.Error(d)
		}
		if s, _, err := f.Stats(ctx, "web"); err != nil || s.Blocks != 2 || s.Open > 151 {
			f.Errorf("%+v, %v", s, err)
		}
		f.must(f.Forget(ctx, "web"))
		f.must(f.Forget(ctx, "batch.night"))
		if keys := f.rdb.Keys(ctx, "*").Val(); len(keys) > 0 {
			f.Errorf("left: %v", keys)
		}
	})
}

// Rows of a later program, and entries that are no rows, are kept as they are;
// reading passes over what it does not understand, and says so.
func TestWhatIsNoRowIsKeptAsItIs(t *testing.T) {
	each(t, func(f *fixture) {
		web := farmday.New(farmday.Web, 1, began)
		var rows []telemetry.Row
		for i := range 400 {
			o := web.Next()
			f.now(o.At)
			rows = append(rows, rowFrom(o))
			f.must(f.Append(ctx, map[string]telemetry.Row{"web": rows[i]}))
			if i == 20 {
				f.must(f.logs.Append(ctx, "web", RowsLog, o.At, []byte("spoilt")))
			}
		}
		got, err := f.Rows(ctx, "web", time.Time{}, time.Time{})
		if !errors.Is(err, telemetry.ErrDamaged) || strings.Contains(err.Error(), "\n") {
			f.Errorf("want one error: %v", err)
		}
		if d := diff(rows, got); d != "" {
			f.Error(d)
		}
	})
}

func TestPeriodsAreKept(t *testing.T) {
	each(t, func(f *fixture) {
		hist := func(xs ...float64) (h signal.Hist) {
			for _, x := range xs {
				h.Add(x)
			}
			return h
		}
		var want []telemetry.Period
		for i := range 200 {
			p := telemetry.Period{Start: began.Add(time.Duration(i) * telemetry.Span), Service: hist(0.01*float64(i+1), 0.04)}
			f.now(p.Start.Add(telemetry.Span))
			want = append(want, p)
			late := telemetry.Period{Start: want[i/2].Start, Service: hist(1)}
			want[i/2].Service.Merge(&late.Service)
			all := map[string][]telemetry.Period{"web": {p}, "other": {p, p}}
			f.must(f.AppendPeriods(ctx, all))
			f.must(f.AppendPeriods(ctx, all)) // its answer was lost
			f.must(f.AppendPeriods(ctx, map[string][]telemetry.Period{"web": {late}}))
		}
		got, err := f.Periods(ctx, "web", time.Time{}, time.Time{})
		f.must(err)
		near := cmpopts.EquateApprox(1e-12, 0) // sums in another order
		if d := cmp.Diff(want, got, near); d != "" {
			f.Error(d)
		}
		got, err = f.Periods(ctx, "web", want[50].Start, want[60].Start)
		f.must(err)
		if d := cmp.Diff(want[50:60], got, near); d != "" {
			f.Error(d)
		}
	})
}
