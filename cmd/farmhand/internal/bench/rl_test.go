package bench

import (
	"context"
	"testing"
)

// A short run has all figures.
func TestRL(t *testing.T) {
	r, err := RL(context.Background(), RLConfig{Steps: 2100, Runs: 1, Seed: 3, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dqn_env_steps_per_s", "ppo_env_steps_per_s", "env_alone_steps_per_s", "inference_ns", "gonum_gemm_gflops"} {
		if !(r.Figures[name] > 0) {
			t.Errorf("%s is %g", name, r.Figures[name])
		}
	}
	if n, ok := r.Figures["inference_allocs"]; !ok || n != 0 {
		t.Errorf("%g allocations a decision", n)
	}
}
