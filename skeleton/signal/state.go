package signal

import (
	"slices"
	"time"

	"farmhand/policy"
)

// State is what a Series remembers beyond its windows. Times are microseconds
// since 1970, by the ledger's clock. It is kept as JSON.
type State struct {
	Level   level          `json:"level"`
	Past    []policy.Level `json:"past,omitempty"`    // newest first
	Looked  micros         `json:"looked,omitempty"`  // when a change of level was last looked for
	Counted micros         `json:"counted,omitempty"` // up to when sojourns are in a level
	Service float64        `json:"service,omitempty"` // last mean that was measured; 0 = none yet
	Startup startup        `json:"startup"`
}

func (s State) clone() State {
	s.Past = slices.Clone(s.Past)
	s.Startup.Asked = slices.Clone(s.Startup.Asked)
	return s
}

// startup measures how long replicas take from the scale call to being ready.
type startup struct {
	Mean  float64 `json:"mean,omitempty"` // seconds
	N     int     `json:"n,omitempty"`    // replicas measured; 0 = none yet
	Ready int     `json:"ready"`          // at the last observation
	Seen  micros  `json:"seen,omitempty"` // when that was
	Asked []asked `json:"asked,omitempty"`
}

// asked are replicas that a scale call asked for and that are not ready yet.
type asked struct {
	At micros `json:"at"`
	N  int    `json:"n"`
}

const (
	lagMemory = 20 // replicas that the measured start-up lag forgets slowly
	maxAsked  = 64 // scale calls without effect that are remembered
)

// Scaled notes a scale call at an instant of the ledger's clock: how many
// replicas were desired before it, and how many the platform said afterwards.
func (s *Series) Scaled(at time.Time, before, after int) {
	u := &s.state.Startup
	if after > before {
		u.Asked = append(u.Asked, asked{at.UnixMicro(), after - before})
		u.Asked = slices.Delete(u.Asked, 0, max(0, len(u.Asked)-maxAsked))
		return
	}
	for n := before - after; n > 0 && len(u.Asked) > 0; { // the youngest are not awaited any more
		youngest := &u.Asked[len(u.Asked)-1]
		k := min(n, youngest.N)
		n -= k
		if youngest.N -= k; youngest.N == 0 {
			u.Asked = u.Asked[:len(u.Asked)-1]
		}
	}
}

// ready notes how many replicas are ready. New ones are taken to be those that
// were asked for first. Where nobody looked for a while it is not known how long
// they took.
func (u *startup) ready(at micros, n int, interval float64) {
	looking := at-u.Seen <= micros(max(10, 2*interval)*1e6)
	more := n - u.Ready
	u.Ready, u.Seen = n, at
	for more > 0 && len(u.Asked) > 0 {
		first := &u.Asked[0]
		k := min(more, first.N)
		more -= k
		if lag := at - first.At; looking && 0 <= lag && lag < kept { // else the clock was set, or it came for another reason
			for range k {
				u.N++
				u.Mean += (seconds(lag) - u.Mean) / float64(min(u.N, lagMemory))
			}
		}
		if first.N -= k; first.N == 0 {
			u.Asked = slices.Delete(u.Asked, 0, 1)
		}
	}
}

func (u *startup) lag() policy.Maybe {
	if u.N == 0 {
		return policy.Unknown
	}
	return policy.Maybe(u.Mean)
}
