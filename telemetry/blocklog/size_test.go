package blocklog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"farmhand/internal/redistest"
	"farmhand/telemetry"
	"farmhand/telemetry/blocklog"
	"farmhand/telemetry/internal/farmday"
)

// A day of receipts of a busy farm, one every two seconds and 4 kB each. With
// observations as they are a log would reach its bound of 16 MB before the day is
// over, and be cut; with rounded ones it stays below. With -short it is two hours.
func TestADayOfReceipts(t *testing.T) {
	for _, rounded := range []bool{false, true} {
		f := setup(t, redistest.Client(t, redistest.Start(t, "appendonly no")), blocklog.Spec{MaxBytes: 64 << 20})
		const day = 86400 / farmday.Tick
		n, plain := day, 0
		if testing.Short() {
			n = day / 12
		}
		farm, receipts := farmday.New(farmday.Web, 1, f.at.Add(-8*time.Hour)), farmday.NewReceipts()
		for range 8 * 3600 / farmday.Tick { // to the morning
			farm.Next()
		}
		for range n / 10 {
			var all []blocklog.Addition
			for range 10 {
				o := farm.Next()
				if rounded {
					telemetry.Round(o)
				}
				all = append(all, blocklog.Addition{Farm: farmName, Name: logName, Entry: blocklog.Entry{At: f.at, Data: receipts.Next(o)}})
				plain += len(all[len(all)-1].Data)
				f.pass(farmday.Tick * time.Second)
			}
			f.must(f.AppendAll(context.Background(), all))
		}
		memory, s := f.memory(), f.stats()
		t.Logf("rounded %v: %d receipts of %d bytes: %.2f MB in Redis, %.0f bytes each; %+v",
			rounded, n, plain/n, float64(memory)/1e6, float64(memory)/float64(n), s)
		if got := len(f.read(blocklog.Query{})); got != n {
			t.Errorf("%d of %d receipts", got, n)
		}
		if rounded && memory > 13<<20 || memory > 24<<20 || int64(s.Bytes) < memory {
			t.Errorf("%d bytes of memory, %+v", memory, s)
		}
	}
}

// Receipts of many farms, one tick after the other.
func BenchmarkAppendReceipts(b *testing.B) {
	for _, farms := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(farms), func(b *testing.B) {
			f := setup(b, redistest.Client(b, redistest.Start(b)), blocklog.Spec{})
			farm, receipts := farmday.New(farmday.Web, 1, f.at), farmday.NewReceipts()
			tick := func() (all []blocklog.Addition) {
				data := receipts.Next(farm.Next())
				for i := range farms {
					all = append(all, blocklog.Addition{Farm: fmt.Sprint("farm-", i), Name: logName, Entry: blocklog.Entry{At: f.at, Data: data}})
				}
				f.pass(2 * time.Second)
				return all
			}
			for range 170 {
				f.must(f.AppendAll(context.Background(), tick()))
			}
			worst := time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				all := tick()
				b.StartTimer()
				start := time.Now()
				f.must(f.AppendAll(context.Background(), all))
				worst = max(worst, time.Since(start))
			}
			b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
			start := time.Now()
			for range 100 {
				if got, err := f.Tail(context.Background(), "farm-0", logName, 20); err != nil || len(got) != 20 {
					b.Fatal(len(got), err)
				}
			}
			b.ReportMetric(float64(time.Since(start).Microseconds())/100, "µs/tail20")
		})
	}
}
