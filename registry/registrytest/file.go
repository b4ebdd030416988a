// Package registrytest makes policy files for tests.
package registrytest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"farmhand/policy/learned"
)

// Rule of the policies made here.
const Rule = "staffing:down=20"

// File is a policy file with random weights that can run. Other seeds make other ones.
func File(t testing.TB, seed uint64) []byte {
	t.Helper()
	return written(t, policyOf(seed, func(r *rand.Rand) float64 { return 0.1 * r.NormFloat64() }))
}

// Always is a policy file that always takes the same action; see learned.Actions.
func Always(t testing.TB, action int) []byte {
	t.Helper()
	f := policyOf(0, func(*rand.Rand) float64 { return 0 })
	last := f.Net.Layers[len(f.Net.Layers)-1]
	for i := range last.Bias { // where it is not allowed, holding is next
		switch i {
		case action:
			last.Bias[i] = 2
		case learned.Hold:
			last.Bias[i] = 1
		}
	}
	return written(t, f)
}

func policyOf(seed uint64, draw func(*rand.Rand) float64) *learned.File {
	r := rand.New(rand.NewPCG(seed, 0))
	numbers := func(n int) []float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = draw(r)
		}
		return list
	}
	names, low, high := learned.FeatureNames()
	n := len(names)
	f := &learned.File{Meta: learned.Meta{Rule: Rule, Learner: "dqn", Environment: "Farm-v0", Scenario: "burst-cron-150ms", Seed: seed, Steps: 1000,
		Training: map[string]float64{"on_time": 0.97}}, Net: learned.Net{Shift: numbers(n), Scale: numbers(n), Limit: 10, Activation: learned.Relu}, Low: low, High: high}
	for _, shape := range [][2]int{{n, 16}, {16, len(learned.Actions())}} {
		f.Net.Layers = append(f.Net.Layers, learned.Layer{In: shape[0], Out: shape[1], Weight: numbers(shape[0] * shape[1]), Bias: numbers(shape[1])})
	}
	return f
}

func written(t testing.TB, f *learned.File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
