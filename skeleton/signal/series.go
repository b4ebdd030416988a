package signal

import (
	"math/bits"
	"time"

	"farmhand/policy"
)

// micros are microseconds: instants since 1970, or stretches of time.
type micros = int64

const (
	patience = micros(Patience / time.Microsecond)
	kept     = micros(Kept / time.Microsecond)
	// usual is how old the newest heartbeat is at most while a dispatcher lives.
	usual = micros(1500 * time.Millisecond / time.Microsecond)
)

func seconds(d micros) float64 { return float64(d) / 1e6 }

// span is what happened between two snapshots.
type span struct {
	from, to                             micros
	arrivals, done, decided, late, lapse int // by the ledger
	Tally                                    // by dispatchers
}

// between sets the span to what the ledger counted between two snapshots. It
// returns false where that is not known: they do not follow each other, are too
// far apart, or the counters went back, since Redis was restored.
func (p *span) between(a, b *Snapshot) bool {
	p.from, p.to = a.At.UnixMicro(), b.At.UnixMicro()
	p.arrivals, p.done, p.lapse = b.Submitted-a.Submitted, b.Done-a.Done, b.Lapsed-a.Lapsed
	p.decided, p.late = b.Timed-a.Timed, b.Late-a.Late
	return 0 < p.to-p.from && p.to-p.from <= patience && min(p.arrivals, p.done, p.decided, p.late, p.lapse) >= 0
}

// Series are the last 15 minutes of a farm, and what is remembered of the time
// before. It belongs to one goroutine.
type Series struct {
	state State

	ring        []span     // of a power of two; number i stands in ring[i mod len]
	first, next int        // numbers of the kept spans: first ≤ i < next
	full        int        // number of the first span that has its distributions
	spare       [3][][]Bin // of Tally.hists, so that lists stay among their like
	views       [3]view
	peaks       peaks
	peaked      int // number of the first span that peaks has not seen

	last   Second   // the newest, without its tally; zero = none
	before Snapshot // the one before it
	ended  bool     // the newest span ends with last
	since  int64    // see Since
}

// NewSeries returns a Series that goes on from a state; the zero State is a new
// farm's. The seconds themselves are read again from the store.
func NewSeries(s State) *Series { return &Series{state: s.clone()} }

// Reset begins anew from a state, as NewSeries does, in the memory that there is.
func (s *Series) Reset(st State) {
	for i := range s.ring {
		s.strip(&s.ring[i])
	}
	*s = Series{state: st.clone(), ring: s.ring, spare: s.spare, peaks: s.peaks[:0]}
}

// State is what has to survive a restart.
func (s *Series) State() State { return s.state.clone() }

// Age is how old the newest second is at an instant of the ledger's clock;
// unknown where there is none.
func (s *Series) Age(at time.Time) policy.Maybe {
	if s.last.At.IsZero() {
		return policy.Unknown
	}
	age := at.UnixMicro() - s.last.At.UnixMicro()
	if -patience < age && age < 0 {
		age = 0 // the seconds were read a moment after that instant
	}
	return policy.Maybe(seconds(age))
}

// Since is the second of Unix time up to which everything was read: the next
// reading shall begin after it. 0 = nothing was read yet.
func (s *Series) Since() int64 { return s.since }

// Add takes over a reading; the Series keeps nothing of its memory. The newest
// second may come again when it has grown; older ones are passed over. Where the
// clock went back, all is forgotten but the state, and not read again: counters
// of before and after do not belong together.
func (s *Series) Add(r *Reading) {
	if r.Now.IsZero() { // nothing was read
		return
	}
	if r.Now.Before(s.last.At.Add(-Patience / 2)) { // a smaller step is waited out
		s.forget(r.Now.UnixMicro())
	}
	for i := range r.Seconds {
		s.add(&r.Seconds[i])
	}
	s.drop(r.Now.UnixMicro() - kept)
	s.since = r.Now.Unix() - 1
}

