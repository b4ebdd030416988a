package envtest

import (
	"math"
	"math/rand/v2"
	"testing"

	"farmhand/env"
)

func TestEnvironments(t *testing.T) {
	t.Run("identity", func(t *testing.T) { Check(t, func() env.Env { return NewIdentity(4, 6, 20) }) })
	t.Run("queue", func(t *testing.T) { Check(t, func() env.Env { return NewQueue() }) })
}

// A policy that never changes anything, one that looks at the queue alone, and one
// that is best for the next slot are all far from the best: a learner that comes
// close to it has learned something.
func TestTheBestIsNotEasy(t *testing.T) {
	const gamma = 0.95
	best, top := QueueBest(gamma)
	if v := QueueValue(gamma, best); math.Abs(v-top) > 1e-6 {
		t.Errorf("the best policy has value %g, not %g", v, top)
	}
	to := func(c int) QueuePolicy {
		return func(s QueueState) int { return 1 + max(-1, min(1, c-s.Replicas)) }
	}
	for name, p := range map[string]QueuePolicy{
		"hold": func(QueueState) int { return 1 }, "1": to(1), "2": to(2), "3": to(3), "4": to(4),
		"queue": func(s QueueState) int { return to(max(1, min(4, (s.Waiting+1)/2)))(s) },
	} {
		if gap := (top - QueueValue(gamma, p)) / math.Abs(top); gap < 0.04 {
			t.Errorf("%s is only %.1f %% from the best", name, 100*gap)
		} else {
			t.Logf("%s: %.1f %% from the best", name, 100*gap)
		}
	}
}

// The environment draws what the model says.
func TestQueueFollowsItsModel(t *testing.T) {
	const gamma, episodes = 0.9, 4000 // 0.9^100 is nothing
	best, top := QueueBest(gamma)
	e, sum, squares := NewQueue(), 0.0, 0.0
	rng := rand.New(rand.NewPCG(1, 1))
	for range episodes {
		e.Reset(rng.Uint64(), nil)
		total, discount := 0.0, 1.0
		for range slots {
			_, r, _, _, _ := e.Step(best(e.state))
			total += discount * r
			discount *= gamma
		}
		sum += total
		squares += total * total
	}
	mean := sum / episodes
	sd := math.Sqrt((squares/episodes - mean*mean) / episodes)
	if math.Abs(mean-top) > 4*sd {
		t.Errorf("mean return %.3f ± %.3f: want %.3f", mean, sd, top)
	}
}
