package envtest

import (
	"math"
	"math/rand/v2"

	"farmhand/env"
)

// The queue: at most maxQueue tasks wait for 1 … maxReplicas replicas. In a slot
// of time each replica finishes its task with probability finish; then 0 to 2
// tasks arrive, more in a busy phase than in a quiet one. Replicas that are added
// cost something once, all of them cost something each slot, and so does waiting.
const (
	maxQueue    = 8
	maxReplicas = 4
	finish      = 0.6
	switches    = 0.08 // probability that the phase changes after a slot
	slots       = 100  // of an episode, which is then truncated
)

var (
	arrivals = [2][3]float64{{0.75, 0.25, 0}, {0.1, 0.3, 0.6}}
	// what a waiting task, a replica, a change, and a task that finds the queue
	// full cost
	waitCost, replicaCost, changeCost, fullCost = 0.25, 0.4, 0.3, 3.0
)

// QueueState is a state of the queue.
type QueueState struct{ Phase, Waiting, Replicas int }

// QueueStates are all of them.
func QueueStates() (all []QueueState) {
	for phase := range 2 {
		for waiting := range maxQueue + 1 {
			for replicas := range maxReplicas {
				all = append(all, QueueState{phase, waiting, replicas + 1})
			}
		}
	}
	return all
}

// Obs is the state as Queue shows it.
func (s QueueState) Obs() []float64 {
	return []float64{float64(s.Phase), float64(s.Waiting), float64(s.Replicas)}
}

// Mask tells what is allowed: one replica less, as many, one more.
func (s QueueState) Mask() []bool { return []bool{s.Replicas > 1, true, s.Replicas < maxReplicas} }

// index is the state's place in QueueStates.
func (s QueueState) index() int {
	return (s.Phase*(maxQueue+1)+s.Waiting)*maxReplicas + s.Replicas - 1
}

// outcome is what follows a state and an action: next states with probabilities,
// and the parts of the reward.
func (s QueueState) outcome(action int, f func(p float64, next QueueState, parts [4]float64)) {
	c := s.Replicas + action - 1
	busy := min(s.Waiting, c)
	for done := range busy + 1 {
		p := binomial(busy, done) * math.Pow(finish, float64(done)) * math.Pow(1-finish, float64(busy-done))
		for come, q := range arrivals[s.Phase] {
			waiting := s.Waiting - done + come
			full := max(0, waiting-maxQueue)
			waiting -= full
			parts := [4]float64{
				-waitCost * float64(waiting), -replicaCost * float64(c),
				-changeCost * math.Abs(float64(action-1)), -fullCost * float64(full),
			}
			f(p*q*(1-switches), QueueState{s.Phase, waiting, c}, parts)
			f(p*q*switches, QueueState{1 - s.Phase, waiting, c}, parts)
		}
	}
}

func binomial(n, k int) float64 {
	b := 1.0
	for i := range k {
		b *= float64(n-i) / float64(i+1)
	}
	return b
}

// Queue is the queue as an environment. Episodes begin in any state.
type Queue struct {
	spec    env.Spec
	rng     *rand.Rand
	pcg     rand.PCG
	state   QueueState
	slot    int
	obs     []float64
	mask    []bool
	parts   []float64
	metrics []float64
}

// NewQueue makes one.
func NewQueue() *Queue {
	e := &Queue{obs: make([]float64, 3), mask: make([]bool, 3), parts: make([]float64, 4), metrics: make([]float64, 1)}
	e.rng = rand.New(&e.pcg)
	e.spec = env.Spec{
		ID: "Queue-v0",
		Observation: env.Box{
			Names: []string{"phase", "waiting", "replicas"},
			Low:   []float64{0, 0, 1}, High: []float64{1, maxQueue, maxReplicas},
		},
		Action:  env.Discrete{Names: []string{"-1", "0", "+1"}},
		Parts:   []string{"waiting", "replicas", "change", "full"},
		Metrics: []string{"replica_slots"},
	}
	return e
}

// Spec is of env.Env.
func (e *Queue) Spec() *env.Spec { return &e.spec }

// Reset is of env.Env.
func (e *Queue) Reset(seed uint64, options env.Options) ([]float64, env.Info) {
	mustFit(&e.spec, options)
	e.pcg.Seed(seed, 0)
	e.slot = 0
	e.state = QueueState{e.rng.IntN(2), e.rng.IntN(maxQueue + 1), 1 + e.rng.IntN(maxReplicas)}
	return e.look(), env.Info{Mask: e.mask}
}

// Step is of env.Env.
func (e *Queue) Step(action int) ([]float64, float64, bool, bool, env.Info) {
	mustAllow(&e.spec, e.mask, action)
	u, reward, next := e.rng.Float64(), 0.0, e.state
	e.state.outcome(action, func(p float64, s QueueState, parts [4]float64) {
		if u >= 0 && p > 0 {
			next = s
			copy(e.parts, parts[:])
		}
		u -= p
	})
	for _, p := range e.parts {
		reward += p
	}
	e.state = next
	e.metrics[0] = float64(next.Replicas)
	e.slot++
	return e.look(), reward, false, e.slot == slots, env.Info{Mask: e.mask, Parts: e.parts, Metrics: e.metrics}
}

func (e *Queue) look() []float64 {
	copy(e.obs, e.state.Obs())
	copy(e.mask, e.state.Mask())
	return e.obs
}

// QueuePolicy chooses an action in a state.
type QueuePolicy func(QueueState) int

// QueueBest is the best policy for a discount, and its value: that of the states,
// averaged (dynamic programming by value iteration).
func QueueBest(gamma float64) (QueuePolicy, float64) {
	states := QueueStates()
	best := make([]int, len(states))
	v := iterate(gamma, func(s QueueState, q func(int) float64) float64 {
		top := math.Inf(-1)
		for a, ok := range s.Mask() {
			if ok && q(a) > top {
				top, best[s.index()] = q(a), a
			}
		}
		return top
	})
	return func(s QueueState) int { return best[s.index()] }, v
}

// QueueValue is the value of a policy, as QueueBest's: exact, not sampled.
func QueueValue(gamma float64, policy QueuePolicy) float64 {
	return iterate(gamma, func(s QueueState, q func(int) float64) float64 { return q(policy(s)) })
}

// iterate applies a Bellman operator, given as the value of a state by the values
// of its actions, until nothing changes, and averages over the states.
func iterate(gamma float64, value func(s QueueState, q func(action int) float64) float64) float64 {
	states := QueueStates()
	v, w := make([]float64, len(states)), make([]float64, len(states))
	for change := 1.0; change > 1e-9; v, w = w, v {
		change = 0
		for i, s := range states {
			w[i] = value(s, func(action int) (sum float64) {
				s.outcome(action, func(p float64, next QueueState, parts [4]float64) {
					sum += p * (parts[0] + parts[1] + parts[2] + parts[3] + gamma*v[next.index()])
				})
				return sum
			})
			change = max(change, math.Abs(w[i]-v[i]))
		}
	}
	mean := 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	return mean
}
