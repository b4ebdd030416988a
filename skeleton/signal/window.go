package signal

import (
	"math"

	"farmhand/policy"
)

// flow is what the ledger counted over a stretch of time. Of a span that is only
// partly inside, that share counts.
type flow struct {
	covered                              float64 // seconds that are known
	arrivals, done, decided, late, lapse float64
}

func (f *flow) add(p *span, share float64) {
	f.covered += share * seconds(p.to-p.from)
	f.arrivals += share * float64(p.arrivals)
	f.done += share * float64(p.done)
	f.decided += share * float64(p.decided)
	f.late += share * float64(p.late)
	f.lapse += share * float64(p.lapse)
}

// share is which part of the span lies between two instants.
func (p *span) share(from, to micros) float64 {
	inside := min(to, p.to) - max(from, p.from)
	if inside <= 0 {
		return 0
	}
	return float64(inside) / float64(p.to-p.from)
}

// flow sums up the spans before number next, from one instant to another.
func (s *Series) flow(next int, from, to micros) (f flow) {
	for i := next - 1; i >= s.first && s.at(i).to > from; i-- {
		f.add(s.at(i), s.at(i).share(from, to))
	}
	return f
}

// window measures so many seconds before an instant.
func (s *Series) window(v *view, length float64, to micros) policy.Window {
	w := policy.Window{Length: length}
	from := to - micros(length*1e6)
	var f flow
	var m [3]moments
	lo := s.next
	for i := s.next - 1; i >= s.first && s.at(i).to > from; i-- {
		p := s.at(i)
		share := p.share(from, to)
		f.add(p, share)
		w.Starts += share * float64(p.Starts)
		w.Busy += share * float64(p.Busy)
		w.Failed += share * float64(p.Failed)
		w.Lost += share * float64(p.Lost)
		if share >= 0.5 { // a distribution is inside as a whole, or not at all
			lo = i
			for k, h := range p.hists() {
				m[k].add(h)
			}
		}
	}
	w.Covered, w.Arrivals, w.Done, w.Decided, w.Late = min(f.covered, length), f.arrivals, f.done, max(f.decided, f.late), f.late
	w.Lost += f.lapse
	v.move(s, lo)
	w.Wait, w.Service, w.Sojourn = m[0].stats(&v.counts[0]), m[1].stats(&v.counts[1]), m[2].stats(&v.counts[2])
	return w
}

// view are the distributions over a window: the spans lo ≤ i < hi as a whole. It
// moves on by adding what is new and taking out what is over.
type view struct {
	lo, hi int
	counts [3]dense
}

// move makes the view that of all spans from number lo on.
func (v *view) move(s *Series, lo int) {
	if lo < v.lo || lo >= v.hi {
		*v = view{lo: lo, hi: lo}
	}
	for ; v.hi < s.next; v.hi++ {
		for k, h := range s.at(v.hi).hists() {
			v.counts[k].add(h)
		}
	}
	for v.lo < lo {
		v.leave(s, v.lo)
	}
}

// leave takes out the oldest span, if that is number i.
func (v *view) leave(s *Series, i int) {
	if i == v.lo && v.lo < v.hi {
		v.sub(s.at(i))
		v.lo++
	}
}

// retract takes out the newest span of the Series.
func (v *view) retract(s *Series) {
	if v.lo < v.hi && v.hi == s.next {
		v.hi--
		v.sub(s.at(v.hi))
	}
}

func (v *view) sub(p *span) {
	for k, h := range p.hists() {
		v.counts[k].sub(h)
	}
}

// moments are the exact part of a distribution.
type moments struct {
	n                 int
	sum, squares, max float64
}

func (m *moments) add(h *Hist) {
	m.n += h.N
	m.sum += h.Sum
	m.squares += h.Squares
	m.max = max(m.max, h.Max)
}

func (m *moments) stats(d *dense) policy.Stats {
	if m.n == 0 {
		return policy.Stats{}
	}
	n := float64(m.n)
	st := policy.Stats{N: n, Mean: m.sum / n, Max: m.max}
	if m.n > 1 {
		st.SD = math.Sqrt(max(0, m.squares-n*st.Mean*st.Mean) / (n - 1))
	}
	q := d.quantiles(m.n, m.max, [3]float64{0.50, 0.95, 0.99})
	st.P50, st.P95, st.P99 = q[0], q[1], q[2]
	return st
}
