package controller_test

import (
	"testing"
	"time"

	"farmhand/skeleton/ledger"
)

// Leases of a dispatcher that died are load that nobody works on: they lapse, the
// tasks are run by another one, and the farm goes down to its minimum, whoever is
// still registered (P37).
func TestDeadHoldersDoNotKeepWorkers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 4, "policy", "staffing:down=5")
		w.set(func() { w.silent = true })
		w.submit("f", 3)
		l := w.ledgers.Store.Farm("f")
		taken, err := l.TakeAny(background, "dead", 3)
		if err != nil || len(taken.Leases) != 3 || l.Beat(background, "dead") != nil {
			t.Fatalf("%d leases, %v", len(taken.Leases), err)
		}
		w.set(func() { w.silent = false })
		w.start("A")
		w.after(ledger.LeaseTime + 5*time.Second + 4*interval)
		if n, _, err := w.platform.Replicas(background, "f"); err != nil || n != 1 {
			t.Errorf("%d replicas, %v", n, err)
		}
		if j, err := l.Jobs(background, "", 1); err != nil || j[0].Done != 3 {
			t.Errorf("%+v, %v", j, err)
		}
	})
}

// The only worker is drained by somebody while a task comes: it does not count as
// capacity, and another one is ordered within a tick (P42).
func TestDrainedWorkerIsReplaced(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 1)
		w.start("A")
		w.settle()
		w.platform.set(func() { f.resize(0) })
		w.submit("f", 1)
		w.after(interval)
		if calls := w.platform.made(); len(calls) != 1 || calls[0].n < 1 {
			t.Errorf("calls %v", calls)
		}
	})
}
