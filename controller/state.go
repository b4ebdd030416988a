package controller

import (
	"encoding/json"
	"fmt"
	"time"

	"farmhand/policy/guard"
	"farmhand/skeleton/signal"
)

// stateVersion of a farm's state; another one is a new farm's.
const stateVersion = 1

// state is what a controller keeps of a farm, so that another one can go on.
type state struct {
	Version  int          `json:"version"`
	Seq      int64        `json:"seq"` // of the last receipt
	Ticked   time.Time    `json:"ticked"`
	Policy   string       `json:"policy"`            // that Memory belongs to
	Fallback string       `json:"fallback"`          // likewise
	Adviser  string       `json:"adviser,omitempty"` // likewise
	Shadow   string       `json:"shadow,omitempty"`  // likewise
	Memory   Memories     `json:"memory"`
	Guard    guard.State  `json:"guard"`
	Hand     guard.Hand   `json:"hand,omitzero"`
	Term     int64        `json:"term,omitempty"`   // of the champion that Hand is about
	Review   *Review      `json:"review,omitempty"` // the last one
	Signals  signal.State `json:"signals"`

	// What the platform was left with: counts other than these two are somebody
	// else's. Nil before the first call, and after a count was adopted.
	Left    *int        `json:"left,omitempty"`    // read back after the last call
	Asked   *int        `json:"asked,omitempty"`   // by a call that may have been made
	Lower   *lower      `json:"lower,omitempty"`   // a scale-down under way
	Least   *clamp      `json:"least,omitempty"`   // what the platform makes of less
	Most    *clamp      `json:"most,omitempty"`    // and of more
	Failed  string      `json:"failed,omitempty"`  // why the last scale call failed; "" = it did not
	Foreign []time.Time `json:"foreign,omitempty"` // changes by somebody else, of the last minutes

	Conditions map[string]Condition `json:"conditions,omitempty"`
}

// lower is a scale-down: the window is lowered first, the call follows when the
// live leases fit, or one interval later.
type lower struct {
	To    int       `json:"to"`
	Since time.Time `json:"since"`
}

// clamp is a bound that the platform was seen to keep: plain OpenFaaS keeps 1…5.
// It counts once it was seen twice: what came of one call may be somebody else's.
type clamp struct {
	N     int       `json:"n"`
	Seen  int       `json:"seen"`
	Until time.Time `json:"until"` // it is tried again after that
}

func (c *clamp) holds(now time.Time) bool { return c != nil && c.Seen > 1 && !now.After(c.Until) }

// see notes that a call came to n.
func (c *clamp) see(n int, now time.Time) *clamp {
	seen := 1
	if c != nil && c.N == n {
		seen = c.Seen + 1
	}
	return &clamp{N: n, Seen: seen, Until: now.Add(clampFor)}
}

const (
	clampFor    = 10 * time.Minute
	foreignFor  = 10 * time.Minute
	foreignMany = 3 // changes within foreignFor are a fight
)

func decodeState(raw []byte) (state, error) {
	var s state
	if len(raw) == 0 {
		return state{Version: stateVersion}, nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return state{Version: stateVersion}, fmt.Errorf("controller: the state of a farm cannot be read, it begins anew: %w", err)
	}
	if s.Version != stateVersion {
		return state{Version: stateVersion}, nil
	}
	return s, nil
}

// wanted is the count that this controller wants, given what the platform is
// asked for.
func (s *state) wanted(desired int) int {
	if s.Lower != nil && s.Lower.To < desired {
		return s.Lower.To
	}
	return desired
}

// foreign notes a change that is not ours, and adopts it.
func (s *state) foreign(desired int, now time.Time) *Foreign {
	if s.Left == nil || *s.Left == desired {
		return nil
	}
	from := *s.Left
	s.Left = &desired
	if s.Most != nil && desired > s.Most.N { // the platform goes there after all
		s.Most = nil
	}
	if s.Least != nil && desired < s.Least.N {
		s.Least = nil
	}
	if s.Asked != nil && *s.Asked == desired {
		return nil // our own call, whose end was not seen
	}
	s.Asked, s.Lower = nil, nil
	s.Foreign = append(s.recent(now), now)
	return &Foreign{From: from, To: desired}
}

// recent are the changes by somebody else that still count.
func (s *state) recent(now time.Time) []time.Time {
	var list []time.Time
	for _, t := range s.Foreign {
		if d := now.Sub(t); d >= 0 && d < foreignFor {
			list = append(list, t)
		}
	}
	return list
}

// bounds narrows a farm's own bounds to those that the platform keeps.
func (s *state) bounds(least, most int, now time.Time) (int, int) {
	if s.Most.holds(now) && (most == 0 || s.Most.N < most) {
		most = s.Most.N
	}
	if s.Least.holds(now) {
		least = max(least, s.Least.N)
	}
	return least, most
}

// learn takes over what the platform made of a call.
func (s *state) learn(asked, got int, now time.Time) {
	switch {
	case got < asked:
		s.Most = s.Most.see(got, now)
	case got > asked:
		s.Least = s.Least.see(got, now)
	}
}
