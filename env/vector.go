package env

import (
	"fmt"
	"slices"
)

// Vector steps several environments of one kind together and begins new episodes
// by itself.
//
// Autoreset happens in the next step, as in Gymnasium 1.0: when an episode ends,
// Step returns its last observation, and nothing is lost of it. The Step after
// that takes no action in that environment; it begins the next episode and
// returns its first observation with reward 0 (Batch.Began). So a learner must
// not learn from what it "did" where Batch.Over was set: there was no action.
//
// Episode e of environment i has the seed EpisodeSeed(seed, i, e).
type Vector struct {
	envs    []Env
	spec    *Spec
	options Options
	seed    uint64

	started bool
	episode []uint64  // number of the current one, from 0
	actions [][]int32 // taken in the current one
	running []Episode // sums of the current one
	ended   []Episode // sums of the last one that ended
	batch   Batch
}

// Batch is what a step of all environments made; row i is of environment i. The
// vector uses its memory again: it holds until the next Step.
type Batch struct {
	Obs        []float64 // rows × Spec.Observation.Len()
	Mask       []bool    // rows × Spec.Action.N(); what the next Step allows
	Reward     []float64
	Terminated []bool
	Truncated  []bool
	Began      []bool     // the observation is the first of an episode; no action was taken
	Ended      []*Episode // those that ended in this step, in the order of environments
}

// Over reports whether the episode of environment i has ended: the next Step
// takes no action in it.
func (b *Batch) Over(i int) bool { return b.Terminated[i] || b.Truncated[i] }

// Episode is the sum of an episode.
type Episode struct {
	Env     int // whose
	Seed    uint64
	Return  float64 // undiscounted sum of rewards
	Length  int     // steps
	Parts   []float64
	Metrics []float64
}

// NewVector makes a vector of environments, all of which have the same Spec. Each
// episode is begun with the options. The error says what does not fit.
func NewVector(seed uint64, options Options, envs ...Env) (*Vector, error) {
	if len(envs) == 0 {
		return nil, fmt.Errorf("env: a vector of no environments: want at least one")
	}
	spec := envs[0].Spec()
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if err := spec.CheckOptions(options); err != nil {
		return nil, err
	}
	for i, e := range envs {
		s := e.Spec()
		if s.ID != spec.ID || !slices.Equal(s.Observation.Names, spec.Observation.Names) || !slices.Equal(s.Action.Names, spec.Action.Names) {
			return nil, fmt.Errorf("env: environment %d of a vector is %s with other names than the first, %s: want all alike", i, s.ID, spec.ID)
		}
	}
	n := len(envs)
	v := &Vector{
		envs: envs, spec: spec, options: options, seed: seed,
		episode: make([]uint64, n), actions: make([][]int32, n),
		running: make([]Episode, n), ended: make([]Episode, n),
		batch: Batch{
			Obs: make([]float64, n*spec.Observation.Len()), Mask: make([]bool, n*spec.Action.N()),
			Reward: make([]float64, n), Terminated: make([]bool, n), Truncated: make([]bool, n), Began: make([]bool, n),
			Ended: make([]*Episode, 0, n),
		},
	}
	for i := range n {
		for _, e := range []*Episode{&v.running[i], &v.ended[i]} {
			e.Env, e.Parts, e.Metrics = i, make([]float64, len(spec.Parts)), make([]float64, len(spec.Metrics))
		}
	}
	return v, nil
}

// Len returns how many environments there are.
func (v *Vector) Len() int { return len(v.envs) }

// Spec describes the environments.
func (v *Vector) Spec() *Spec { return v.spec }

// Started reports whether Reset, Step or Restore was called.
func (v *Vector) Started() bool { return v.started }

// Reset begins the first episode of every environment.
func (v *Vector) Reset() *Batch {
	v.started = true
	for i := range v.envs {
		v.episode[i] = 0
		v.begin(i)
	}
	v.batch.Ended = v.batch.Ended[:0]
	return &v.batch
}

// Current returns what the last step made, and begins where none was made.
func (v *Vector) Current() *Batch {
	if !v.started {
		return v.Reset()
	}
	return &v.batch
}

// Step takes an action in each environment; those whose episode is over begin
// the next one and take none.
func (v *Vector) Step(actions []int) *Batch {
	if len(actions) != v.Len() {
		panic(fmt.Sprintf("env: %d actions for %d environments", len(actions), v.Len()))
	}
	v.Current()
	v.batch.Ended = v.batch.Ended[:0]
	for i, a := range actions {
		if v.batch.Over(i) {
			v.episode[i]++
			v.begin(i)
		} else {
			v.act(i, a)
		}
	}
	return &v.batch
}

