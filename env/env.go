// Package env is what learners play: the interface of Gymnasium in Go, and its
// vector form. Package farmenv has the farms.
//
// An environment is deterministic: the seed given to Reset and the actions given
// to Step decide everything it returns. Vector relies on it to take training up
// again in the middle of an episode. Environments are not safe for concurrent
// use.
package env

// Env is one environment.
//
// The slices that Reset and Step return (the observation, and those inside Info)
// belong to the environment, which uses them again: they hold until the next
// call. Neither allocates where that can be avoided.
type Env interface {
	// Spec describes the environment; it never changes, and callers do not
	// change it.
	Spec() *Spec

	// Reset begins an episode: equal seeds and options give equal episodes for
	// equal actions. Options that Spec.CheckOptions refuses are a mistake in the
	// program, for which Reset panics.
	Reset(seed uint64, options Options) (obs []float64, info Info)

	// Step takes an action that the last mask allowed, and says what came of it.
	//
	// terminated: the task itself is over, nothing follows, so the value of obs
	// is 0 by definition. truncated: the episode was cut for another reason, such
	// as a limit of time, and a learner goes on with the value of obs. After
	// either of them obs is the last observation of the episode, and Reset must
	// come next. An action out of range or not allowed is a mistake in the
	// program, for which Step panics.
	Step(action int) (obs []float64, reward float64, terminated, truncated bool, info Info)
}

// Spec describes an environment.
type Spec struct {
	ID          string // versioned: what an id means never changes, as in Farm-v0
	Observation Box
	Action      Discrete
	Parts       []string // names of Info.Parts
	Metrics     []string // names of Info.Metrics
	Options     []Option // what Reset can be asked for
}

// Info is what a step says beside observation and reward.
type Info struct {
	// Mask tells which actions the next Step allows; nil allows all. At least one
	// is allowed, even at the end of an episode.
	Mask []bool
	// Parts are the parts of the reward, in the order of Spec.Parts. They add up
	// to it. Nil after Reset, and where the reward has no parts.
	Parts []float64
	// Metrics are amounts of this step by which an episode is judged, whatever the
	// reward: tasks decided, tasks late, worker-seconds. They are made to be added
	// up over an episode. Nil as Parts.
	Metrics []float64
}