// add appends a second, or puts it in the place of the newest. The first one
// after a silence is only where the next one begins: since when its counts were
// collected is not known.
func (s *Series) add(sec *Second) {
	if sec.Unix < s.last.Unix || !sec.At.After(s.last.At) {
		return
	}
	if sec.Unix > s.last.Unix {
		s.before = s.last.Snapshot
	} else if s.ended {
		s.retract()
	}
	s.last = Second{Unix: sec.Unix, Snapshot: sec.Snapshot}
	p := span{Tally: sec.Tally}
	if s.ended = p.between(&s.before, &sec.Snapshot); s.ended {
		s.push(&p)
	}
}

// push appends a copy of a span, whose bins go into memory that is used again.
func (s *Series) push(p *span) {
	if s.next-s.first == len(s.ring) {
		s.grow()
	}
	slot := s.at(s.next)
	old := slot.hists()
	bins := [3][]Bin{old[0].Bins, old[1].Bins, old[2].Bins}
	*slot = *p
	for i, h := range slot.hists() {
		if n := len(s.spare[i]); bins[i] == nil && n > 0 {
			bins[i], s.spare[i] = s.spare[i][n-1], s.spare[i][:n-1]
		}
		h.Bins = append(roomFor(bins[i], len(h.Bins)), h.Bins...)
	}
	s.next++
}

// roomFor is an empty list for n bins, in the memory of another where that is
// enough. Memory grows to powers of two, and is soon large enough for any.
func roomFor(list []Bin, n int) []Bin {
	if n > cap(list) {
		return make([]Bin, 0, 1<<bits.Len(uint(n-1)))
	}
	return list[:0]
}

// slim takes their distributions from the spans that have left the long window:
// they are nine tenths of the memory. Should the interval grow, the windows fill
// up again.
func (s *Series) slim() {
	for s.full = max(s.full, s.first); s.full < s.views[2].lo; s.full++ {
		s.strip(s.at(s.full))
	}
}

// strip takes its distributions from a span.
func (s *Series) strip(p *span) {
	for i, h := range p.hists() {
		if h.Bins != nil {
			s.spare[i] = append(s.spare[i], h.Bins)
		}
		*h = Hist{}
	}
}

func (s *Series) at(i int) *span { return &s.ring[i&(len(s.ring)-1)] }

// grow doubles the ring: to 1,024 spans in the end, if there is one a second.
func (s *Series) grow() {
	ring := make([]span, max(64, 2*len(s.ring)))
	for i := s.first; i < s.next; i++ {
		ring[i&(len(ring)-1)] = *s.at(i)
	}
	s.ring = ring
}

// retract takes the newest span back.
func (s *Series) retract() {
	for v := range s.views {
		s.views[v].retract(s)
	}
	s.next--
}

// drop forgets the spans that ended before an instant.
func (s *Series) drop(before micros) {
	for ; s.first < s.next && s.at(s.first).to < before; s.first++ {
		for v := range s.views {
			s.views[v].leave(s, s.first)
		}
	}
}

// forget begins anew at an instant, but for the state.
func (s *Series) forget(now micros) {
	s.drop(1<<63 - 1)
	s.peaks, s.peaked = s.peaks[:0], s.next
	s.last, s.before, s.ended = Second{}, Snapshot{}, false
	s.state.Counted = min(s.state.Counted, now)
}

// settled is the number of the first span that may still grow.
func (s *Series) settled() int {
	if s.ended {
		return s.next - 1
	}
	return s.next
}

// known is until when a farm is known at an instant: until the newest heartbeat,
// but no farther back than that usually is. Windows end here: they are always
// whole while a dispatcher lives, and lose what is not known while none does.
func (s *Series) known(at micros) micros {
	to := at - usual
	if s.first < s.next {
		to = max(to, s.at(s.next-1).to)
	}
	return to
}
