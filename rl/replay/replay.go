// Package replay remembers what environments did, for learners that learn from it
// later.
package replay

import (
	"fmt"
	"math/rand/v2"

	"farmhand/env"
	"farmhand/internal/checkpoint"
)

// MaxActions is how many actions an environment may have: a mask is kept in one
// word.
const MaxActions = 64

// Ring holds the last frames of a vector of environments: what each showed at an
// instant, what was then done, and the reward with which it arrived there. An
// observation is kept once, as float32, and returns over n steps are made when
// they are asked for.
//
// Times go round: frame t of environment i stands at (t mod length)·envs + i.
type Ring struct {
	envs, width, actions, length int

	n      int // frames of each environment ever put in
	obs    []float32
	masks  []uint64
	reward []float64
	action []uint8
	kind   []kind
}

// kind says how a frame came about.
type kind uint8

const (
	step       kind = iota
	first           // of an episode: nothing leads to it
	terminated      // the last of an episode, of value 0
	truncated       // the last of an episode
)

// New returns an empty ring for as many frames in all as capacity says, rounded
// down to a multiple of envs.
func New(capacity, envs int, spec *env.Spec) (*Ring, error) {
	r := &Ring{envs: envs, width: spec.Observation.Len(), actions: spec.Action.N(), length: capacity / envs}
	if r.actions > MaxActions {
		return nil, fmt.Errorf("replay: %s has %d actions: want at most %d", spec.ID, r.actions, MaxActions)
	}
	if r.length < 2 {
		return nil, fmt.Errorf("replay: a capacity of %d for %d environments: want at least 2 for each", capacity, envs)
	}
	frames := r.length * envs
	r.obs, r.masks, r.reward = make([]float32, frames*r.width), make([]uint64, frames), make([]float64, frames)
	r.action, r.kind = make([]uint8, frames), make([]kind, frames)
	return r, nil
}

// Len returns how many frames there are.
func (r *Ring) Len() int { return min(r.n, r.length) * r.envs }

// Envs returns of how many environments.
func (r *Ring) Envs() int { return r.envs }

// Start puts in the frames where environments stand, before an action is taken.
// What was put in before is not connected with them.
func (r *Ring) Start(b *env.Batch) { r.put(b, true, b.Reward) }

// Put puts in the frames that the actions, taken at the frames before, led to,
// and the rewards.
func (r *Ring) Put(actions []int, b *env.Batch, rewards []float64) {
	last := (r.n - 1) % r.length * r.envs
	for i, a := range actions {
		r.action[last+i] = uint8(a)
	}
	r.put(b, false, rewards)
}

func (r *Ring) put(b *env.Batch, start bool, rewards []float64) {
	at := r.n % r.length * r.envs
	for i, x := range b.Obs {
		r.obs[at*r.width+i] = float32(x)
	}
	copy(r.reward[at:at+r.envs], rewards)
	for i := range r.envs {
		r.masks[at+i] = pack(b.Mask[i*r.actions : (i+1)*r.actions])
		switch {
		case b.Began[i] || start:
			r.kind[at+i] = first
		case b.Terminated[i]:
			r.kind[at+i] = terminated
		case b.Truncated[i]:
			r.kind[at+i] = truncated
		default:
			r.kind[at+i] = step
		}
	}
	r.n++
}

// Transitions are what Sample draws, row by row. Of a state s, an action a, and k
// steps after it (at most n, fewer where the episode or what is remembered ends):
type Transitions struct {
	Obs      []float64 // s
	Mask     []bool    // what s allowed
	Action   []int     // a
	Return   []float64 // r₁ + γ·r₂ + … + γᵏ⁻¹·r_k
	Next     []float64 // the state after k steps
	NextMask []bool
	Discount []float64 // γᵏ, of the value of Next; 0 where the episode terminated there
}

// NewTransitions makes room for a number of rows.
func (r *Ring) NewTransitions(rows int) *Transitions {
	return &Transitions{
		Obs: make([]float64, rows*r.width), Mask: make([]bool, rows*r.actions), Action: make([]int, rows),
		Return: make([]float64, rows), Next: make([]float64, rows*r.width), NextMask: make([]bool, rows*r.actions),
		Discount: make([]float64, rows),
	}
}

// Sample fills to with transitions over at most n steps, each as likely as any
// other, and reports whether there are any to draw from.
func (r *Ring) Sample(rng *rand.Rand, n int, gamma float64, to *Transitions) bool {
	oldest := max(0, r.n-r.length)
	if !r.any(oldest) {
		return false
	}
	for row := range to.Action {
		for {
			t, i := oldest+rng.IntN(r.n-1-oldest), rng.IntN(r.envs)
			if r.leads(t, i) {
				r.fill(t, i, n, gamma, row, to)
				break
			}
		}
	}
	return true
}

// any reports whether there is a transition.
func (r *Ring) any(oldest int) bool {
	for t := r.n - 2; t >= oldest; t-- {
		for i := range r.envs {
			if r.leads(t, i) {
				return true
			}
		}
	}
	return false
}

func (r *Ring) at(t, i int) int { return t%r.length*r.envs + i }

// leads reports whether an action was taken at frame t of environment i.
func (r *Ring) leads(t, i int) bool { return t+1 < r.n && r.kind[r.at(t+1, i)] != first }

func (r *Ring) fill(t, i, n int, gamma float64, row int, to *Transitions) {
	at := r.at(t, i)
	r.show(at, row, to.Obs, to.Mask)
	to.Action[row] = int(r.action[at])
	sum, discount := 0.0, 1.0
	for k := 0; k < n && r.leads(t+k, i); k++ {
		at = r.at(t+k+1, i)
		sum += discount * r.reward[at]
		discount *= gamma
	}
	if r.kind[at] == terminated {
		discount = 0
	}
	to.Return[row], to.Discount[row] = sum, discount
	r.show(at, row, to.Next, to.NextMask)
}

// show writes a frame's observation and mask into a row.
func (r *Ring) show(at, row int, obs []float64, mask []bool) {
	out := obs[row*r.width : (row+1)*r.width]
	for j, x := range r.obs[at*r.width : (at+1)*r.width] {
		out[j] = float64(x)
	}
	for j := range r.actions {
		mask[row*r.actions+j] = r.masks[at]>>j&1 == 1
	}
}

func pack(mask []bool) (bits uint64) {
	for j, ok := range mask {
		if ok {
			bits |= 1 << j
		}
	}
	return bits
}

// State visits the ring for a checkpoint.
func (r *Ring) State(c *checkpoint.Codec) {
	c.Int("replay/n", &r.n, 1<<62)
	frames := r.Len()
	checkpoint.Numbers(c, "replay/obs", r.obs[:frames*r.width])
	checkpoint.Numbers(c, "replay/mask", r.masks[:frames])
	c.Floats("replay/reward", r.reward[:frames])
	checkpoint.Numbers(c, "replay/action", r.action[:frames])
	checkpoint.Numbers(c, "replay/kind", r.kind[:frames])
}
