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
	p.Short, p.Missed, p.Cost = 0, 0, 0
	for i, c := range p.Cases {
		target, cost := t.cfg.Scenarios[i].Farm.Target, c.Cost
		p.Short += max(0, t.aim(i)-c.OnTime) / (1 - t.aim(i))
		counts := len(p.Cases) == 1 // of several, one may be out of reach
		if t.peer != nil {
			cost = c.Workers / t.peer.Cases[i].Workers
			counts = t.peer.Cases[i].OnTime >= target
		}
		if counts {
			p.Missed += max(0, target-c.OnTime) / (1 - target)
		}
		p.Cost += cost / float64(len(p.Cases))
	}
}

// aim is the share on time that a policy should have on a scenario: a little more than
// the target, as it will serve other work than it was chosen with, and hardly less than
// the peer has.
func (t *Trainer) aim(scenario int) float64 {
	target := t.cfg.Scenarios[scenario].Farm.Target
	aim := target + t.cfg.Margin*(1-target)
	if t.peer != nil {
		aim = max(aim, min(t.peer.Cases[scenario].OnTime-t.cfg.Tolerance, mostOnTime))
	}
	return aim
}

// mostOnTime is the share on time that is aimed at at most because of a peer: one that is
// never late is none to divide by.
const mostOnTime = 0.9999
