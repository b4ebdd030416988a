package redissignal_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"farmhand/internal/redistest"
	"farmhand/skeleton/signal"
)

// Two hundred farms, each with 100 tasks a second spread over some 200 bins: what
// a dispatcher writes each second, what a controller reads each tick of two
// seconds, and what it reads when it starts.
const benchFarms = 200

func benchTally() (t signal.Tally) {
	t.Starts, t.Busy = 100, 5
	for i := range 100 {
		x := 0.005 * (1 + float64(i*i)/500)
		t.Wait.Add(x / 3)
		t.Service.Add(x)
		t.Sojourn.Add(x * 1.4)
	}
	return t
}

func fill(f *fixture, seconds int) {
	for range seconds {
		f.pass(time.Second)
		d := signal.Deltas{}
		for i := range benchFarms {
			t := benchTally()
			d[fmt.Sprintf("farm%03d", i)] = &t
		}
		f.must(f.store.Flush(context.Background(), d))
	}
}

func BenchmarkFlush(b *testing.B) {
	f := setup(b, redistest.Client(b, redistest.Start(b)))
	t := benchTally()
	b.ReportMetric(float64(len(t.Wait.Bins)+len(t.Service.Bins)+len(t.Sojourn.Bins)), "bins")
	for b.Loop() {
		d := signal.Deltas{}
		for i := range benchFarms {
			d[fmt.Sprintf("farm%03d", i)] = &t
		}
		f.pass(time.Second)
		f.must(f.store.Flush(context.Background(), d))
	}
}

func BenchmarkRead(b *testing.B) {
	for _, seconds := range []int{3, 120, 899} {
		b.Run(fmt.Sprintf("%ds", seconds), func(b *testing.B) {
			f := setup(b, redistest.Client(b, redistest.Start(b)))
			fill(f, seconds)
			since := map[string]int64{}
			now := f.read(0).Now.Unix()
			for i := range benchFarms {
				since[fmt.Sprintf("farm%03d", i)] = now - int64(seconds)
			}
			b.ReportAllocs()
			for b.Loop() {
				r, err := f.store.Read(context.Background(), since)
				f.must(err)
				if n := len(r["farm007"].Seconds); len(r) != benchFarms || n < seconds*9/10 { // a slow flush falls into the next second
					b.Fatalf("%d farms, %d seconds", len(r), n)
				}
			}
			info, err := f.rdb.InfoMap(context.Background(), "memory").Result()
			f.must(err)
			used, err := strconv.ParseFloat(info["Memory"]["used_memory"], 64)
			f.must(err)
			b.ReportMetric(used/1e6, "MB-in-Redis")
		})
	}
}
