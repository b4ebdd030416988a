package sim

import (
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// window is how many leases may live at once: ⌊min(ready, target) × slots × f⌋,
// where f shrinks on too many busy answers and recovers by itself, as in the ledger.
type window struct {
	seen   int // ready replicas that controller and dispatcher know of
	target int // replicas wanted
	whole  int // the window where f is 1

	shrunk bool // f is below 1
	f      float64
	cut    float64 // when f fell last
	since  float64 // when the counting of busy answers began
	busy   int     // so many since then
	from   int     // tasks that had ended then
}

func (w *window) reset() { *w = window{f: 1} }

// hair keeps a factor that rounding left just short of a whole slot from losing
// that slot.
const hair = 1e-12

// room is the size of the window.
func (s *Sim) room() int {
	if !s.window.shrunk {
		return s.window.whole
	}
	w := &s.window
	f := w.factor(s.now)
	w.shrunk = f < 1
	return skeleton.Window(w.seen, w.target, s.slots, f+hair)
}

// bound sets the counts that bound the window.
func (s *Sim) bound(seen, target int) {
	s.window.seen, s.window.target = seen, target
	s.window.whole = skeleton.Window(seen, target, s.slots, 1)
	s.unpark()
}

func (w *window) factor(now float64) float64 {
	if !w.shrunk {
		return 1
	}
	return min(1, w.f+ledger.BusyRecover*(now-w.cut))
}

// refuse takes note of a busy answer, when so many tasks have ended in all.
func (w *window) refuse(now float64, ended int) {
	if w.busy == 0 || now-w.since >= ledger.BusyPeriod.Seconds() {
		w.since, w.busy, w.from = now, 0, ended
	}
	w.busy++
	if ledger.TooBusy(w.busy, min(w.seen, w.target), ended-w.from) && (w.cut == 0 || now-w.cut >= ledger.BusyEvery.Seconds()) {
		w.f, w.cut, w.shrunk = max(ledger.MinFactor, w.factor(now)*ledger.BusyFactor), now, true
	}
}

// duration is a time of the live farm.
func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
