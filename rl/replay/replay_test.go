package replay_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"farmhand/env"
	"farmhand/internal/checkpoint"
	"farmhand/rl/replay"
)

var spec = &env.Spec{
	ID: "Line-v0", Observation: env.Box{Names: []string{"t", "env"}, Low: []float64{0, 0}, High: []float64{1e6, 9}},
	Action: env.Discrete{Names: []string{"a", "b", "c"}},
}

// line plays environments that show the number of their step; reward t is t, the
// action at t is t mod 3. Episodes take length+i steps in environment i, and every
// other one terminates.
type line struct {
	envs, length int
	t            []int
	episode      []int
	batch        env.Batch
}

func newLine(envs, length int) *line {
	l := &line{envs: envs, length: length, t: make([]int, envs), episode: make([]int, envs)}
	l.batch = env.Batch{
		Obs: make([]float64, 2*envs), Mask: make([]bool, 3*envs), Reward: make([]float64, envs),
		Terminated: make([]bool, envs), Truncated: make([]bool, envs), Began: make([]bool, envs),
	}
	for i := range envs {
		l.batch.Began[i] = true
		l.show(i)
	}
	return l
}

func (l *line) show(i int) {
	b := &l.batch
	b.Obs[2*i], b.Obs[2*i+1] = float64(l.t[i]), float64(i)
	for a := range 3 {
		b.Mask[3*i+a] = a <= l.t[i]%3
	}
}

func (l *line) step() (actions []int) {
	b := &l.batch
	for i := range l.envs {
		actions = append(actions, l.t[i]%3)
		over := b.Over(i)
		b.Terminated[i], b.Truncated[i], b.Began[i], b.Reward[i] = false, false, over, 0
		if over {
			l.t[i] = 0
			l.episode[i]++
		} else {
			l.t[i]++
			b.Reward[i] = float64(l.t[i])
			end := l.t[i] == l.length+i
			b.Terminated[i], b.Truncated[i] = end && l.episode[i]%2 == 0, end && l.episode[i]%2 == 1
		}
		l.show(i)
	}
	return actions
}

func TestReturnsOverSeveralSteps(t *testing.T) {
	const gamma = 0.9
	for _, n := range []int{1, 3, 10} {
		l := newLine(2, 5)
		r, err := replay.New(60, 2, spec) // not a multiple of the episodes
		if err != nil {
			t.Fatal(err)
		}
		to, rng := r.NewTransitions(500), rand.New(rand.NewPCG(1, 2))
		r.Start(&l.batch)
		if r.Sample(rng, n, gamma, to) {
			t.Fatal("drew a transition where there is none")
		}
		for range 100 {
			r.Put(l.step(), &l.batch, l.batch.Reward)
		}
		if !r.Sample(rng, n, gamma, to) || r.Len() != 60 {
			t.Fatalf("nothing drawn of %d frames", r.Len())
		}
		newest := []float64{float64(l.t[0]), float64(l.t[1])}
		seen := map[[2]float64]int{}
		for row := range to.Action {
			at, e, next := to.Obs[2*row], to.Obs[2*row+1], to.Next[2*row]
			seen[[2]float64{at, e}]++
			end := float64(5) + e
			if at == end {
				t.Fatalf("a transition begins where the episode is over")
			}
			want, discount := 0.0, 1.0
			for s := at + 1; s <= next; s++ {
				want += discount * s
				discount *= gamma
			}
			ended := next == end && to.Discount[row] == 0
			if math.Abs(to.Return[row]-want) > 1e-12 || !ended && math.Abs(to.Discount[row]-discount) > 1e-12 || to.Action[row] != int(at)%3 {
				t.Fatalf("%g → %g: return %g, discount %g, action %d: want %g, %g, %d", at, next, to.Return[row], to.Discount[row], to.Action[row], want, discount, int(at)%3)
			}
			if next != min(at+float64(n), end) && next != newest[int(e)] {
				t.Fatalf("n = %d: %g leads to %g", n, at, next)
			}
			for a := range 3 {
				if to.Mask[3*row+a] != (a <= int(at)%3) || to.NextMask[3*row+a] != (a <= int(next)%3) {
					t.Fatalf("%g → %g: masks %v, %v", at, next, to.Mask[3*row:3*row+3], to.NextMask[3*row:3*row+3])
				}
			}
		}
		if len(seen) != 5+6 {
			t.Errorf("n = %d: %d different starts: want 11", n, len(seen))
		}
	}
}

func TestTerminatedAndTruncatedEnds(t *testing.T) {
	for episode, want := range []float64{0, 0.25} {
		l := newLine(1, 2)
		l.episode[0] = episode
		r, _ := replay.New(10, 1, spec)
		r.Start(&l.batch)
		for range 2 {
			r.Put(l.step(), &l.batch, l.batch.Reward)
		}
		to := r.NewTransitions(20)
		r.Sample(rand.New(rand.NewPCG(1, 2)), 2, 0.5, to)
		for row := range to.Action {
			if to.Obs[row*2] == 0 && (to.Discount[row] != want || to.Return[row] != 1+0.5*2) {
				t.Errorf("episode %d: discount %g, return %g: want %g, 2", episode, to.Discount[row], to.Return[row], want)
			}
		}
	}
}

// What follows a Start has nothing to do with what stood before it.
func TestStartCuts(t *testing.T) {
	l := newLine(1, 100)
	r, _ := replay.New(50, 1, spec)
	r.Start(&l.batch)
	for range 5 {
		r.Put(l.step(), &l.batch, l.batch.Reward)
	}
	other := newLine(1, 100)
	other.t[0] = 40
	other.show(0)
	r.Start(&other.batch)
	for range 5 {
		r.Put(other.step(), &other.batch, other.batch.Reward)
	}
	to := r.NewTransitions(200)
	r.Sample(rand.New(rand.NewPCG(1, 2)), 3, 1, to)
	for row := range to.Action {
		if at, next := to.Obs[2*row], to.Next[2*row]; (at < 40) != (next < 40) || at == 5 {
			t.Fatalf("a transition from %g to %g", at, next)
		}
	}
}

func TestStateIsKept(t *testing.T) {
	l := newLine(2, 5)
	r, _ := replay.New(40, 2, spec)
	r.Start(&l.batch)
	for range 33 {
		r.Put(l.step(), &l.batch, l.batch.Reward)
	}
	var buf bytes.Buffer
	if err := checkpoint.Save(&buf, nil, r.State); err != nil {
		t.Fatal(err)
	}
	twin, _ := replay.New(40, 2, spec)
	if err := checkpoint.Load(&buf, nil, twin.State); err != nil {
		t.Fatal(err)
	}
	a, b := r.NewTransitions(50), r.NewTransitions(50)
	r.Sample(rand.New(rand.NewPCG(1, 2)), 3, 0.9, a)
	twin.Sample(rand.New(rand.NewPCG(1, 2)), 3, 0.9, b)
	if !slices.Equal(a.Next, b.Next) || !slices.Equal(a.Return, b.Return) || !slices.Equal(a.NextMask, b.NextMask) || !slices.Equal(a.Action, b.Action) {
		t.Error("the copy draws other transitions")
	}
}

func TestMistakesAreNamed(t *testing.T) {
	if _, err := replay.New(3, 2, spec); err == nil {
		t.Error("one frame for each environment was accepted")
	}
	wide := *spec
	wide.Action.Names = make([]string, 65)
	if _, err := replay.New(100, 2, &wide); err == nil {
		t.Error("65 actions were accepted")
	}
}
