package train

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farmhand/policy/learned"
	"farmhand/rl"
	"farmhand/rl/tape"
	"farmhand/sim/workload"
)

// small is a training of seconds: nothing worth having is learned in it.
func small(t testing.TB, learner string) Config {
	t.Helper()
	s, err := workload.Find("burst-cron-150ms", workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Horizon = 200
	c := Default(s)
	c.Learner, c.Rule = learner, "staffing:down=0"
	c.Steps, c.Round, c.Envs, c.Episode, c.Record, c.Seeds, c.Final = 600, 300, 2, 100, 400, []uint64{1}, []uint64{1, 2}
	c.Adjust = func(settings any) {
		switch s := settings.(type) {
		case *rl.DQNConfig:
			s.LearningStarts, s.Hidden = 100, []int{16}
		case *rl.PGConfig:
			s.Rollout, s.Epochs, s.Hidden = 64, 2, []int{16}
		}
	}
	return c
}

func trained(t *testing.T, c Config) (*Trainer, []byte) {
	t.Helper()
	tr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	file, _, err := tr.Policy()
	if err != nil {
		t.Fatal(err)
	}
	return tr, file
}

// Equal configurations give equal files, and tell the same on the way, however many
// simulations run at once; another seed gives another file (P82).
func TestTrainingIsReproducible(t *testing.T) {
	for _, learner := range Learners() {
		told := func(c Config) (file []byte, log string) {
			var b strings.Builder
			c.Log = func(steps int, values map[string]float64) { fmt.Fprintln(&b, steps, values) } // a map is printed in order
			c.Done = func(p Point) { fmt.Fprintf(&b, "%+v\n", p) }
			_, file = trained(t, c)
			return file, b.String()
		}
		c := small(t, learner)
		a, log := told(c)
		c.Jobs = 1
		b, again := told(c)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: equal configurations gave different files", learner)
		}
		if log != again || !strings.Contains(log, "train/loss") || !strings.Contains(log, "OnTime") {
			t.Errorf("%s: equal configurations told\n%s\nand\n%s", learner, log, again)
		}
		c.Seed++
		if _, d := trained(t, c); bytes.Equal(a, d) {
			t.Errorf("%s: another seed gave the same file", learner)
		}
	}
}

// Where it gets no better, learning ends before its steps do (P85: how much training is
// needed).
func TestPatience(t *testing.T) {
	c := small(t, "dqn")
	c.Steps, c.Round, c.Warmup, c.Patience = 100_000, 100, 0, 2
	c.Adjust = func(settings any) { settings.(*rl.DQNConfig).LearningStarts = 1 << 20 } // nothing is learned
	tr, _ := trained(t, c)
	curve := tr.Curve()
	last := curve[len(curve)-1].Steps
	if best := tr.best[0].Steps; best != curve[len(curve)-3].Steps || last > 50_000 {
		t.Errorf("the best was after %d steps, the end after %d: want two rounds more", best, last)
	}
}

// The policy that runs a file chooses as the learner does, of which the file was made.
func TestFileActsAsTheLearner(t *testing.T) {
	for _, learner := range Learners() {
		c := small(t, learner)
		tr, _ := trained(t, c)
		file, err := tr.write()
		if err != nil {
			t.Fatal(err)
		}
		p, err := learned.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		farm, err := tr.farms[0].Another()
		if err != nil {
			t.Fatal(err)
		}
		obs, info := farm.Reset(9, nil)
		for step := 0; step < 50; step++ {
			if got, want := p.Act(obs, info.Mask), tr.learner.Act(obs, info.Mask); got != want {
				t.Fatalf("%s: the file does %d, the learner %d", learner, got, want)
			}
			values, outputs := forward(tr.learner.Network(), obs), p.Outputs(obs)
			for i := range values {
				if math.Abs(values[i]-outputs[i]) > 1e-12*max(1, math.Abs(values[i])) {
					t.Fatalf("%s: output %d is %g in the file, %g in the learner", learner, i, outputs[i], values[i])
				}
			}
			action := r.IntN(len(info.Mask))
			for !info.Mask[action] {
				action = r.IntN(len(info.Mask))
			}
			obs, _, _, _, info = farm.Step(action)
		}
	}
}

// forward is the learner's own way through a network: on a tape.
func forward(n rl.Network, obs []float64) []float64 {
	t := tape.New()
	in := make([]float64, len(obs))
	for i, v := range obs {
		in[i] = min(max((v-n.Normalise.Shift[i])*n.Normalise.Scale[i], -n.Normalise.Limit), n.Normalise.Limit)
	}
	x := t.Input(1, len(in), in)
	for i, l := range n.Layers {
		x = t.Add(t.MatMul(x, t.Input(l.In, l.Out, l.Weight)), t.Input(1, l.Out, l.Bias))
		if i < len(n.Layers)-1 {
			x = n.Activation.Apply(t, x)
		}
	}
	return t.Value(x)
}

