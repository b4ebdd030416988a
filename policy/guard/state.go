package guard

import (
	"time"

	"farmhand/policy"
)

// StateVersion changes when the meaning of a State does.
const StateVersion = 1

// dayStep is how far a clock may step back over midnight without the day ending
// twice.
const dayStep = time.Hour

// State is what the guard remembers of a farm. It is kept with the farm, survives
// restarts and stands in each receipt. The zero State, and one of another version,
// is that of a farm seen for the first time: a full bucket, no data, nothing used.
type State struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`     // of the last observation
	Steady  float64   `json:"steady"` // seconds of fresh observations without a gap
	Spent   float64   `json:"spent"`  // actions whose tokens are not back yet; above the burst it is a debt
	Day     time.Time `json:"day"`    // the UTC midnight that Used counts from
	Used    float64   `json:"used"`   // worker-seconds
}

// Hours are the worker-hours used since the day began.
func (st State) Hours() float64 { return st.Used / 3600 }

// advance brings the state to the observation. The products are rounded before
// they are added, so that no processor fuses the two and replays another number.
func (st State) advance(obs *policy.Observation, perHour float64) State {
	at := obs.At.UTC() // the wall clock alone, as after JSON
	if st.Version != StateVersion {
		st = State{Version: StateVersion, At: at, Day: midnight(at)}
	}
	elapsed := at.Sub(st.At).Seconds()
	st.At = at

	st.Spent = max(0, st.Spent-float64(perHour/3600*clamp(elapsed, interval(obs))))

	if obs.Stale() || elapsed > lapse(obs) {
		st.Steady = 0
	} else {
		st.Steady += max(0, elapsed)
	}
	return st.charge(obs, elapsed)
}

// charge adds the work of the time since the last observation to the day's. It
// was done by the replicas desired now, because a count changes only right after
// an observation, and by those that drain, where that is known.
func (st State) charge(obs *policy.Observation, elapsed float64) State {
	if elapsed < 0 {
		elapsed = interval(obs)
	}
	switch {
	case !st.At.Before(st.Day.Add(24 * time.Hour)):
		st.Day, st.Used = midnight(st.At), 0
		elapsed = min(elapsed, st.At.Sub(st.Day).Seconds())
	case st.At.Before(st.Day.Add(-dayStep)):
		st.Day = midnight(st.At)
	}
	workers := max(0, float64(obs.Desired)) + max(0, obs.Draining.Or(0))
	st.Used += float64(workers * elapsed)
	return st
}

// warm reports whether one long window of data is at hand: in the observation, or
// seen go by.
func (st State) warm(obs *policy.Observation) bool {
	_, long := policy.Windows(interval(obs))
	return st.Steady >= long || obs.Long.Covered >= long-interval(obs)
}

// token reports whether an ordinary action may be taken.
func (st State) token(burst int) bool { return st.Spent+1 <= float64(burst) }

// nextToken is the number of seconds until there is a token.
func (st State) nextToken(perHour float64, burst int) float64 {
	return max(0, st.Spent+1-float64(burst)) / perHour * 3600
}

// spend takes the token of an action. A debt is at most one bucket deep.
func (st State) spend(burst int) State {
	st.Spent = min(st.Spent+1, float64(2*burst))
	return st
}

// interval is that of the observation, at least the shortest there may be.
func interval(obs *policy.Observation) float64 {
	if !(obs.Interval >= 1) {
		return 1
	}
	return obs.Interval
}

// lapse is the pause that ends a run of data: as long as signals stay fresh.
func lapse(obs *policy.Observation) float64 { return max(5, 3*interval(obs)) }

func clamp(x, hi float64) float64 { return min(max(0, x), hi) }

func midnight(t time.Time) time.Time { return t.Truncate(24 * time.Hour) }
