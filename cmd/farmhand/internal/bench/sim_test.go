package bench

import (
	"context"
	"testing"
)

// A short run has all figures; it fails by itself where the farm on container/heap
// comes to other tasks done, or late.
func TestSim(t *testing.T) {
	r, err := Sim(context.Background(), SimConfig{Horizon: 200, Runs: 1, Seed: 3, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sim_events_per_s", "sim_full_events_per_s", "sim_draw_tasks_per_s", "sim_control_steps_per_s", "sim_vs_container_heap_ratio"} {
		if !(r.Figures[name] > 0) {
			t.Errorf("%s is %g", name, r.Figures[name])
		}
	}
	if n, ok := r.Figures["sim_allocs_per_event"]; !ok || n != 0 {
		t.Errorf("%g allocations per event", n)
	}
}
