package rl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"farmhand/env"
	"farmhand/internal/checkpoint"
)

// SARSAConfig are the settings of SARSA(λ). Symbols are those of Sutton & Barto,
// Reinforcement Learning, 2nd edition, chapters 6 and 12.
type SARSAConfig struct {
	// Bins are the edges at which an observation's number is cut, by its name, in
	// rising order: k edges make k+1 bins. A number without edges is not looked at.
	Bins map[string][]float64

	Alpha  float64 // α: step size
	Gamma  float64 // γ: what a reward is worth a step later
	Lambda float64 // λ: decay of the traces
	// AlphaEnd, if not 0, is what α falls to: after k episodes it is
	// max(AlphaEnd, Alpha·AlphaDecayᵏ).
	AlphaEnd, AlphaDecay float64

	// ε after k episodes is max(EpsilonEnd, EpsilonStart·EpsilonDecayᵏ).
	EpsilonStart, EpsilonEnd, EpsilonDecay float64

	TraceMin float64 // traces below it are forgotten

	// BootstrapAtEnd counts γ·Q(s',a') also where an episode terminated, which is
	// wrong but published.
	BootstrapAtEnd bool

	LogEpisodes int // how many episodes end between two calls of Log

	Seed uint64
}

// PaperSARSA has the bins and settings published for the farm (arXiv 2602.06555
// and its code, from its second training run on).
func PaperSARSA() SARSAConfig {
	return SARSAConfig{
		Bins: map[string][]float64{
			"input_q":      {0.5, 1.5, 2.5},
			"worker_q":     {0.5, 2.5, 5.5, 9.5, 15.5, 30.5},
			"workers":      {3.5, 7.5, 11.5, 12.5, 16.5, 20.5, 24.5},
			"avg_time":     {0.5, 1, 2, 4, 8, 16, 32},
			"arrival_rate": {0.15, 0.5, 1.5, 3.5},
			"qos_rate":     {0.5, 0.8, 0.9, 0.95, 0.999},
		},
		Alpha: 0.025, Gamma: 0.985, Lambda: 0.5,
		EpsilonStart: 0.4, EpsilonEnd: 0.1, EpsilonDecay: 0.995,
		TraceMin: 1e-5, BootstrapAtEnd: true, LogEpisodes: 4,
	}
}

// Validate names the settings that no learner can have.
func (c *SARSAConfig) Validate() error {
	err := check(
		limits{"Alpha", c.Alpha, 1e-9, 1, "a step size"},
		limits{"Gamma", c.Gamma, 0, 1, "a discount per step"},
		limits{"Lambda", c.Lambda, 0, 1, "a decay per step"},
		limits{"AlphaEnd", c.AlphaEnd, 0, 1, "a step size"},
		limits{"AlphaDecay", c.AlphaDecay, 0, 1, "a factor"},
		limits{"EpsilonStart", c.EpsilonStart, 0, 1, "a probability"},
		limits{"EpsilonEnd", c.EpsilonEnd, 0, 1, "a probability"},
		limits{"EpsilonDecay", c.EpsilonDecay, 0, 1, "a factor"},
		limits{"TraceMin", c.TraceMin, 1e-12, 1, "a trace"},
		limits{"LogEpisodes", float64(c.LogEpisodes), 1, 1e9, "a number of episodes"},
	)
	if len(c.Bins) == 0 {
		err = errors.Join(err, errors.New("rl: Bins is empty: want edges for at least one number of the observation"))
	}
	for name, edges := range c.Bins {
		for i, e := range edges {
			if math.IsNaN(e) || i > 0 && !(edges[i-1] < e) {
				err = errors.Join(err, fmt.Errorf("rl: Bins of %s are %v: want rising edges", name, edges))
				break
			}
		}
	}
	return err
}

// SARSA learns a table of values of actions.
type SARSA struct {
	base
	cfg   SARSAConfig
	table Table          // Q; cells in the order they were met
	rows  map[uint64]int // of the cells in the table
	at    []sarsaAt      // where each environment stands
	told  int            // episodes at the last call of Log

	actions []int
}

// sarsaAt is the state of an episode under way.
type sarsaAt struct {
	cell   int // -1: no action was taken yet
	action int
	traces []trace
}

// trace is how much a value of the table is to blame for what happens now.
type trace struct {
	index int // in the table's values
	e     float64
}

