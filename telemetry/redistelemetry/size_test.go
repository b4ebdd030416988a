package redistelemetry

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/internal/redistest"
	"farmhand/skeleton/signal"
	"farmhand/telemetry"
	"farmhand/telemetry/blocklog"
	"farmhand/telemetry/internal/farmday"
)

// memory is what the keys of a farm take in Redis, their names and the slack of
// the allocator included.
func memory(f *fixture, farm string) (sum int64) {
	keys, err := f.rdb.Keys(ctx, "farmhand:{"+farm+"}:*").Result()
	f.must(err)
	for _, k := range keys {
		n, err := f.rdb.MemoryUsage(ctx, k, 0).Result()
		f.must(err)
		sum += n
	}
	return sum
}

// Eight days of a row every two seconds in a real Redis. The farm whose numbers
// jump most is played as a whole, the others for a day (with -short, all).
func TestEightDaysOfRowsFitInto16MB(t *testing.T) {
	for name, kind := range map[string]farmday.Kind{"web": farmday.Web, "batch": farmday.Batch, "flood": farmday.Flood} {
		days := 1
		if name == "flood" && !testing.Short() {
			days = 8
		}
		f := setup(t, redistest.Client(t, redistest.Start(t, "appendonly no")))
		rows := days * 86400 / farmday.Tick
		f.play(name, farmday.New(kind, 1, began), rows)
		n := memory(f, name)
		s, _, err := f.Stats(ctx, name)
		f.must(err)
		got, err := f.Rows(ctx, name, time.Time{}, time.Time{})
		f.must(err)
		t.Logf("%-5s %d days, %d rows, %d blocks: %.2f MB in Redis, %.1f bytes a row, charged %.2f MB",
			name, days, len(got), s.Blocks, float64(n)/1e6, float64(n)/float64(rows), float64(s.Bytes)/1e6)
		if n > int64(days)*(16<<20)/8 || len(got) != rows || s.Aged+s.Cut > 0 || int64(s.Bytes) < n {
			t.Errorf("%d of %d rows, %+v, %d bytes of memory", len(got), rows, s, n)
		}
	}
}

// play keeps so many rows of a farm, ten ticks at once.
func (f *fixture) play(name string, farm *farmday.Farm, rows int) {
	f.Helper()
	for range rows / 10 {
		var all []blocklog.Addition
		for range 10 {
			row := rowFrom(farm.Next())
			data, err := telemetry.Encode([]telemetry.Row{row})
			f.must(err)
			all = append(all, blocklog.Addition{Farm: name, Name: RowsLog, Entry: blocklog.Entry{At: row.At, Data: data}})
		}
		f.now(all[9].At)
		f.must(f.logs.AppendAll(ctx, all))
	}
}

// Thirty days of service times of a busy farm.
func TestThirtyDaysOfPeriodsFitInto4MB(t *testing.T) {
	f := setup(t, redistest.Client(t, redistest.Start(t, "appendonly no")))
	rng := rand.New(rand.NewPCG(1, 1))
	const periods = 30 * 24 * 12
	var all []telemetry.Period
	for i := range periods {
		p := telemetry.Period{Start: began.Add(time.Duration(i) * telemetry.Span)}
		for range 2000 { // of 18,000 tasks: more of them fill few bins more
			p.Service.Add(0.040 * math.Exp(0.6*rng.NormFloat64()))
		}
		for b := range p.Service.Bins { // counts of the size that 18,000 tasks have
			p.Service.Bins[b].N = p.Service.Bins[b].N*9 + rng.Uint32N(9)
		}
		all = append(all, p)
		f.now(p.Start.Add(telemetry.Span))
		f.must(f.AppendPeriods(ctx, map[string][]telemetry.Period{"web": {p}}))
	}
	n := memory(f, "web")
	start := time.Now()
	got, err := f.Periods(ctx, "web", time.Time{}, time.Time{})
	f.must(err)
	_, s, err := f.Stats(ctx, "web")
	f.must(err)
	var sum signal.Hist
	for i := range got {
		sum.Merge(&got[i].Service)
	}
	t.Logf("%d periods in %.2f MB, %.0f bytes each; read and merged in %v", len(got), float64(n)/1e6, float64(n)/periods, time.Since(start).Round(time.Millisecond))
	if n > 4<<20 || len(got) != len(all) || s.Cut+s.Aged > 0 || int64(s.Bytes) < n {
		t.Errorf("%d periods, %+v, %d bytes", len(got), s, n)
	}
}

// Rows of many farms, one tick after the other.
func BenchmarkAppend(b *testing.B) {
	for _, farms := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(farms), func(b *testing.B) {
			f := setup(b, redistest.Client(b, redistest.Start(b)))
			trips := &trips{}
			f.rdb.AddHook(trips)
			web := farmday.New(farmday.Web, 1, began)
			tick := func() map[string]telemetry.Row {
				row := rowFrom(web.Next())
				rows := map[string]telemetry.Row{}
				for i := range farms {
					rows[fmt.Sprint("farm-", i)] = row
				}
				return rows
			}
			for range 200 { // the logs are filled, and blocks are made
				f.lag += 2 * time.Second
				f.must(f.Append(ctx, tick()))
			}
			trips.n = 0
			b.ReportAllocs()
			worst := time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				f.lag += 2 * time.Second
				rows := tick()
				b.StartTimer()
				start := time.Now()
				f.must(f.Append(ctx, rows))
				worst = max(worst, time.Since(start))
			}
			b.ReportMetric(float64(trips.n)/float64(b.N), "trips/op")
			b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
		})
	}
}

// trips counts round trips.
type trips struct{ n int }

func (t *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (t *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		t.n++
		return next(ctx, cmd)
	}
}

func (t *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		t.n++
		return next(ctx, cmds)
	}
}
