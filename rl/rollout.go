package rl

import "farmhand/env"

// rollout is what a vector of environments did over a number of steps. Frame t of
// environment i is row t·envs + i. There is one frame more than steps: the last
// is where the environments stand now.
type rollout struct {
	steps, envs, width, actions int

	obs        []float64 // rows × width
	mask       []bool    // rows × actions
	terminated []bool    // the frame is the last of an episode, of value 0
	over       []bool    // the frame is the last of an episode: no action was taken there
	value      []float64 // V(frame)
	// of the action taken at the frame, without the last frames
	action  []int
	logProb []float64
	reward  []float64

	advantage []float64
	target    []float64 // of the value
	taken     []int     // rows where an action was taken
}

func newRollout(steps, envs int, spec *env.Spec) *rollout {
	r := &rollout{steps: steps, envs: envs, width: spec.Observation.Len(), actions: spec.Action.N()}
	n, frames := steps*envs, (steps+1)*envs
	r.obs, r.mask = make([]float64, frames*r.width), make([]bool, frames*r.actions)
	r.terminated, r.over, r.value = make([]bool, frames), make([]bool, frames), make([]float64, frames)
	r.action, r.logProb, r.reward = make([]int, n), make([]float64, n), make([]float64, n)
	r.advantage, r.target, r.taken = make([]float64, n), make([]float64, n), make([]int, 0, n)
	return r
}

// frame keeps frame t.
func (r *rollout) frame(t int, b *env.Batch) {
	row := t * r.envs
	copy(r.obs[row*r.width:], b.Obs)
	copy(r.mask[row*r.actions:], b.Mask)
	copy(r.terminated[row:], b.Terminated)
	for i := range r.envs {
		r.over[row+i] = b.Over(i)
	}
}

// advantages fills in advantage, target and taken, by generalised advantage
// estimation (Schulman et al., arXiv 1506.02438):
//
//	δ_t = r_t + γ·V(s_{t+1}) − V(s_t)
//	A_t = δ_t + γλ·A_{t+1},  target = A_t + V(s_t)
//
// V is 0 where an episode terminated. Where it was truncated, or the rollout
// ends, A goes no further, but V counts.
func (r *rollout) advantages(gamma, lambda float64) {
	r.taken = r.taken[:0]
	for i := range r.envs {
		after := 0.0 // A_{t+1}
		for t := r.steps - 1; t >= 0; t-- {
			row, next := t*r.envs+i, (t+1)*r.envs+i
			if r.over[row] {
				after = 0
				continue
			}
			delta := r.reward[row] - r.value[row]
			if !r.terminated[next] {
				delta += gamma * r.value[next]
			}
			if r.over[next] {
				after = 0
			}
			after = delta + gamma*lambda*after
			r.advantage[row], r.target[row] = after, after+r.value[row]
		}
	}
	for row := range r.action {
		if !r.over[row] {
			r.taken = append(r.taken, row)
		}
	}
}

// explained is the share of the targets' variance that the values explain: 1 is
// all of it, 0 no more than a constant does.
func (r *rollout) explained() float64 {
	var target, rest moments
	for _, row := range r.taken {
		target.see(r.target[row])
		rest.see(r.target[row] - r.value[row])
	}
	if target.variance() == 0 {
		return 0
	}
	return 1 - rest.variance()/target.variance()
}

// moments are of numbers seen (Welford 1962).
type moments struct{ n, mean, m2 float64 }

func (m *moments) see(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.m2 += d * (x - m.mean)
}

func (m *moments) variance() float64 { return m.m2 / max(1, m.n) }
