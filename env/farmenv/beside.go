package farmenv

import (
	"context"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim"
)

// beside is what another law comes to on the work of an episode.
type beside struct {
	law    policy.Policy
	sim    sim.Sim
	totals []sim.Totals // at each decision, and at the end
	step   int
}

// play lets the law scale the farm to the horizon, as a live controller does.
func (b *beside) play(cfg sim.Config) error {
	if err := b.sim.Reset(cfg); err != nil {
		return err
	}
	b.totals, b.step = b.totals[:0], 0
	keep := func(*sim.Step) { b.totals = append(b.totals, b.sim.Totals()) }
	_, err := b.sim.Play(context.Background(), sim.Driver{Policy: b.law, Guard: &guard.Settings{}, Step: keep})
	keep(nil)
	return err
}

// next is what the next step comes to: tasks that are late, and worker-seconds.
func (b *beside) next() (late, workers float64) {
	was, now := &b.totals[b.step], &b.totals[b.step+1]
	b.step++
	return float64(now.Late - was.Late), now.WorkerSeconds - was.WorkerSeconds
}

// workers are those of the episode: the mean.
func (b *beside) workers() float64 {
	first, last := &b.totals[0], &b.totals[len(b.totals)-1]
	return (last.WorkerSeconds - first.WorkerSeconds) / (last.At - first.At)
}
