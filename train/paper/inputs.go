package paper

import (
	"math"
	"slices"

	"farmhand/env"
	"farmhand/env/farmenv"
)

// Where the published observation has the tasks that wait, and those that are done.
const (
	workerQ = 1
	outputQ = 3
)

// logNames are the numbers that follow the published nine where logarithms are shown.
var logNames = []string{"log_worker_q", "log_output_q"}

// withLogs is an observation followed by ln(1 + worker_q/4) and ln(1 + output_q/8), so
// that a network can tell apart few tasks from fewer: of 1,140 the first minute does
// ninety, and a farm must grow in it. It tells nothing new. The memory of to is used.
func withLogs(to, obs []float64) []float64 {
	return append(append(to[:0], obs...), logs(obs)...)
}

func logs(obs []float64) []float64 {
	return []float64{math.Log1p(obs[workerQ] / 4), math.Log1p(obs[outputQ] / 8)}
}

// logged is the environment with logarithms.
type logged struct {
	*farmenv.Paper
	spec env.Spec
	obs  []float64
}

// withInputs is what a learner plays, with logarithms or as published.
func withInputs(p *farmenv.Paper, show bool) env.Env {
	if !show {
		return p
	}
	l := &logged{Paper: p, spec: *p.Spec()}
	b := &l.spec.Observation
	b.Names, b.Low, b.High = slices.Concat(b.Names, logNames), slices.Concat(b.Low, logs(b.Low)), slices.Concat(b.High, logs(b.High))
	return l
}

// Spec implements env.Env.
func (l *logged) Spec() *env.Spec { return &l.spec }

// Reset implements env.Env.
func (l *logged) Reset(seed uint64, options env.Options) ([]float64, env.Info) {
	obs, info := l.Paper.Reset(seed, options)
	l.obs = withLogs(l.obs, obs)
	return l.obs, info
}

// Step implements env.Env.
func (l *logged) Step(action int) (obs []float64, reward float64, terminated, truncated bool, info env.Info) {
	obs, reward, terminated, truncated, info = l.Paper.Step(action)
	l.obs = withLogs(l.obs, obs)
	return l.obs, reward, terminated, truncated, info
}
