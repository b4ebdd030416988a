package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"farmhand/policy"
)

// sound looks over a whole Sim and says what does not fit.
func (s *Sim) sound() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	// Every task that arrived has ended, or is in one place.
	if s.arrived != s.line.n+s.live+s.coming+s.count.delayed+s.count.done+s.count.dead {
		wrong("%d arrived, %d wait, %d are leased, %d delayed, %d done, %d dead", s.arrived, s.line.n, s.live+s.coming, s.count.delayed, s.count.done, s.count.dead)
	}
	seen := map[int32]bool{}
	s.unfinished(func(task int32) {
		if seen[task] || task < 0 || int(task) >= s.arrived {
			wrong("task %d is in two places, or has not arrived", task)
		}
		seen[task] = true
	})
	if len(seen) != s.count.inSystem.n || len(seen) != s.arrived-s.count.done-s.count.dead {
		wrong("%d tasks are in the system, %d were counted", len(seen), s.count.inSystem.n)
	}
	if q := s.line.queue; q != nil {
		if err := q.Check(); err != nil || q.Len() != s.line.n {
			wrong("the queue holds %d of %d tasks: %v", q.Len(), s.line.n, err)
		}
	}

	// Leases and slots.
	live, busy := 0, map[int32]int32{}
	for i := range s.leases {
		l := &s.leases[i]
		if l.task == none {
			continue
		}
		live++
		if l.replica != none {
			busy[l.replica]++
		}
	}
	if live != s.live+s.coming || len(s.spare)+live != len(s.leases) {
		wrong("%d leases are in use, %d were counted", live, s.live+s.coming)
	}
	// What a look before a decision saw serves after it; a window that recovers from busy
	// answers is seen once a second.
	if s.live < s.room() && s.line.n > 0 && s.count.busy == 0 && s.looks == 0 {
		wrong("%d tasks wait, though %d leases live and there is room for %d", s.line.n, s.live, s.room())
	}
	f := &s.fleet
	paid, up, begun := 0, 0, 0
	for i := range f.list {
		r := &f.list[i]
		if r.busy != busy[int32(i)] || r.busy > f.slots || r.phase == unused && r.busy > 0 {
			wrong("replica %d has %d busy slots and %d tasks", i, r.busy, busy[int32(i)])
		}
		if r.phase != unused {
			paid++
		}
		switch r.phase {
		case ready:
			up++
			if f.ready[r.turn] != int32(i) {
				wrong("replica %d is not where it should be", i)
			}
			if !f.random && (r.place == none) != (r.busy == f.slots) || r.place != none && f.free[r.busy][r.place] != int32(i) {
				wrong("replica %d with %d busy slots is at place %d", i, r.busy, r.place)
			}
		case starting:
			begun++
		}
	}
	if asked := max(0, s.scale.callTo-s.scale.desired); s.scale.calling {
		paid += asked
	}
	if up != len(f.ready) || begun != f.starting || paid != s.count.paid.n || up+begun != s.scale.desired {
		wrong("%d are ready and %d starting of %d, %d are paid, not %d", up, begun, s.scale.desired, s.count.paid.n, paid)
	}
	for i := 1; i < len(s.agenda.list) && !s.agenda.hole; i++ {
		if s.agenda.list[i].before(&s.agenda.list[(i-1)/2]) {
			wrong("the agenda is out of order")
		}
	}
	if t := s.Totals(); t.Late > t.Decided || t.Decided > t.Tasks || t.WorkerSeconds < 0 {
		wrong("%+v", t)
	}
	return errors.Join(errs...)
}

// sane looks over what a run came to.
func (r *Result) sane() error {
	for name, x := range map[string]float64{"p50": r.P50, "p95": r.P95, "p99": r.P99, "max": r.MaxSojourn, "wait": r.Wait, "service": r.Service,
		"worker-seconds": r.WorkerSeconds, "mean workers": r.MeanWorkers, "busy": r.BusyFraction, "number": r.Mean} {
		if !(x >= 0) || math.IsInf(x, 1) {
			return fmt.Errorf("%s is %g", name, x)
		}
	}
	if r.Tasks != r.Done+r.Dead+r.Unfinished || r.Late > r.Decided || r.Decided > r.Tasks || r.Violating > r.Windows || r.BusyFraction > 1+1e-9 ||
		r.MeanWorkers > float64(r.PeakWorkers)+1e-9 || min(r.Actions, r.Starts, r.Flaps, r.Crashes, r.Lost, r.Busy, r.Unfinished) < 0 {
		return fmt.Errorf("%+v", *r)
	}
	return nil
}

// failer is testing.TB or rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// finite fails unless an observation can be told and learned from.
func finite(t failer, o *policy.Observation) {
	t.Helper()
	if _, err := json.Marshal(o); err != nil {
		t.Fatalf("an observation cannot be written down: %v", err)
	}
	lo, hi := policy.VectorBounds()
	for i, x := range o.Vector() {
		if !(x >= lo[i] && x <= hi[i]) {
			t.Fatalf("%s is %g", policy.VectorNames()[i], x)
		}
	}
}