// NewSARSA makes a learner for an environment. The error names settings that do
// not do.
func NewSARSA(cfg SARSAConfig, spec *env.Spec) (*SARSA, error) {
	if err := errors.Join(cfg.Validate(), spec.Validate()); err != nil {
		return nil, err
	}
	l := &SARSA{base: newBase(spec, cfg.Seed), cfg: cfg, rows: map[uint64]int{}, table: Table{Edges: make([][]float64, spec.Observation.Len())}}
	l.rng = rand.New(&l.pcg)
	size := 1.0
	for name, edges := range cfg.Bins {
		j := slices.Index(spec.Observation.Names, name)
		if j < 0 {
			return nil, fmt.Errorf("rl: Bins has %s, which %s does not show: want some of %v", name, spec.ID, spec.Observation.Names)
		}
		l.table.Edges[j] = edges
		size *= float64(len(edges) + 1)
	}
	if size > 1<<60 {
		return nil, fmt.Errorf("rl: Bins make %g cells: want fewer edges", size)
	}
	return l, nil
}

// Learn is of Learner. An update boundary is after each step of the environments.
//
// It is the on-line algorithm with accumulating traces: after each step
//
//	δ = r + γ·Q(s',a') − Q(s,a),  e(s,a) ← e(s,a) + 1
//	Q ← Q + α·δ·e,  e ← γλ·e
func (l *SARSA) Learn(ctx context.Context, envs *env.Vector, steps int) error {
	moved, err := l.begin(envs)
	if err != nil {
		return err
	}
	b := envs.Current()
	if moved {
		l.at = make([]sarsaAt, envs.Len())
		for i := range l.at {
			l.at[i].cell = -1
		}
	}
	l.actions = resize(l.actions, len(l.at))
	for l.progress.steps < steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range l.at {
			at := &l.at[i]
			if at.cell < 0 {
				at.cell, at.action = l.choose(b, i)
			}
			l.actions[i] = at.action
		}
		b = envs.Step(l.actions)
		for i := range l.at {
			l.learn(b, i)
		}
		l.progress.see(b)
		if l.progress.episodes-l.told >= l.cfg.LogEpisodes {
			l.told = l.progress.episodes
			l.log(l.report)
		}
	}
	return nil
}

// learn learns from what environment i did.
func (l *SARSA) learn(b *env.Batch, i int) {
	at, n := &l.at[i], l.spec.Action.N()
	if b.Began[i] { // nothing was done
		at.cell, at.traces = -1, at.traces[:0]
		return
	}
	index := at.cell*n + at.action
	cell, action := l.choose(b, i)
	delta := b.Reward[i] - l.table.Values[index]
	if !b.Terminated[i] || l.cfg.BootstrapAtEnd {
		delta += l.cfg.Gamma * l.table.Values[cell*n+action]
	}
	at.blame(index)
	step, kept := l.alpha()*delta, at.traces[:0]
	for _, t := range at.traces {
		l.table.Values[t.index] += step * t.e
		if t.e *= l.cfg.Gamma * l.cfg.Lambda; t.e >= l.cfg.TraceMin {
			kept = append(kept, t)
		}
	}
	at.traces, at.cell, at.action = kept, cell, action
}

// blame adds 1 to a trace.
func (at *sarsaAt) blame(index int) {
	for k := range at.traces {
		if at.traces[k].index == index {
			at.traces[k].e++
			return
		}
	}
	at.traces = append(at.traces, trace{index, 1})
}

// choose returns where environment i stands, and the ε-greedy action there.
func (l *SARSA) choose(b *env.Batch, i int) (cell, action int) {
	d, n := l.spec.Observation.Len(), l.spec.Action.N()
	cell, mask := l.row(b.Obs[i*d:(i+1)*d]), b.Mask[i*n:(i+1)*n]
	if l.rng.Float64() < l.epsilon() {
		return cell, anyOf(l.rng, mask)
	}
	return cell, best(l.table.Values[cell*n:(cell+1)*n], mask)
}

// Table is what acts, apart from the learner: in a cell the action with the largest
// value, the last of equals; where no cell is, the last action.
type Table struct {
	Edges  [][]float64 `json:"edges"`  // of each number of the observation
	Cells  []uint64    `json:"cells"`  // numbers of the cells that were met
	Values []float64   `json:"values"` // cells × actions
}

