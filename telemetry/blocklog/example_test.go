package blocklog_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"farmhand/telemetry/blocklog"
)

func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()

	ctx := context.Background()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	receipts := blocklog.Spec{Retention: 24 * time.Hour, MaxBytes: 16 << 20}
	store := blocklog.New(rdb, blocklog.Options{
		Logs:   map[string]blocklog.Spec{"receipts": receipts},
		Offset: func() time.Duration { return time.Until(at.Add(time.Hour)) }, // only to show the past
	})
	for i := range 200 {
		receipt := fmt.Appendf(nil, `{"seq":%d,"replicas":%d}`, i, i/50)
		if err := store.Append(ctx, "thumbnail", "receipts", at.Add(time.Duration(2*i)*time.Second), receipt); err != nil {
			log.Fatal(err)
		}
	}

	last, err := store.Tail(ctx, "thumbnail", "receipts", 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", last[0].At.Format(time.TimeOnly), last[0].Data)
	early, err := store.Read(ctx, "thumbnail", "receipts", blocklog.Query{From: at.Add(3 * time.Second), Limit: 2})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range early {
		fmt.Printf("%s: %s\n", e.At.Format(time.TimeOnly), e.Data)
	}
	// Output:
	// 12:06:38: {"seq":199,"replicas":3}
	// 12:00:04: {"seq":2,"replicas":0}
	// 12:00:06: {"seq":3,"replicas":0}
}
