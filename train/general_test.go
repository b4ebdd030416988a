package train

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"farmhand/policy/learned"
	"farmhand/rl"
	"farmhand/sim/workload"
)

// A policy that may only take some actions takes no others, in training and as a file.
func TestOnlySomeActions(t *testing.T) {
	c := small(t, "ppo")
	c.Only = []string{"hold", "+1", "rule"}
	tr, file := trained(t, c)
	p, err := learned.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Only, c.Only) {
		t.Errorf("the file may take %v: want %v", p.Only, c.Only)
	}
	farm, err := tr.farms[0].Another()
	if err != nil {
		t.Fatal(err)
	}
	obs, info := farm.Reset(1, nil)
	for over := false; !over; {
		for i, allowed := range info.Mask {
			if allowed && !slices.Contains(c.Only, learned.Actions()[i]) {
				t.Fatalf("%s is allowed", learned.Actions()[i])
			}
		}
		obs, _, _, over, info = farm.Step(p.Act(obs, info.Mask))
	}
	c.Only = []string{"hold", "jump"}
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), `"jump" is no action`) {
		t.Errorf("the error is %v: want one that names the action", err)
	}
	c.Only = []string{"+1"}
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), `"hold"`) {
		t.Errorf("the error is %v: want one that asks for hold", err)
	}
}

// A policy should be as good as its peer: what that has on time is aimed at, and what it
// costs is the unit of cost.
func TestPeerIsMeasured(t *testing.T) {
	c := two(t, "ppo")
	c.Steps, c.Peer, c.Tolerance, c.Margin = 300, "static:n=12", 0.02, 0.1
	tr, _ := trained(t, c)
	for i, p := range tr.peer.Cases {
		target := c.Scenarios[i].Farm.Target
		if want := max(target+0.1*(1-target), p.OnTime-0.02); math.Abs(tr.aim(i)-want) > 1e-12 || p.Workers < 10 || p.Workers > 12 {
			t.Errorf("%s: the aim is %g with a peer at %g on %g: want %g", p.Scenario, tr.aim(i), p.OnTime, p.Workers, want)
		}
	}
	at := tr.curve[0]
	if want := (at.Cases[0].Workers/tr.peer.Cases[0].Workers + at.Cases[1].Workers/tr.peer.Cases[1].Workers) / 2; math.Abs(at.Cost-want) > 1e-12 {
		t.Errorf("the cost is %g: want %g of the peer's", at.Cost, want)
	}
	tr.peer.Cases[0].OnTime, tr.cfg.Tolerance = 1, 0
	if a := tr.aim(0); a >= 1 {
		t.Errorf("the aim is %g: want less than all", a)
	}
	tr.cfg.Scenarios[0].Farm.Target = 0.99995
	if a := tr.aim(0); a < 0.99995 || a >= 1 {
		t.Errorf("the aim is %g: want one between the target and all", a)
	}
	c.Peer = "magic"
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "Peer") {
		t.Errorf("the error is %v: want one that names Peer", err)
	}
}

// A peer without workers is no unit of cost: that is said before anything is learned.
func TestPeerNeedsWorkers(t *testing.T) {
	c := small(t, "dqn")
	s := *c.Scenarios[0]
	s.Farm.Min, s.Farm.Start = 0, 0
	c.Scenarios, c.Peer = []*workload.Scenario{&s}, "static:n=0"
	tr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "Peer static:n=0 has no workers on "+s.Name) || tr.Steps() != 0 {
		t.Errorf("%d steps, error %v: want one that names the peer, before all steps", tr.Steps(), err)
	}
}

// Of several scenarios, none decides alone: lateness has a price.
func TestCompareOverSeveralScenarios(t *testing.T) {
	cases := make([]Case, 4)
	hard := Point{Cost: 0.8, Short: 0.1, Actions: 100, Cases: cases}
	dear, late := Point{Cost: 0.9, Actions: 100, Cases: cases}, Point{Cost: 0.8, Short: 4, Actions: 100, Cases: cases}
	missed := Point{Cost: 0.5, Missed: 0.01, Actions: 100, Cases: cases}
	list := []*Point{&missed, &late, &dear, &hard}
	slices.SortFunc(list, func(a, b *Point) int { return Compare(a, b, 300) })
	for i, want := range []*Point{&hard, &dear, &late, &missed} {
		if list[i] != want {
			t.Errorf("place %d is for %+v: want %+v", i, *list[i], *want)
		}
	}
}

// A training that begins from a policy does what that does, before it learns.
func TestFromAPolicy(t *testing.T) {
	_, file := trained(t, small(t, "ppo"))
	teacher, err := learned.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, learner := range []string{"ppo", "dqn"} {
		c := small(t, learner)
		c.Seed, c.From, c.Clone, c.Rule = 5, file, 3000, "staffing:headroom=0.8"
		tr, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Slice(context.Background(), func() bool { return true }); err != nil || tr.Steps() != 0 {
			t.Fatalf("%d steps: %v: want the imitation alone", tr.Steps(), err)
		}
		farm, err := tr.farms[0].Another()
		if err != nil {
			t.Fatal(err)
		}
		same, n := 0, 0
		for seed := range uint64(5) {
			obs, info := farm.Reset(seed, nil)
			for over := false; !over; n++ {
				action := farm.Nearest(teacher)
				if tr.learner.Act(obs, info.Mask) == action {
					same++
				}
				obs, _, _, over, info = farm.Step(action)
			}
		}
		if float64(same) < 0.9*float64(n) {
			t.Errorf("%s: %d of %d actions are the policy's", learner, same, n)
		}
	}
	c := small(t, "ppo")
	c.From = file
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "Clone is 0") {
		t.Errorf("the error is %v: want one that asks for Clone", err)
	}
	c.From, c.Clone = []byte("no policy"), 100
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "From") {
		t.Errorf("the error is %v: want one that names From", err)
	}
}

// Who begins with another policy takes a quarter of the steps, each twice as large.
func TestTuned(t *testing.T) {
	_, file := trained(t, small(t, "ppo"))
	scenario := small(t, "dqn").Scenarios[0]
	rate := func(c Config) float64 {
		tr, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		var s rl.DQNConfig
		if err := json.Unmarshal(tr.config, &s); err != nil {
			t.Fatal(err)
		}
		return s.LearningRate
	}
	c, whole := Tuned(file, scenario), Default(scenario)
	if c.Steps != whole.Steps/4 || c.Warmup != whole.Warmup/4 || rate(c) != 2*rate(whole) {
		t.Errorf("%d steps, %d of them to warm up, at a rate of %g: want a quarter of %d and %d at twice %g", c.Steps, c.Warmup, rate(c), whole.Steps, whole.Warmup, rate(whole))
	}
}