// Lateness above what is allowed makes it weigh more, and below, less.
func TestLatenessFindsItsWeight(t *testing.T) {
	c := small(t, "dqn")
	tr, _ := trained(t, c)
	curve := tr.Curve()
	if len(curve) != 2 || curve[0].Steps < 300 || curve[1].Steps < 600 {
		t.Fatalf("the curve is %v: want points at 300 and 600 steps", curve)
	}
	late := (1 - curve[0].OnTime) / (1 - tr.aim(0))
	if moved := curve[1].Cases[0].Late - curve[0].Cases[0].Late; (late > 1) != (moved > 0) {
		t.Errorf("%g times as many are late as may be; the weight went from %g to %g", late, curve[0].Cases[0].Late, curve[1].Cases[0].Late)
	}
}

// Who misses a target is worse than all who do not, however cheap; being short of the
// aim, and many actions, have a price: a policy that is hardly either is better than a
// dear one.
func TestCompare(t *testing.T) {
	one := make([]Case, 1)
	good, cheap := Point{Cost: 7, Actions: 200, Cases: one}, Point{Cost: 6, Actions: 290, Cases: one}
	near, quick := Point{Cost: 5.9, Short: 0.1, Actions: 100, Cases: one}, Point{Cost: 5.9, Actions: 340, Cases: one}
	late, busy := Point{Cost: 5.9, Short: 0.4, Actions: 100, Cases: one}, Point{Cost: 5.9, Actions: 450, Cases: one}
	missed, far := Point{Cost: 2, Missed: 0.01, Cases: one}, Point{Cost: 1, Missed: 0.02, Cases: one}
	want := []*Point{&cheap, &near, &quick, &good, &late, &busy, &missed, &far}
	list := []*Point{&far, &busy, &late, &quick, &missed, &near, &good, &cheap}
	slices.SortFunc(list, func(a, b *Point) int { return Compare(a, b, 300) })
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("place %d is for %+v: want %+v", i, *list[i], *want[i])
		}
	}
	if Compare(&busy, &good, math.Inf(1)) >= 0 {
		t.Error("actions count without a limit")
	}
}

// The target of the one scenario counts, and the aim beyond it; of several, only those
// that a peer reaches.
func TestMissed(t *testing.T) {
	c := small(t, "dqn") // 97 % on time, and 40 % less lateness than that
	tr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for onTime, want := range map[float64]struct{ missed, short float64 }{
		0.99: {0, 0}, 0.976: {0, 1. / 3}, 0.94: {1, 7. / 3},
	} {
		p := Point{Cases: []Case{{OnTime: onTime}}}
		tr.judge(&p)
		if math.Abs(p.Missed-want.missed) > 1e-9 || math.Abs(p.Short-want.short) > 1e-9 {
			t.Errorf("%g on time misses %g and is short by %g: want %g and %g", onTime, p.Missed, p.Short, want.missed, want.short)
		}
	}
	if tr, err = New(two(t, "dqn")); err != nil {
		t.Fatal(err)
	}
	p := Point{Cases: []Case{{OnTime: 0.5}, {OnTime: 0.5}}}
	if tr.judge(&p); p.Missed != 0 || !(p.Short > 0) {
		t.Errorf("of two scenarios %g is missed, %g short: want them short alone", p.Missed, p.Short)
	}
}

// Only one output is biased.
func TestBias(t *testing.T) {
	c := small(t, "ppo")
	tr, _ := trained(t, c)
	file, err := tr.write()
	if err != nil {
		t.Fatal(err)
	}
	other, err := biased(file, bias{learned.Hold, 2})
	if err != nil {
		t.Fatal(err)
	}
	was, err := learned.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	is, err := learned.Load(other)
	if err != nil {
		t.Fatal(err)
	}
	farm, err := tr.farms[0].Another()
	if err != nil {
		t.Fatal(err)
	}
	obs, _ := farm.Reset(1, nil)
	for i, x := range was.Outputs(obs) {
		want := x
		if i == learned.Hold {
			want += 2
		}
		if got := is.Outputs(obs)[i]; math.Abs(got-want) > 1e-12 {
			t.Errorf("output %d is %g: want %g", i, got, want)
		}
	}
}

