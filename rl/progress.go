package rl

import (
	"farmhand/env"
	"farmhand/internal/checkpoint"
)

// window is over how many of the last episodes means are told.
const window = 100

// progress counts steps and episodes, and remembers the last of these.
type progress struct {
	names    []string // of what is remembered of an episode
	steps    int      // of environments, without those that only begin an episode
	episodes int      // ended
	last     []float64
}

func newProgress(spec *env.Spec) progress {
	p := progress{names: []string{"rollout/ep_rew_mean", "rollout/ep_len_mean"}}
	for _, names := range [][]string{spec.Parts, spec.Metrics} {
		for _, name := range names {
			p.names = append(p.names, "rollout/ep_"+name+"_mean")
		}
	}
	p.last = make([]float64, window*len(p.names))
	return p
}

// see counts a step of all environments, and returns how many of them took an
// action.
func (p *progress) see(b *env.Batch) (steps int) {
	for _, began := range b.Began {
		if !began {
			steps++
		}
	}
	p.steps += steps
	for _, e := range b.Ended {
		k := len(p.names)
		row := p.last[p.episodes%window*k:][:k]
		row[0], row[1] = e.Return, float64(e.Length)
		copy(row[2+copy(row[2:], e.Parts):], e.Metrics)
		p.episodes++
	}
	return steps
}

// report writes the means over the last episodes.
func (p *progress) report(values map[string]float64) {
	values["time/total_timesteps"] = float64(p.steps)
	values["time/episodes"] = float64(p.episodes)
	n, k := min(p.episodes, window), len(p.names)
	if n == 0 {
		return
	}
	for j, name := range p.names {
		sum := 0.0
		for i := range n {
			sum += p.last[i*k+j]
		}
		values[name] = sum / float64(n)
	}
}

func (p *progress) state(c *checkpoint.Codec) {
	c.Int("progress/steps", &p.steps, 1<<62)
	c.Int("progress/episodes", &p.episodes, 1<<62)
	c.Floats("progress/last", p.last)
}
