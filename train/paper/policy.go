// Package paper learns policies for FarmPaper-v0, the published environment of a task
// farm (arXiv 2602.06555), and measures them as the published ones were, but on
// episodes that nobody has trained on.
package paper

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"farmhand/env/farmenv"
	"farmhand/rl"
	"farmhand/rl/nn"
	"farmhand/sim/workload"
)

// Format of policy files.
const Format = "farmhand FarmPaper-v0 policy 1"

// Case is what is played.
type Case struct {
	Scenario  string `json:"scenario"` // paper-as-run or paper-fixed, with :shuffled or without
	MaskClock bool   `json:"mask_clock,omitempty"`
	Jumps     bool   `json:"jumps,omitempty"`
}

// Env makes an environment of the case.
func (c Case) Env(reward farmenv.PaperReward) (*farmenv.Paper, error) {
	s, err := workload.Find(c.Scenario, workload.Options{})
	if err != nil {
		return nil, err
	}
	return farmenv.NewPaper(farmenv.PaperConfig{Scenario: s, MaskClock: c.MaskClock, Jumps: c.Jumps, Reward: reward})
}

func (c Case) String() string {
	name := c.Scenario
	if c.Jumps {
		name += ", jumps"
	}
	if c.MaskClock {
		name += ", clock masked"
	}
	return name
}

// Policy is what was learned, as it is kept: a file in JSON. It acts by a network or by
// a table.
type Policy struct {
	Format   string          `json:"format"`
	Case     Case            `json:"case"`
	Learner  string          `json:"learner"`
	Seed     uint64          `json:"seed"`
	Steps    int             `json:"steps"`             // of the environment, that it has learned from
	Settings json.RawMessage `json:"settings"`          // of the training and its learner
	Training Score           `json:"training"`          // what it came to on training seeds
	Calm     float64         `json:"calm"`              // added to what the network or the table says of holding
	Network  *rl.Network     `json:"network,omitempty"` // one of both
	Table    *rl.Table       `json:"table,omitempty"`

	Logarithms bool `json:"logarithms,omitempty"` // are observed too

	rows     map[uint64]int // of the table's cells
	hold     int
	in, x, y []float64 // in: observation with logarithms
}

// check says why a policy cannot run, and prepares it to.
func (p *Policy) check() error {
	if p.Format != Format {
		return fmt.Errorf("it has the format %q: want %q", p.Format, Format)
	}
	e, err := p.Case.Env(farmenv.Published)
	if err != nil {
		return err
	}
	inputs, actions := withInputs(e, p.Logarithms).Spec().Observation.Len(), e.Spec().Action.N()
	p.hold, p.y = e.Hold(), make([]float64, actions)
	switch {
	case (p.Network == nil) == (p.Table == nil):
		return errors.New("it has both a network and a table, or none: want one of them")
	case math.IsNaN(p.Calm) || math.IsInf(p.Calm, 0):
		return fmt.Errorf("calm is %g: want a finite number", p.Calm)
	case p.Table != nil:
		t := p.Table
		if len(t.Edges) != inputs || len(t.Values) != actions*len(t.Cells) {
			return fmt.Errorf("its table cuts %d numbers, and has %d values in %d cells: want %d numbers, and %d values a cell",
				len(t.Edges), len(t.Values), len(t.Cells), inputs, actions)
		}
		p.rows = map[uint64]int{}
		for row, cell := range t.Cells {
			p.rows[cell] = row
		}
		return nil
	}
	return checkNetwork(p.Network, inputs, actions)
}

func checkNetwork(n *rl.Network, inputs, actions int) error {
	if err := n.Activation.Validate(); err != nil {
		return err
	}
	if len(n.Normalise.Shift) != inputs || len(n.Normalise.Scale) != inputs || len(n.Layers) == 0 {
		return fmt.Errorf("its network of %d layers normalises %d numbers: want at least one layer, and %d numbers", len(n.Layers), len(n.Normalise.Shift), inputs)
	}
	in := inputs
	for i, l := range n.Layers {
		if l.In != in || l.Out < 1 || len(l.Weight) != l.In*l.Out || len(l.Bias) != l.Out {
			return fmt.Errorf("layer %d of its network takes %d numbers and makes %d: want %d in, and a weight for each pair", i, l.In, l.Out, in)
		}
		in = l.Out
	}
	if in != actions {
		return fmt.Errorf("its network makes %d numbers: want %d, one for each action", in, actions)
	}
	return nil
}

// Act is the action with the largest value, the last of equals. It is not safe for
// concurrent use.
func (p *Policy) Act(obs []float64) int {
	values := append(p.y[:0], p.values(obs)...)
	values[p.hold] += p.Calm
	action := 0
	for i, v := range values {
		if v >= values[action] {
			action = i
		}
	}
	return action
}

func (p *Policy) values(obs []float64) []float64 {
	if p.Logarithms {
		p.in = withLogs(p.in, obs)
		obs = p.in
	}
	if t := p.Table; t != nil {
		n := len(p.y)
		if row, ok := p.rows[t.Cell(obs)]; ok {
			return t.Values[row*n : (row+1)*n]
		}
		return make([]float64, n)
	}
	n := p.Network
	x := p.x[:0]
	for i, v := range obs {
		x = append(x, min(max((v-n.Normalise.Shift[i])*n.Normalise.Scale[i], -n.Normalise.Limit), n.Normalise.Limit))
	}
	p.x = x
	for i, l := range n.Layers {
		y := slices.Clone(l.Bias)
		for j, v := range x {
			for k, w := range l.Weight[j*l.Out : (j+1)*l.Out] {
				y[k] += v * w
			}
		}
		if x = y; i < len(n.Layers)-1 {
			activate(n.Activation, x)
		}
	}
	return x
}

func activate(a nn.Activation, x []float64) {
	for i, v := range x {
		if a == nn.Tanh {
			x[i] = math.Tanh(v)
		} else {
			x[i] = max(v, 0)
		}
	}
}

// Bytes of the policy's file. Equal policies give equal bytes.
func (p *Policy) Bytes() ([]byte, error) { return json.Marshal(p) }

// Parse a policy's file. Where it cannot run, the error says why.
func Parse(b []byte) (*Policy, error) {
	p := &Policy{}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("paper: no policy of FarmPaper-v0: %w", err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("paper: no policy that can run: %w", err)
	}
	return p, nil
}

// Read a policy's file.
func Read(name string) (*Policy, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("paper: %w", err)
	}
	p, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}
