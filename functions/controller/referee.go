package main

import (
	"context"

	"farmhand/evaluate"
	"farmhand/policy"
	"farmhand/policy/guard"
)

// referee plays the past of farms again as evaluate.Replay does, each policy guarded
// as it is live.
type referee struct{}

// Estimate implements policy.Estimator.
func (referee) Estimate(ctx context.Context, past []policy.Observation, p policy.Policy) (policy.Estimate, error) {
	r := evaluate.Replay{Guard: &guard.Settings{}}
	return r.Estimate(ctx, past, p)
}

// Actual implements controller.Referee.
func (referee) Actual(ctx context.Context, past []policy.Observation) (policy.Estimate, error) {
	known, err := evaluate.PastOf(past)
	if err != nil {
		return policy.Estimate{}, err
	}
	return new(evaluate.Replay).Actual(ctx, known)
}
