package paper

import (
	"context"

	"farmhand/env/farmenv"
	"farmhand/evaluate"
)

// Seeds of the work: looks while learning, the choice in the end, and what is
// published. Learning draws its own (env.EpisodeSeed), none of which is below 2³².
const (
	lookSeed   = 1_000_000
	finalSeed  = 2_000_000
	unseenSeed = 3_000_000
)

// Score is what a policy comes to, in the mean over episodes.
type Score struct {
	OnTime  float64 `json:"on_time"` // share of tasks
	StepQoS float64 `json:"step_qos"`
	Workers float64 `json:"workers"`
	Actions float64 `json:"actions"` // an episode
}

// Result is what a policy came to in each episode.
type Result struct {
	OnTime, StepQoS, Workers, Actions []float64
}

// Score of the mean.
func (r *Result) Score() Score {
	return Score{mean(r.OnTime), mean(r.StepQoS), mean(r.Workers), mean(r.Actions)}
}

// Intervals are the means with their 95 % confidence intervals.
func (r *Result) Intervals() (onTime, workers, actions evaluate.Interval) {
	return evaluate.MeanOf(r.OnTime), evaluate.MeanOf(r.Workers), evaluate.MeanOf(r.Actions)
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// play lets act play episodes with the seeds from, from+1 ….
func play(ctx context.Context, e *farmenv.Paper, act func(obs []float64) int, from uint64, episodes int) (*Result, error) {
	r := &Result{}
	for k := range episodes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		obs, _ := e.Reset(from+uint64(k), nil)
		var sum [farmenv.MetricStepQoS + 1]float64
		steps := 0.0
		for over := false; !over; steps++ {
			next, _, terminated, truncated, info := e.Step(act(obs))
			for i, x := range info.Metrics {
				sum[i] += x
			}
			obs, over = next, terminated || truncated
		}
		r.OnTime = append(r.OnTime, 1-sum[farmenv.MetricLate]/sum[farmenv.MetricDecided])
		r.StepQoS = append(r.StepQoS, sum[farmenv.MetricStepQoS]/steps)
		r.Workers = append(r.Workers, sum[farmenv.MetricWorkers]/sum[farmenv.MetricSeconds])
		r.Actions = append(r.Actions, sum[farmenv.MetricActions])
	}
	return r, nil
}

// Measure a policy on episodes that no training has seen.
func Measure(ctx context.Context, p *Policy, episodes int) (*Result, error) {
	e, err := p.Case.Env(farmenv.Published)
	if err != nil {
		return nil, err
	}
	return play(ctx, e, p.Act, unseenSeed, episodes)
}