// begin begins the current episode of environment i.
func (v *Vector) begin(i int) {
	r := &v.running[i]
	r.Seed = EpisodeSeed(v.seed, i, v.episode[i])
	r.Return, r.Length = 0, 0
	clear(r.Parts)
	clear(r.Metrics)
	v.actions[i] = v.actions[i][:0]
	obs, info := v.envs[i].Reset(r.Seed, v.options)
	v.put(i, obs, info)
	b := &v.batch
	b.Reward[i], b.Terminated[i], b.Truncated[i], b.Began[i] = 0, false, false, true
}

// act takes an action in environment i.
func (v *Vector) act(i, action int) {
	v.actions[i] = append(v.actions[i], int32(action))
	obs, reward, terminated, truncated, info := v.envs[i].Step(action)
	v.put(i, obs, info)
	b, r := &v.batch, &v.running[i]
	b.Reward[i], b.Terminated[i], b.Truncated[i], b.Began[i] = reward, terminated, truncated, false
	r.Return += reward
	r.Length++
	for j, x := range info.Parts {
		r.Parts[j] += x
	}
	for j, x := range info.Metrics {
		r.Metrics[j] += x
	}
	if terminated || truncated {
		v.running[i], v.ended[i] = v.ended[i], v.running[i]
		b.Ended = append(b.Ended, &v.ended[i])
	}
}

// put copies what environment i returned into the batch.
func (v *Vector) put(i int, obs []float64, info Info) {
	d, n := v.spec.Observation.Len(), v.spec.Action.N()
	if len(obs) != d {
		panic(fmt.Sprintf("env: %s returned %d numbers: want %d", v.spec.ID, len(obs), d))
	}
	copy(v.batch.Obs[i*d:(i+1)*d], obs)
	mask := v.batch.Mask[i*n : (i+1)*n]
	if info.Mask == nil {
		for j := range mask {
			mask[j] = true
		}
		return
	}
	copy(mask, info.Mask)
}

// EpisodeSeed is the seed of an environment's episode (SplitMix64 over the three
// numbers: Steele, Lea & Flood, OOPSLA 2014).
func EpisodeSeed(seed uint64, env int, episode uint64) uint64 {
	return mix(mix(mix(seed)^uint64(env)) ^ episode)
}

func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// State is where a vector stands: which episode of each environment, and the
// actions taken in it. Together with the seed that is all, since environments are
// deterministic; but what an environment pays may have been changed from outside
// since, so that the sums are kept too.
type State struct {
	Seed    uint64
	Episode []uint64
	Actions [][]int32
	Sums    [][]float64 // of the episode: return, parts, metrics
}

// State returns where the vector stands; it shares no memory with it. Of one that
// was not started it is the zero State.
func (v *Vector) State() State {
	if !v.started {
		return State{}
	}
	s := State{Seed: v.seed, Episode: slices.Clone(v.episode), Actions: make([][]int32, v.Len()), Sums: make([][]float64, v.Len())}
	for i, a := range v.actions {
		e := &v.running[i]
		if v.batch.Over(i) {
			e = &v.ended[i]
		}
		s.Actions[i] = slices.Clone(a)
		s.Sums[i] = slices.Concat([]float64{e.Return}, e.Parts, e.Metrics)
	}
	return s
}

// Restore brings the vector to a state by taking the actions again, so that all
// that follows is as if it had never been left. The error says why a state is not
// one of these environments; the vector is then of no more use.
func (v *Vector) Restore(s State) error {
	if len(s.Episode) != v.Len() || len(s.Actions) != v.Len() || len(s.Sums) != v.Len() {
		return fmt.Errorf("env: a state of %d environments does not fit a vector of %d", len(s.Episode), v.Len())
	}
	v.started, v.seed = true, s.Seed
	v.batch.Ended = v.batch.Ended[:0]
	for i, actions := range s.Actions {
		v.episode[i] = s.Episode[i]
		v.begin(i)
		n := v.spec.Action.N()
		for k, a := range actions {
			if v.batch.Over(i) || !v.spec.Action.Contains(int(a)) || !v.batch.Mask[i*n+int(a)] {
				return fmt.Errorf("env: action %d of the episode that environment %d was in is not possible: the state is of other environments", k, i)
			}
			v.act(i, int(a))
		}
		e := &v.running[i]
		if len(s.Sums[i]) != 1+len(e.Parts)+len(e.Metrics) {
			return fmt.Errorf("env: %d sums of environment %d: want %d: the state is of other environments", len(s.Sums[i]), i, 1+len(e.Parts)+len(e.Metrics))
		}
		e.Return = s.Sums[i][0]
		copy(e.Metrics, s.Sums[i][1+copy(e.Parts, s.Sums[i][1:]):])
	}
	// What ended, ended before: it has been told.
	v.batch.Ended = v.batch.Ended[:0]
	return nil
}
