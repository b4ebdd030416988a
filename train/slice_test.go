package train

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"farmhand/sim/workload"
)

func saved(t testing.TB, tr *Trainer) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tr.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// two is a training in two scenarios.
func two(t testing.TB, learner string) Config {
	c := small(t, learner)
	s, err := workload.Find("bursty", workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Horizon = 200
	c.Scenarios = append(c.Scenarios, s)
	return c
}

// A training that is cut anywhere, saved, and taken up again by another process ends with
// the same bytes as one that never was.
func TestCutsLeaveNoTrace(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, learner := range []string{"dqn", "ppo"} {
		c := two(t, learner)
		c.Clone, c.Randomise = 50, learner == "dqn"
		if learner == "ppo" {
			c.Peer, c.Tolerance, c.Only, c.Blend, c.Seeds = "static:n=6", 0.01, []string{"hold", "+1", "rule"}, true, c.Final
		}
		whole, want := trained(t, c)
		tr, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		cuts, most := 0, 40
		if learner != "dqn" {
			most = 2 // its updates are rare
		}
		for done := false; !done; {
			left := rng.IntN(most)
			done, err = tr.Slice(context.Background(), func() bool { left--; return left < 0 })
			if err != nil {
				t.Fatal(err)
			}
			if tr, err = Load(bytes.NewReader(saved(t, tr)), c); err != nil {
				t.Fatal(err)
			}
			cuts++
		}
		got, _, err := tr.Policy()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %d cuts made another policy", learner, cuts)
		}
		if !bytes.Equal(saved(t, tr), saved(t, whole)) {
			t.Errorf("%s: %d cuts made another training", learner, cuts)
		}
		if cuts < 8 {
			t.Errorf("%s: %d cuts: the test tested too little", learner, cuts)
		}
	}
}

// Slices that are over at once still come to an end, and go no further than one piece.
func TestShortSlicesGetOn(t *testing.T) {
	c := small(t, "ppo")
	tr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	slices, most := 0, 0
	for done := false; !done; slices++ {
		before := tr.Steps()
		if done, err = tr.Slice(context.Background(), func() bool { return true }); err != nil {
			t.Fatal(err)
		}
		most = max(most, tr.Steps()-before)
		if slices > 1000 {
			t.Fatal("no end")
		}
	}
	if most > 128 { // steps of 2 environments between updates
		t.Errorf("a slice of one piece learned from %d steps: want 128", most)
	}
	if _, want := trained(t, c); !bytes.Equal(must(tr.Policy()), want) {
		t.Errorf("%d slices made another policy", slices)
	}
}

func must(file []byte, _ Point, err error) []byte {
	if err != nil {
		panic(err)
	}
	return file
}

// Before the end, Policy is the best so far; after an interrupt too.
func TestInterrupted(t *testing.T) {
	tr, err := New(small(t, "dqn"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := tr.Policy(); !errors.Is(err, errNone) {
		t.Errorf("the policy of nothing: error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := tr.Slice(ctx, func() bool {
		if len(tr.curve) > 0 {
			cancel()
		}
		return false
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	file, p, err := tr.Policy()
	if err != nil || len(file) == 0 || p.Steps < 300 {
		t.Errorf("%d bytes of %d steps, error %v", len(file), p.Steps, err)
	}
}

func TestBadCheckpointsAreRefused(t *testing.T) {
	c := small(t, "dqn")
	tr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Slice(context.Background(), func() bool { return tr.Steps() > 350 }); err != nil {
		t.Fatal(err)
	}
	good := saved(t, tr)
	if len(good) > MaxCheckpoint {
		t.Errorf("%d bytes", len(good))
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 8
	other := func(change func(*Config)) Config { d := c; change(&d); return d }
	for name, x := range map[string]struct {
		data []byte
		cfg  Config
		want string
	}{
		"empty":         {nil, c, "not a checkpoint"},
		"cut off":       {good[:len(good)-1], c, "damaged or cut off"},
		"flipped":       {flipped, c, "damaged or cut off"},
		"foreign":       {[]byte(strings.Repeat("PK", 500)), c, "not a checkpoint"},
		"another seed":  {good, other(func(d *Config) { d.Seed = 7 }), "seed is 1: want 7"},
		"other rounds":  {good, other(func(d *Config) { d.Round = 200 }), "round is 300: want 200"},
		"other learner": {good, other(func(d *Config) { d.Learner = "ppo" }), "learner is dqn: want ppo"},
		"other work":    {good, two(t, "dqn"), "scenarios is [burst-cron-150ms"},
	} {
		if _, err := Load(bytes.NewReader(x.data), x.cfg); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: error %v: want one with %q", name, err, x.want)
		}
	}
}