// Somebody's own trace is learned from anywhere in it.
func TestTrace(t *testing.T) {
	var text strings.Builder
	text.WriteString("seconds_since_start,arrivals\n")
	for i := range 60 {
		fmt.Fprintf(&text, "%d,%d\n", 10*i, 200+100*(i%7))
	}
	path := filepath.Join(t.TempDir(), "mine.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := workload.Find(path, workload.Options{Deadline: 0.15, Service: workload.Exponential{Average: 0.04}})
	if err != nil {
		t.Fatal(err)
	}
	c := small(t, "dqn")
	c.Scenarios = []*workload.Scenario{s}
	tr, file := trained(t, c)
	f, err := learned.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if f.Environment != "FarmTrace-v0" || f.Scenario != "mine" {
		t.Errorf("it was learned in %s of %s", f.Environment, f.Scenario)
	}
	from := map[float64]bool{}
	for seed := range uint64(20) {
		from[tr.mix.Episode(seed).From] = true
	}
	if len(from) < 20 {
		t.Errorf("20 episodes began at %d instants", len(from))
	}
}

// What cannot be is refused, with its name and what would do.
func TestBadConfiguration(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"Steps is 0":        func(c *Config) { c.Steps = 0 },
		"Churn is NaN":      func(c *Config) { c.Churn = math.NaN() },
		"Late is 0":         func(c *Config) { c.Late = 0 },
		"Episode is 1":      func(c *Config) { c.Episode = 1 },
		"no learner":        func(c *Config) { c.Learner = "oracle" },
		"Rule":              func(c *Config) { c.Rule = "magic" },
		"Fallback":          func(c *Config) { c.Fallback = "magic" },
		"no Scenarios":      func(c *Config) { c.Scenarios = nil },
		"Patience is -1":    func(c *Config) { c.Patience = -1 },
		"Round is 0":        func(c *Config) { c.Round = 0 },
		"Steps is 2e+09":    func(c *Config) { c.Steps = 2_000_000_000 },
		"Envs is 100000":    func(c *Config) { c.Envs = 100_000 },
		"Dual is +Inf":      func(c *Config) { c.Dual = math.Inf(1) },
		"Hidden has a":      func(c *Config) { c.Adjust = func(s any) { s.(*rl.DQNConfig).Hidden = []int{1 << 30} } },
		"Buffer is 9999999": func(c *Config) { c.Adjust = func(s any) { s.(*rl.DQNConfig).Buffer = 9_999_999 } },
		"Seeds is 0":        func(c *Config) { c.Seeds = nil },
		"LearningRate is 9": func(c *Config) { c.Adjust = func(s any) { s.(*rl.DQNConfig).LearningRate = 9 } },
	} {
		c := small(t, "dqn")
		spoil(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v: want one with %q", err, want)
		}
	}
}

// A policy that does not see a feature chooses the same whatever it is, and nothing of
// it is strange.
func TestHiddenFeaturesDoNotCount(t *testing.T) {
	c := small(t, "ppo")
	c.Hide = []string{"level_age", "level_age_against_past2"}
	_, file := trained(t, c)
	p, err := learned.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := learned.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	obs := slices.Clone(f.Low)
	want := slices.Clone(p.Outputs(obs))
	for _, name := range c.Hide {
		obs[slices.Index(f.Features, name)] = 3
	}
	if got := p.Outputs(obs); !slices.Equal(got, want) {
		t.Errorf("outputs %v with hidden features, want %v", got, want)
	}
	obs[slices.Index(f.Features, "waiting")] += 3
	if got := p.Outputs(obs); slices.Equal(got, want) {
		t.Error("a feature that is not hidden does not count either")
	}
	c.Hide = []string{"moon"}
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), `"moon"`) {
		t.Errorf("error %v, want one that names the feature", err)
	}
}

// The range of what was seen leaves out a share at each end, and no more.
func TestRangeOfARecord(t *testing.T) {
	var h histogram
	for i := range 10_000 {
		h.add(float64(i)/10_000, 0, 2)
	}
	h.add(2, 0, 2)
	for _, c := range []struct{ share, low, high float64 }{{1e-4, 0, 2}, {0.01, 0.01, 0.99}, {0.25, 0.25, 0.75}} {
		low, high := h.within(c.share, 0, 2)
		if math.Abs(low-c.low) > 0.003 || math.Abs(high-c.high) > 0.003 {
			t.Errorf("all but %g: %g to %g, want %g to %g", c.share, low, high, c.low, c.high)
		}
	}
	var same histogram
	same.add(3, 3, 3)
	if low, high := same.within(rare, 3, 3); low != 3 || high != 3 {
		t.Errorf("a constant lies in %g to %g, want 3", low, high)
	}
}

// Without a deadline nothing is late: there is nothing to learn.
func TestDeadlineIsNeeded(t *testing.T) {
	c := small(t, "ppo")
	c.Scenarios[0].Farm.Deadline = 0
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "no deadline") {
		t.Errorf("error %v, want one that says that there is no deadline", err)
	}
}
