package env_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"farmhand/env"
	"farmhand/env/envtest"
)

// counter counts its steps; an episode of an odd seed terminates after 2, one of
// an even seed is truncated after 3. It shows count and seed.
type counter struct {
	seed, steps float64
	obs         [2]float64
	parts       [2]float64
}

var counterSpec = env.Spec{
	ID: "Counter-v0",
	Observation: env.Box{
		Names: []string{"steps", "seed"}, Low: []float64{0, 0}, High: []float64{3, math.Inf(1)},
	},
	Action:  env.Discrete{Names: []string{"a", "b"}},
	Parts:   []string{"one", "two"},
	Options: []env.Option{{Name: "pay", Default: 1, Min: 0, Max: 10}},
}

func (c *counter) Spec() *env.Spec { return &counterSpec }

func (c *counter) Reset(seed uint64, options env.Options) ([]float64, env.Info) {
	c.seed, c.steps = float64(seed%1000), 0
	c.parts = [2]float64{counterSpec.Option(options, "pay"), 2}
	return c.look(), env.Info{}
}

func (c *counter) Step(int) ([]float64, float64, bool, bool, env.Info) {
	c.steps++
	odd := math.Mod(c.seed, 2) == 1
	return c.look(), c.parts[0] + c.parts[1], odd && c.steps == 2, !odd && c.steps == 3, env.Info{Parts: c.parts[:], Mask: []bool{true, false}}
}

func (c *counter) look() []float64 {
	c.obs = [2]float64{c.steps, c.seed}
	return c.obs[:]
}

func TestAutoresetKeepsTheLastObservation(t *testing.T) {
	const seed = 11
	v, err := env.NewVector(seed, env.Options{"pay": 5}, &counter{}, &counter{})
	if err != nil {
		t.Fatal(err)
	}
	b := v.Current()
	var over, began [2]int
	want := [2]float64{} // steps that each environment should show
	kinds := map[string]bool{}
	for range 40 {
		for i := range 2 {
			s := env.EpisodeSeed(seed, i, uint64(over[i]))
			if b.Over(i) {
				s = env.EpisodeSeed(seed, i, uint64(over[i]-1))
			}
			if got := b.Obs[2*i : 2*i+2]; got[0] != want[i] || got[1] != float64(s%1000) {
				t.Fatalf("environment %d shows %v: want %g steps of seed %d", i, got, want[i], s%1000)
			}
			if b.Over(i) && b.Terminated[i] == b.Truncated[i] {
				t.Fatal("terminated and truncated are not kept apart")
			}
			if b.Began[i] != (want[i] == 0) || b.Began[i] && b.Reward[i] != 0 {
				t.Fatalf("environment %d, %g steps: began %v with reward %g", i, want[i], b.Began[i], b.Reward[i])
			}
		}
		ended := v.Current().Ended
		for _, e := range ended {
			length := 3 - int(e.Seed%1000%2)
			if e.Length != length || e.Return != float64(7*length) || !slices.Equal(e.Parts, []float64{float64(5 * length), float64(2 * length)}) {
				t.Fatalf("episode %+v: want %d steps of 5 + 2", *e, length)
			}
			kinds[map[bool]string{true: "terminated", false: "truncated"}[b.Terminated[e.Env]]] = true
		}
		was := [2]bool{b.Over(0), b.Over(1)}
		b = v.Step([]int{0, 0})
		for i := range 2 {
			if want[i]++; was[i] {
				want[i] = 0
				began[i]++
			}
			if b.Over(i) {
				over[i]++
			}
		}
	}
	if len(kinds) != 2 || began[0] < 9 {
		t.Errorf("saw %v endings, %v beginnings: the test tested too little", kinds, began)
	}
}

func TestVectorAllocatesNothing(t *testing.T) {
	v, err := env.NewVector(1, nil, envtest.NewQueue(), envtest.NewQueue())
	if err != nil {
		t.Fatal(err)
	}
	actions := []int{1, 1}
	for range 300 {
		v.Step(actions)
	}
	if n := testing.AllocsPerRun(300, func() { v.Step(actions) }); n > 0 {
		t.Errorf("%g allocations per step", n)
	}
}

func TestRestoreRefusesWhatIsOfOtherEnvironments(t *testing.T) {
	v, _ := env.NewVector(1, nil, envtest.NewQueue())
	sums := [][]float64{make([]float64, 6)}
	if err := v.Restore(env.State{Episode: []uint64{0}, Actions: [][]int32{{1, 1}}, Sums: sums}); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]env.State{
		"two environments": {Episode: []uint64{0, 0}, Actions: make([][]int32, 2), Sums: make([][]float64, 2)},
		"sums missing":     {Episode: []uint64{0}, Actions: [][]int32{{1}}, Sums: [][]float64{{1}}},
		"unknown action":   {Episode: []uint64{0}, Actions: [][]int32{{3}}, Sums: sums},
		"masked action":    {Episode: []uint64{0}, Actions: [][]int32{{2, 2, 2, 2}}, Sums: sums},
		"too long":         {Episode: []uint64{0}, Actions: [][]int32{slices.Repeat([]int32{1}, 101)}, Sums: sums},
	} {
		if err := v.Restore(s); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// An episode keeps the sums of what it was paid, although less is paid now.
func TestRestoreKeepsSums(t *testing.T) {
	play := func(v *env.Vector) (b *env.Batch) {
		for b = v.Current(); len(b.Ended) == 0; {
			b = v.Step([]int{0})
		}
		return b
	}
	rich, _ := env.NewVector(1, env.Options{"pay": 9}, &counter{})
	rich.Step([]int{0})
	poor, _ := env.NewVector(1, env.Options{"pay": 0}, &counter{})
	if err := poor.Restore(rich.State()); err != nil {
		t.Fatal(err)
	}
	e := play(poor).Ended[0]
	if want := 11 + 2*float64(e.Length-1); e.Return != want || e.Parts[0] != 9 {
		t.Errorf("return %g, parts %v after %d steps: want %g, of which 9 by the first", e.Return, e.Parts, e.Length, want)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	other := envtest.NewIdentity(2, 2, 3)
	for name, c := range map[string]struct {
		options env.Options
		envs    []env.Env
		want    string
	}{
		"none":           {want: "at least one"},
		"mixed":          {envs: []env.Env{&counter{}, other}, want: "environment 1 of a vector is Identity-v0"},
		"unknown option": {options: env.Options{"play": 1}, envs: []env.Env{&counter{}}, want: "no option play"},
		"absurd option":  {options: env.Options{"pay": math.NaN()}, envs: []env.Env{&counter{}}, want: "pay of Counter-v0 is NaN: want 0 to 10"},
	} {
		if _, err := env.NewVector(1, c.options, c.envs...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v: want one with %q", name, err, c.want)
		}
	}
}

func TestBox(t *testing.T) {
	b := env.Box{Names: []string{"x", "y"}, Low: []float64{0, math.Inf(-1)}, High: []float64{1, 5}}
	for _, c := range []struct {
		x    []float64
		want bool
	}{
		{[]float64{0, 5}, true}, {[]float64{1, -1e300}, true}, {[]float64{1.1, 0}, false},
		{[]float64{math.NaN(), 0}, false}, {[]float64{0}, false}, {[]float64{0, 5, 0}, false},
	} {
		if b.Contains(c.x) != c.want {
			t.Errorf("Contains(%v): want %v", c.x, c.want)
		}
	}
	if b.Bounded() {
		t.Error("a box without a lowest y is called bounded")
	}
}
