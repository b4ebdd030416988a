package redisledger_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"farmhand/internal/redistest"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/ledgertest"
	"farmhand/skeleton/ledger/redisledger"
)

// The contract on a real redis-server, and on the one that other packages test
// with.

func TestContract(t *testing.T) {
	ledgertest.Run(t, harness(redistest.Start(t, "databases 4096").Addr))
}

func TestContractMiniredis(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: miniredis takes minutes under the race detector; make test runs it")
	}
	ledgertest.Run(t, harness(miniredis.RunT(t).Addr()))
}

// TestModel plays random histories against the reference model.
func TestModel(t *testing.T) {
	ledgertest.Model(t, harness(redistest.Start(t, "databases 4096").Addr))
}

// harness gives each test a database of its own and shifts the store's clock.
func harness(addr string) ledgertest.Harness {
	var databases atomic.Int64
	return ledgertest.Harness{Open: func(t *testing.T, l ledger.Limits) (ledger.Store, func(time.Duration)) {
		c := redis.NewClient(&redis.Options{Addr: addr, DB: int(databases.Add(1)), MaxRetries: -1,
			ReadTimeout: time.Minute}) // miniredis under the race detector needs it
		var offset atomic.Int64
		s := redisledger.New(c, redisledger.Options{Limits: l, Offset: func() time.Duration { return time.Duration(offset.Load()) }})
		t.Cleanup(func() {
			s.Close()
			_ = c.Close()
		})
		return s, func(d time.Duration) { offset.Add(int64(d)) }
	}}
}
