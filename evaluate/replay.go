package evaluate

import (
	"context"
	"fmt"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim"
)

// Replay is the policy.Estimator: it plays the past of a live farm again in the
// simulator, under another policy. The counts of tasks in each interval are those that
// were measured; when in the interval they came, how long each took, and how long
// replicas took to start is drawn from what was measured, a few times over.
//
// A simulated farm differs a little from the live one. Where two figures are to be
// compared, Actual gives the counterpart: what the counts that the live farm had come
// to in the very same model.
type Replay struct {
	Guard *guard.Settings // nil: no guard
	Seeds int             // draws; 0: three
	First uint64          // seed of the first draw
}

var _ policy.Estimator = (*Replay)(nil)

// Estimate implements policy.Estimator.
func (r *Replay) Estimate(ctx context.Context, past []policy.Observation, p policy.Policy) (policy.Estimate, error) {
	known, err := PastOf(past)
	if err != nil {
		return policy.Estimate{}, err
	}
	return r.Play(ctx, known, p)
}

// Play judges a policy on a past.
func (r *Replay) Play(ctx context.Context, past *Past, p policy.Policy) (policy.Estimate, error) {
	return r.play(ctx, past, sim.Driver{Policy: p, Guard: r.Guard})
}

// Actual is what the counts that the farm had come to.
func (r *Replay) Actual(ctx context.Context, past *Past) (policy.Estimate, error) {
	lead := r.lead(past)
	wanted := &planned{name: "as it was", interval: past.Farm.Interval}
	for at := 0.0; at < lead; at += past.Farm.Interval {
		wanted.counts = append(wanted.counts, past.Farm.Start)
	}
	end, i := 0.0, 0
	for at := 0.0; at < past.Seconds(); at += past.Farm.Interval {
		for i+1 < len(past.Bins) && end+past.Bins[i].Seconds <= at {
			end += past.Bins[i].Seconds
			i++
		}
		wanted.counts = append(wanted.counts, past.Bins[i].Wanted)
	}
	return r.play(ctx, past, sim.Driver{Policy: wanted})
}

// lead is how long the farm is steady before its past begins: one long window, after
// which the guard lets it shrink, and a whole number of intervals.
func (r *Replay) lead(past *Past) float64 {
	_, long := policy.Windows(past.Farm.Interval)
	n := 0.0
	for n < long+past.Farm.Interval {
		n += past.Farm.Interval
	}
	return n
}

func (r *Replay) play(ctx context.Context, past *Past, d sim.Driver) (sum policy.Estimate, err error) {
	seeds := r.Seeds
	if seeds == 0 {
		seeds = 3
	}
	lead := r.lead(past)
	scenario, late, decided := past.scenario(lead), 0, 0
	farm := farms.Get().(*sim.Sim)
	defer farms.Put(farm)
	for i := range uint64(seeds) {
		seed := r.First + i
		if err := farm.Reset(sim.Config{Scenario: scenario, Tasks: past.draw(lead, seed), Seed: seed}); err != nil {
			return sum, fmt.Errorf("evaluate: the past cannot be played: %w", err)
		}
		before, err := playFrom(ctx, farm, d, lead)
		if err != nil {
			return sum, err
		}
		end := farm.Result()
		n := float64(seeds)
		sum.Tasks += float64(end.Tasks-before.Tasks) / n
		sum.WorkerSeconds += (end.WorkerSeconds - before.WorkerSeconds) / n
		late, decided = late+end.Late-before.Late, decided+end.Decided-before.Decided
	}
	sum.Seconds, sum.OnTime = past.Seconds(), policy.Unknown
	if decided > 0 {
		sum.OnTime = policy.Maybe(1 - float64(late)/float64(decided))
	}
	return sum, nil
}

// playFrom plays a run to its end and returns what it had come to at an instant.
func playFrom(ctx context.Context, farm *sim.Sim, d sim.Driver, at float64) (before sim.Totals, err error) {
	pilot := sim.NewPilot(d)
	var o policy.Observation
	found := false
	for more := true; more; more = farm.Advance() {
		if err := ctx.Err(); err != nil {
			return before, err
		}
		if !found && farm.Now() >= at {
			before, found = farm.Totals(), true
		}
		farm.Observe(&o)
		step := pilot.Decide(&o, farm.Calling())
		if !step.Outcome.Hold {
			farm.Scale(step.Outcome.Replicas)
		}
	}
	return before, nil
}
