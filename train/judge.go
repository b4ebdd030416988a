package train

import (
	"context"
	"fmt"

	"farmhand/policy"
	"farmhand/policy/learned"
)

// measure finds out what the peer comes to on the work that decides in the end.
func (t *Trainer) measure(ctx context.Context) error {
	p, err := policy.New(t.cfg.Peer)
	if err != nil {
		return err
	}
	peer, err := t.trials.play(ctx, p, t.cfg.Final)
	if err != nil {
		return err
	}
	for _, c := range peer.Cases {
		if !(c.Workers > 0) { // its workers are the unit of cost
			return fmt.Errorf("train: Peer %s has no workers on %s: want a law that serves it", t.cfg.Peer, c.Scenario)
		}
	}
	t.peer = &peer
	return nil
}

// try lets a policy file scale farms, and tells what came of it.
func (t *Trainer) try(ctx context.Context, file []byte, seeds []uint64) (Point, error) {
	pupil, err := learned.Load(file)
	if err != nil {
		return Point{}, err
	}
	p, err := t.trials.play(ctx, pupil, seeds)
	if err != nil {
		return Point{}, err
	}
	t.judge(&p)
	return p, nil
}

// judge sums up what came of the scenarios.
func (t *Trainer) judge(p *Point) {
	for i := range p.Cases {
		c, cost, target := &p.Cases[i], p.Cases[i].Cost, t.cfg.Scenarios[i].Farm.Target
		counts := len(p.Cases) == 1 // of several, one may be out of reach
		if t.peer != nil {
			peer := &t.peer.Cases[i]
			c.Later = later(c.each, peer.each)
			cost = c.Workers / peer.Workers
			counts = peer.OnTime >= target
		}
		if counts {
			p.Missed += max(0, target-c.OnTime) / (1 - target)
		}
		late, allowed := t.lateness(i, c)
		p.Short += max(0, late-allowed) / t.aim(i)
		p.Cost += cost / float64(len(p.Cases))
	}
}

// later is by what share of the tasks a policy is later than another: the mean over all
// seeds, where being earlier with one makes up for nothing.
func later(onTime, others []float64) (sum float64) {
	for i, x := range onTime {
		sum += max(0, others[i]-x)
	}
	return sum / float64(len(onTime))
}

// lateness is the share of tasks that is late on a scenario, and how much of that is
// allowed; where there is a peer, beyond what that is late.
func (t *Trainer) lateness(scenario int, c *Case) (late, allowed float64) {
	if t.peer != nil {
		return c.Later, t.cfg.Tolerance
	}
	return 1 - c.OnTime, t.aim(scenario)
}

// aim is the share of late tasks that is aimed at: a little less than the target allows,
// as a policy will serve other work than it was chosen with.
func (t *Trainer) aim(scenario int) float64 {
	return (1 - t.cfg.Margin) * (1 - t.cfg.Scenarios[scenario].Farm.Target)
}
