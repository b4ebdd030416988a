package signal

import (
	"slices"

	"farmhand/policy"
)

// peaks are the arrival rates of past windows that no later one has reached,
// each with the end of its window. They fall from the first to the last: the
// first one that is not too old is the highest of all.
type peaks []peak

type peak struct {
	at   micros
	rate float64
}

// peak is the highest arrival rate of the windows as long as w, which is that of
// now, that ended in the last 15 minutes. Windows of which less than half is
// known do not count. Beside w they end with spans that are settled.
func (s *Series) peak(w *policy.Window, at micros) policy.Maybe {
	for s.peaked = max(s.peaked, s.first); s.peaked < s.settled(); s.peaked++ {
		to := s.at(s.peaked).to
		if f := s.flow(s.peaked+1, to-micros(w.Length*1e6), to); f.covered >= w.Length/2 {
			s.peaks.push(peak{to, f.arrivals / f.covered})
		}
	}
	old := 0
	for old < len(s.peaks) && s.peaks[old].at < at-kept {
		old++
	}
	s.peaks = slices.Delete(s.peaks, 0, old)

	top := policy.Unknown
	if w.Covered >= w.Length/2 {
		top = w.Rate()
	}
	if len(s.peaks) > 0 {
		top = policy.Maybe(max(top.Or(0), s.peaks[0].rate))
	}
	return top
}

func (p *peaks) push(q peak) {
	n := len(*p)
	for n > 0 && (*p)[n-1].rate <= q.rate {
		n--
	}
	*p = append((*p)[:n], q)
}
