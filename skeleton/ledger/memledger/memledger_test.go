package memledger_test

import (
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/ledgertest"
	"farmhand/skeleton/ledger/memledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that only advance moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

var harness = ledgertest.Harness{Open: func(_ *testing.T, l ledger.Limits) (ledger.Store, func(time.Duration)) {
	c := &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 678_901_234, time.UTC)}
	return memledger.New(memledger.Options{Limits: l, Clock: c.read}), c.advance
}}

func TestLedger(t *testing.T) { ledgertest.Run(t, harness) }

func TestModel(t *testing.T) { ledgertest.Model(t, harness) }
