package evaluate

import (
	"context"
	"strings"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim"
)

// Origin says where the parameters of a contender come from.
type Origin string

// The origins.
const (
	Default    Origin = "default"
	Given      Origin = "given"      // by the user
	Calibrated Origin = "calibrated" // for the scenario
	Pooled     Origin = "pooled"     // calibrated for several scenarios at once
	Bound      Origin = "bound"      // an oracle: nobody can run it
	PolicyFile Origin = "policy file"
)

// Contender is a policy in a comparison.
type Contender struct {
	Name   string // of the law, as rows show it
	Spec   string // with its parameters; with Name and Origin it says which contender this is
	Origin Origin
	Free   int // parameters that were chosen by calibration

	// Make makes the policy for one run. Nil: policy.New of Spec. Only bounds look
	// at the run.
	Make func(c sim.Config) (policy.Policy, error)
	// Version of what Make makes. Where there is none, the behaviour of the policy
	// itself says which it is.
	Version string
	// Unguarded: the guard is not asked, as for bounds, whose plans it would spoil.
	Unguarded bool
}

// Law is the contender of a policy's specification.
func Law(spec string, origin Origin) (Contender, error) {
	p, err := policy.New(spec)
	if err != nil {
		return Contender{}, err
	}
	name, _, _ := strings.Cut(p.Name(), ":")
	return Contender{Name: name, Spec: p.Name(), Origin: origin}, nil
}

// runFunc simulates one run; sim.Run but in tests.
type runFunc func(context.Context, sim.Config, sim.Driver) (sim.Result, error)

// Driver lets the contender scale the farm of one run, behind the guard where there is one.
func (c *Contender) Driver(g *guard.Settings, config sim.Config) (sim.Driver, error) {
	d := sim.Driver{Guard: g}
	if c.Unguarded {
		d.Guard = nil
	}
	var err error
	if c.Make != nil {
		d.Policy, err = c.Make(config)
	} else {
		d.Policy, err = policy.New(c.Spec)
	}
	if err != nil {
		return sim.Driver{}, err
	}
	return d, nil
}

// play lets a contender serve one run.
func (c *Contender) play(ctx context.Context, run runFunc, g *guard.Settings, config sim.Config) (sim.Result, error) {
	d, err := c.Driver(g, config)
	if err != nil {
		return sim.Result{}, err
	}
	return run(ctx, config, d)
}

// Episode is what one run came to.
type Episode struct {
	Seed   uint64     `json:"seed"`
	Result sim.Result `json:"result"`
}
