package envtest

import (
	"fmt"
	"math/rand/v2"

	"farmhand/env"
)

// Identity shows a one among zeros and pays 1 for the action at its place: the
// least that a learner must learn. Episodes are truncated after Length steps.
type Identity struct {
	Length int
	spec   env.Spec
	rng    *rand.Rand
	pcg    rand.PCG
	obs    []float64
	at     int // where the one is
	step   int
}

// NewIdentity makes one with n actions, whose observation is padded with zeros to
// width numbers.
func NewIdentity(n, width, length int) *Identity {
	e := &Identity{Length: length, obs: make([]float64, width)}
	e.rng = rand.New(&e.pcg)
	e.spec.ID = "Identity-v0"
	for i := range width {
		e.spec.Observation.Names = append(e.spec.Observation.Names, fmt.Sprint("x", i))
		e.spec.Observation.Low = append(e.spec.Observation.Low, 0)
		e.spec.Observation.High = append(e.spec.Observation.High, 1)
	}
	for i := range n {
		e.spec.Action.Names = append(e.spec.Action.Names, fmt.Sprint(i))
	}
	return e
}

// Spec is of env.Env.
func (e *Identity) Spec() *env.Spec { return &e.spec }

// Reset is of env.Env.
func (e *Identity) Reset(seed uint64, options env.Options) ([]float64, env.Info) {
	mustFit(&e.spec, options)
	e.pcg.Seed(seed, 0)
	e.step = 0
	e.show()
	return e.obs, env.Info{}
}

// Step is of env.Env.
func (e *Identity) Step(action int) ([]float64, float64, bool, bool, env.Info) {
	mustAllow(&e.spec, nil, action)
	reward := 0.0
	if action == e.at {
		reward = 1
	}
	e.step++
	e.show()
	return e.obs, reward, false, e.step == e.Length, env.Info{}
}

func (e *Identity) show() {
	e.obs[e.at] = 0
	e.at = e.rng.IntN(e.spec.Action.N())
	e.obs[e.at] = 1
}

func mustFit(spec *env.Spec, options env.Options) {
	if err := spec.CheckOptions(options); err != nil {
		panic(err)
	}
}

func mustAllow(spec *env.Spec, mask []bool, action int) {
	if !spec.Action.Contains(action) || mask != nil && !mask[action] {
		panic(fmt.Sprintf("envtest: action %d of %s is not allowed", action, spec.ID))
	}
}
