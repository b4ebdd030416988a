package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// SimConfig of the simulator's benchmark.
type SimConfig struct {
	Horizon float64 // simulated seconds a run (3600)
	Runs    int
	Seed    uint64
	Log     func(format string, args ...any)
}

// Sim measures the simulator on one core, in processor time: others on the machine
// take little from it. An event is an arrival or a completion.
func Sim(ctx context.Context, c SimConfig) (*Report, error) {
	r := NewReport(c.Seed)
	b := &simBench{c: c, plain: plainFarm(c.Horizon), full: fullFarm(c.Horizon)}
	b.plainTasks = b.plain.Draw(c.Seed)
	b.fullTasks = fullTasks(b.full, c.Seed)
	var draw, plain, full, steps, ratio, allocs []float64
	for i := 0; i <= c.Runs; i++ { // the first is a warm-up: memory grows
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, err := b.once(ctx)
		if err != nil {
			return nil, err
		}
		c.Log("run %d of %d: plain %.1f M events/s, full %.1f M, %.0f k steps/s, %.1f × container/heap", i, c.Runs, v.plain/1e6, v.full/1e6, v.steps/1e3, v.ratio)
		if i == 0 {
			continue
		}
		draw, plain, full = append(draw, v.draw), append(plain, v.plain), append(full, v.full)
		steps, ratio, allocs = append(steps, v.steps), append(ratio, v.ratio), append(allocs, v.allocs)
	}
	r.Add("sim_draw_tasks_per_s", draw)
	r.Add("sim_events_per_s", plain)
	r.Add("sim_full_events_per_s", full)
	r.Add("sim_control_steps_per_s", steps)
	r.Add("sim_vs_container_heap_ratio", ratio)
	r.Add("sim_allocs_per_event", allocs)
	r.Note("allocations are counted as testing.B does, whole ones per event; there were %d in %d events, as histograms grow", b.mallocs, b.events)
	r.Note("per second of one core's time; the tasks are drawn before, at the rate of sim_draw_tasks_per_s")
	r.Note("the farm on container/heap measures waits and lateness alone, the simulator all that a live farm does")
	return r, nil
}

// plainFarm is a farm of ten replicas that stay, and 8 Erlangs.
func plainFarm(horizon float64) *workload.Scenario {
	return &workload.Scenario{Name: "plain", Horizon: horizon, Arrivals: workload.Poisson{Rate: 200}, Service: workload.LogNormalOf(0.04, 0.6),
		Farm: workload.Farm{Interval: 2, Deadline: 0.15, Target: 0.95, Slots: 1, Min: 1, Max: 64, Start: 10}}
}

// fullFarm has everything that can be simulated: replicas that come, go and crash,
// attempts that fail and meet busy replicas, answers that take time.
func fullFarm(horizon float64) *workload.Scenario {
	s := plainFarm(horizon)
	s.Name = "full"
	s.Farm.Slots, s.Farm.Attempts, s.Farm.Failing, s.Farm.Timeout, s.Farm.Start, s.Farm.Max = 2, 3, 0.01, 1, 30, 40
	s.Platform = workload.Platform{Startup: workload.LogNormal{Mu: 0.74, Sigma: 0.16}, Call: workload.Uniform{Max: 0.1}, Seen: workload.Uniform{Max: 1},
		Stop: workload.Uniform{Max: 1}, Answer: workload.Uniform{Max: 0.002}, Overhead: 0.001, Victim: workload.RandomVictim,
		Balance: workload.RandomReplica, Crashes: 1e-4}
	return s
}

// fullTasks are of three classes, eight tenants, and due at different times.
func fullTasks(s *workload.Scenario, seed uint64) *workload.Tasks {
	t := s.Draw(seed)
	r := workload.Stream(seed, workload.StreamBalance)
	for range t.At {
		t.Class = append(t.Class, uint8(r.IntN(3)))
		t.Tenant = append(t.Tenant, uint16(r.IntN(8)))
		t.Deadline = append(t.Deadline, 0.1+0.1*r.Float64())
	}
	return t
}

type simBench struct {
	c                     SimConfig
	plain, full           *workload.Scenario
	plainTasks, fullTasks *workload.Tasks
	s                     sim.Sim
	o                     policy.Observation
	mallocs               uint64
	events                int
}

// simFigures are those of one run.
type simFigures struct{ draw, plain, full, steps, ratio, allocs float64 }

func (b *simBench) once(ctx context.Context) (v simFigures, err error) {
	d := spent(func() { b.plain.Draw(b.c.Seed) })
	v.draw = float64(len(b.plainTasks.At)) / d

	if err := b.s.Reset(sim.Config{Scenario: b.plain, Tasks: b.plainTasks, Seed: b.c.Seed}); err != nil {
		return v, err
	}
	var mallocs uint64
	ours := spent(func() {
		mallocs -= mallocated()
		for b.s.Advance() {
		}
		mallocs += mallocated()
	})
	r := b.s.Result()
	v.plain = float64(r.Events) / ours
	events := r.Events

	var naive heapFarm
	theirs := spent(func() { naive = runHeapFarm(b.plainTasks, b.plain.Farm.Start, b.plain.Farm.Deadline) })
	if naive.done != r.Done || naive.late != r.Late-r.Unfinished {
		return v, fmt.Errorf("bench: the simulator did %d tasks, %d of them late; the farm on container/heap %d and %d", r.Done, r.Late-r.Unfinished, naive.done, naive.late)
	}
	v.ratio = theirs / ours

	if err := b.s.Reset(sim.Config{Scenario: b.full, Tasks: b.fullTasks, Seed: b.c.Seed}); err != nil {
		return v, err
	}
	took := spent(func() {
		mallocs -= mallocated()
		for k := 0; ; k++ {
			b.s.Observe(&b.o)
			b.s.Scale(30 + k/5*7%11)
			if !b.s.Advance() {
				break
			}
		}
		mallocs += mallocated()
	})
	r = b.s.Result()
	v.full = float64(r.Events) / took
	b.mallocs, b.events = b.mallocs+mallocs, b.events+events+r.Events
	v.allocs = float64(mallocs / uint64(events+r.Events))

	v.steps, err = b.steps(ctx)
	return v, err
}

// steps is how many decisions a second are observed, decided by the default law
// and its guard, and played, at 200 arrivals a step.
func (b *simBench) steps(ctx context.Context) (float64, error) {
	law, err := policy.New("staffing")
	if err != nil {
		return 0, err
	}
	sc := *b.plain
	sc.Farm.Interval = 1
	sc.Platform = workload.Platform{Startup: workload.LogNormal{Mu: 0.74, Sigma: 0.16}, Seen: workload.Uniform{Max: 1}}
	if err := b.s.Reset(sim.Config{Scenario: &sc, Tasks: b.plainTasks, Seed: b.c.Seed}); err != nil {
		return 0, err
	}
	steps := 0
	took := spent(func() {
		_, err = b.s.Play(ctx, sim.Driver{Policy: law, Guard: &guard.Settings{}, Step: func(*sim.Step) { steps++ }})
	})
	return float64(steps) / took, err
}

// spent is the processor time that fn takes, in seconds, without the garbage of
// what was before.
func spent(fn func()) float64 {
	runtime.GC()
	before := processor()
	fn()
	return max(processor()-before, time.Microsecond).Seconds()
}

func mallocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
