package learned

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The outputs of the mean are the mean of the outputs, however each normalises what it
// sees.
func TestMean(t *testing.T) {
	var files []*File
	for seed := range uint64(3) {
		f := random(seed + 1)
		f.Steps, f.Net.Limit = 100, 1e6
		files = append(files, f)
	}
	m, err := Mean(files...)
	if err != nil {
		t.Fatal(err)
	}
	if alone, three := len(written(t, files[0])), len(written(t, m)); three > 3*alone {
		t.Errorf("the mean of three has %d bytes: want at most three times the %d of one", three, alone)
	}
	if m.Steps != 300 || !slices.Equal(m.Members, []uint64{1, 2, 3}) {
		t.Errorf("%d steps of %v: want 300 of 1 to 3", m.Steps, m.Members)
	}
	r := rand.New(rand.NewPCG(1, 2))
	_, lo, hi := FeatureNames()
	x, mean := make([]float64, len(lo)), must(Load(written(t, m)))
	for range 100 {
		for i := range x {
			x[i] = lo[i] + (hi[i]-lo[i])*r.Float64()
		}
		want := make([]float64, actions)
		for _, f := range files {
			for i, v := range must(Load(written(t, f))).Outputs(x) {
				want[i] += v / float64(len(files))
			}
		}
		for i, v := range mean.Outputs(x) {
			if math.Abs(v-want[i]) > 1e-9*(1+math.Abs(v)) {
				t.Fatalf("output %d is %g: want %g, the mean", i, v, want[i])
			}
		}
	}
}

// Policies that differ in more than what they have learned have no mean.
func TestMeanOfUnlike(t *testing.T) {
	for want, change := range map[string]func(*File){
		"one rule":              func(f *File) { f.Rule = "static:n=2" },
		"only and hidden":       func(f *File) { f.Only = []string{"hold"} },
		"64 10] with tanh":      func(f *File) { f.Net.Activation = Tanh },
		"a mean of nets [64 64": func(f *File) { f.Net.Layers = f.Net.Layers[:2] },
		"activation and limit":  func(f *File) { f.Net.Limit = 3 },
		"the mean of seeds 1 2": func(f *File) { f.Members = []uint64{1, 2} },
		"the mean of seed 1":    func(f *File) { l := &f.Net.Layers[1]; l.Blocks, l.Weight = 2, l.Weight[:64*32] },
	} {
		other := random(1)
		change(other)
		if _, err := Mean(random(1), other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v: want %q", err, want)
		}
	}
	linear := random(1)
	linear.Net.Layers = linear.Net.Layers[:1]
	if _, err := Mean(linear, linear); err == nil || !strings.Contains(err.Error(), "two layers or more") {
		t.Errorf("the error is %v: want one that asks for two layers", err)
	}
	if _, err := Mean(); err == nil {
		t.Error("no policies have a mean")
	}
}

func must(p *Policy, err error) *Policy {
	if err != nil {
		panic(err)
	}
	return p
}
