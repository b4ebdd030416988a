package sim

import (
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// window is how many leases may live at once: ⌊min(ready, target) × slots × f⌋,
// where f shrinks on busy answers and recovers by itself, as in the ledger.
type window struct {
	seen   int // ready replicas that controller and dispatcher know of
	target int // replicas wanted
	whole  int // the window where f is 1

	shrunk    bool // f is below 1
	f         float64
	busy, cut float64 // last busy answer; when f fell last
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
	return min(1, w.f+ledger.BusyRecover*(now-w.busy))
}

// refuse takes note of a busy answer.
func (w *window) refuse(now float64) {
	f := w.factor(now)
	if w.cut == 0 || now-w.cut >= ledger.BusyEvery.Seconds() {
		f = max(ledger.MinFactor, f*ledger.BusyFactor)
		w.cut = now
	}
	w.f, w.busy, w.shrunk = f, now, f < 1
}

// duration is a time of the live farm.
func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