// Cell is the number of an observation's cell.
func (t *Table) Cell(obs []float64) (cell uint64) {
	for j, edges := range t.Edges {
		bin, exact := slices.BinarySearch(edges, obs[j])
		if exact {
			bin++ // an edge belongs to the bin above it
		}
		cell = cell*uint64(len(edges)+1) + uint64(bin)
	}
	return cell
}

// Table shares its memory with the learner.
func (l *SARSA) Table() *Table { return &l.table }

// row is an observation's row in the table, which grows with a row of zeros for a
// cell that is new.
func (l *SARSA) row(obs []float64) int {
	t := &l.table
	cell := t.Cell(obs)
	row, ok := l.rows[cell]
	if !ok {
		row = len(t.Cells)
		l.rows[cell] = row
		t.Cells = append(t.Cells, cell)
		t.Values = append(t.Values, make([]float64, l.spec.Action.N())...)
	}
	return row
}

func (l *SARSA) alpha() float64 {
	if l.cfg.AlphaEnd == 0 {
		return l.cfg.Alpha
	}
	return decayed(l.cfg.Alpha, l.cfg.AlphaEnd, l.cfg.AlphaDecay, l.progress.episodes)
}

func (l *SARSA) epsilon() float64 {
	return decayed(l.cfg.EpsilonStart, l.cfg.EpsilonEnd, l.cfg.EpsilonDecay, l.progress.episodes)
}

// decayed is max(end, start·factorᵏ).
func decayed(start, end, factor float64, k int) float64 {
	return max(end, start*math.Pow(factor, float64(k)))
}

func (l *SARSA) report(values map[string]float64) {
	values["rollout/exploration_rate"] = l.epsilon()
	values["train/learning_rate"] = l.alpha()
	values["train/cells"] = float64(len(l.table.Cells))
	values["train/n_updates"] = float64(l.progress.steps)
}

// Act is of Learner. Where it never was, it takes the last action allowed.
func (l *SARSA) Act(obs []float64, mask []bool) int { return best(l.Values(obs), mask) }

// Values returns the values of the actions, zeros where the learner never was. They
// are the table's own: the caller does not change them.
func (l *SARSA) Values(obs []float64) []float64 {
	n := l.spec.Action.N()
	if row, ok := l.rows[l.table.Cell(obs)]; ok {
		return l.table.Values[row*n : (row+1)*n]
	}
	return make([]float64, n)
}

// Cells returns how many cells of the table were met.
func (l *SARSA) Cells() int { return len(l.table.Cells) }

// Save is of Learner.
func (l *SARSA) Save(w io.Writer) error {
	return checkpoint.Save(w, header("sarsa", l.cfg, l.spec), l.state)
}

// Load is of Learner.
func (l *SARSA) Load(r io.Reader) error {
	return checkpoint.Load(r, header("sarsa", l.cfg, l.spec), l.state)
}

func (l *SARSA) state(c *checkpoint.Codec) {
	l.base.state(c)
	c.Int("told", &l.told, 1<<62)
	t := &l.table
	cells := c.Len("cells", len(t.Cells), 1<<26)
	t.Cells, t.Values = resize(t.Cells, cells), resize(t.Values, cells*l.spec.Action.N())
	checkpoint.Numbers(c, "cells/keys", t.Cells)
	c.Floats("cells/q", t.Values)
	if c.Reading() {
		clear(l.rows)
		for row, cell := range t.Cells {
			l.rows[cell] = row
		}
	}
	l.at = resize(l.at, c.Len("environments/at", len(l.at), 1<<16))
	for i := range l.at {
		at := &l.at[i]
		at.cell++ // -1 is not written
		c.Int("cell", &at.cell, cells)
		at.cell--
		c.Int("action", &at.action, l.spec.Action.N()-1)
		at.traces = resize(at.traces, c.Len("traces", len(at.traces), len(t.Values)))
		for k := range at.traces {
			c.Int("trace/index", &at.traces[k].index, len(t.Values)-1)
			c.Float("trace/e", &at.traces[k].e)
		}
	}
}

// resize returns s with n elements, zeros where it was shorter.
func resize[T any](s []T, n int) []T {
	if n <= len(s) {
		return s[:n]
	}
	return append(s, make([]T, n-len(s))...)
}

var _ Learner = (*SARSA)(nil)
