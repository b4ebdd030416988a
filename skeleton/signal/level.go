package signal

import (
	"math"
	"slices"

	"farmhand/policy"
)

// settling is for how many intervals after a change a level is estimated anew
// without another change.
const settling = 2

// level is a stretch of time with a steady arrival rate.
type level struct {
	Began    micros  `json:"began"`    // when
	Arrivals float64 `json:"arrivals"` // in Time
	Time     float64 `json:"time"`     // measured seconds; 0 = there is no level yet
	Settling int     `json:"settling"` // intervals before a change can be declared
	Mixed    bool    `json:"mixed"`    // so far only the interval of the change, which is of both levels
	Sojourn  float64 `json:"sojourn"`  // sum over Finished tasks
	Finished float64 `json:"finished"`
}

// leaves is the rule of a change: n arrivals in t seconds are more than four
// standard deviations from what a Poisson process of the level's rate brings,
// and by a factor above 1.5. The one alone would see changes in the noise of
// slow farms, the other in that of fast ones.
func (l *level) leaves(n, t float64) bool {
	want := l.Arrivals / l.Time * t
	return math.Abs(n-want) > 4*math.Sqrt(want+1) && (n > 1.5*want || want > 1.5*n)
}

// absorb adds an interval to the level. The interval in which the level began
// stands in for it only as long as there is no other.
func (l *level) absorb(n, t float64) {
	if l.Mixed {
		l.Arrivals, l.Time, l.Mixed = 0, 0, false
	}
	l.Arrivals += n
	l.Time += t
	l.Settling = max(0, l.Settling-1)
}

// view is how a policy sees the level at an instant.
func (l *level) view(at micros, service policy.Maybe, slots int) policy.Level {
	if l.Time == 0 {
		return policy.Level{}
	}
	v := policy.Level{Rate: l.Arrivals / l.Time, Age: seconds(max(0, at-l.Began))}
	v.Load = v.Rate * service.Or(0) / float64(max(1, slots))
	if l.Finished > 0 {
		v.Sojourn = l.Sojourn / l.Finished
	}
	return v
}

// detect looks whether the farm has changed its level in the interval that ends
// at an instant. It does so once per interval, however often it is called, and
// learns nothing from an interval that is unknown for the most part.
func (s *Series) detect(o *policy.Observation, to micros) {
	st := &s.state
	interval := micros(o.Interval * 1e6)
	if to < st.Looked || to-st.Looked > kept { // the clock went back; or at first, or it is long ago
		st.Looked = to - interval
		st.Level.Began = min(st.Level.Began, to)
	}
	if to-st.Looked < interval-interval/10 { // heartbeats and ticks are not quite even
		return
	}
	from := st.Looked
	st.Looked = to
	f := s.flow(s.next, from, to)
	if f.covered < o.Interval/2 {
		return
	}
	switch l := &st.Level; {
	case l.Time == 0:
		*l = level{Began: from, Settling: settling + 1}
		l.absorb(f.arrivals, f.covered)
	case l.Settling == 0 && l.leaves(f.arrivals, f.covered):
		st.Past = slices.Insert(st.Past, 0, l.view(from, o.Service, o.Slots))
		st.Past = st.Past[:min(len(st.Past), policy.Levels)]
		*l = level{Began: from, Arrivals: f.arrivals, Time: f.covered, Settling: settling, Mixed: true}
	default:
		l.absorb(f.arrivals, f.covered)
	}
}

// finish counts the sojourns of the settled spans that are new into the level of
// now.
func (s *Series) finish() {
	st := &s.state
	done := st.Counted
	for i := s.settled() - 1; i >= s.first && s.at(i).to > done; i-- {
		st.Level.Sojourn += s.at(i).Sojourn.Sum
		st.Level.Finished += float64(s.at(i).Sojourn.N)
		st.Counted = max(st.Counted, s.at(i).to)
	}
}
