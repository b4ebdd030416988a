package rl_test

import (
	"context"
	"math"
	"testing"

	"farmhand/rl"
)

// A build for another processor, or without kernels, learns the same to 10⁻⁹ in a few
// thousand steps (P83). Only fused multiplications, which round once where others round
// twice, may differ. Run it with GOAMD64=v3, with -tags noasm and on arm64 too.
func TestBuildsAgree(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() (rl.Learner, error)
		want float64 // sum of the magnitudes of the weights, as learned on amd64
	}{
		{"dqn", func() (rl.Learner, error) { return rl.NewDQN(queueDQN(1), queue().Spec()) }, 291.2352971417198},
		{"ppo", func() (rl.Learner, error) {
			p := rl.PPO()
			p.Seed, p.Rollout, p.Hidden = 1, 256, []int{16}
			return rl.NewPG(p, queue().Spec())
		}, 16.686034409697982},
	} {
		l := must(c.make())
		if err := l.Learn(context.Background(), vector(t, 1, 3, queue), short); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, layer := range l.(interface{ Network() rl.Network }).Network().Layers {
			for _, w := range append(layer.Weight, layer.Bias...) {
				sum += math.Abs(w)
			}
		}
		if math.Abs(sum-c.want) > 1e-9*c.want {
			t.Errorf("%s: the weights sum up to %.17g: want %.17g", c.name, sum, c.want)
		}
	}
}
