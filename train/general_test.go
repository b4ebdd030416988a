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

// A policy should be as good as its peer on the same work: what it is later than that is
// what counts, seed by seed, and what that needs is the unit of cost.
func TestPeerIsMeasured(t *testing.T) {
	c := two(t, "ppo")
	c.Steps, c.Peer, c.Tolerance, c.Dual, c.Warmup = 300, "static:n=12", 0.02, 0.5, 0
	c.Rule, c.Only, c.Seeds = "static:n=1", []string{"hold", "rule"}, c.Final // late
	tr, _ := trained(t, c)
	for _, p := range tr.peer.Cases {
		mean := 0.0
		for _, x := range p.each {
			mean += x / float64(len(c.Final))
		}
		if len(p.each) != len(c.Final) || math.Abs(mean-p.OnTime) > 1e-12 || p.Workers < 10 || p.Workers > 12 {
			t.Errorf("%s: a peer at %g on %g, by seed %v", p.Scenario, p.OnTime, p.Workers, p.each)
		}
	}
	at := tr.curve[0]
	want := Point{Cost: (at.Cases[0].Workers/tr.peer.Cases[0].Workers + at.Cases[1].Workers/tr.peer.Cases[1].Workers) / 2}
	for i, k := range at.Cases {
		later := later(k.each, tr.peer.Cases[i].each)
		want.Short += max(0, later-0.02) / ((1 - c.Margin) * (1 - c.Scenarios[i].Farm.Target))
		if step := min(max(later/0.02-1, -1), 1); math.Abs(k.Later-later) > 1e-12 || math.Abs(tr.late[i]-c.Late*math.Exp(0.5*step)) > 1e-12 {
			t.Errorf("%s is later by %g, and lateness weighs %g from then on: want %g, and %g", k.Scenario, k.Later, tr.late[i], later, c.Late*math.Exp(0.5*step))
		}
	}
	if math.Abs(at.Cost-want.Cost) > 1e-12 || math.Abs(at.Short-want.Short) > 1e-12 || at.Short == 0 {
		t.Errorf("cost %g, short %g: want %g of the peer's, %g", at.Cost, at.Short, want.Cost, want.Short)
	}
	if l := later([]float64{0.9, 0.99}, []float64{0.95, 0.9}); math.Abs(l-0.025) > 1e-12 {
		t.Errorf("later by %g: want 0.025, as what is earlier makes up for nothing", l)
	}
	c.Seeds = []uint64{2}
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "Seeds are [2]") {
		t.Errorf("the error is %v: want one that names Seeds", err)
	}
	c.Seeds, c.Peer = c.Final, "magic"
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "Peer") {
		t.Errorf("the error is %v: want one that names Peer", err)
	}
}

// Of several policies the better half makes one that trusts the rule as little as it may: not
// at all where being late is allowed, and where it is not enough to do as the rule does.
func TestMerge(t *testing.T) {
	c := two(t, "ppo")
	c.Peer, c.Rule, c.Last, c.Seeds = "static:n=6", "static:n=6", true, c.Final
	var files [][]byte
	more := slices.Index(learned.Actions(), "+1")
	for seed, taught := range []bias{{learned.Hold, 2.2}, {more, 1e6}, {learned.Hold, 2.2}} { // who holds has one replica, and is late
		c.Seed = uint64(seed)
		_, file := trained(t, c)
		file, err := biased(file, taught)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	toRule := func(file []byte) (bias float64, f *learned.File) {
		f, err := learned.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		return f.Net.Layers[len(f.Net.Layers)-1].Bias[learned.Rule], f
	}
	a, _ := toRule(files[0])
	b, _ := toRule(files[2])
	for tolerance, trusts := range map[float64]bool{1: false, 1e-6: true} {
		c.Tolerance = tolerance
		told := 0
		file, p, err := Merge(context.Background(), c, func(*learned.File, float64, Point) { told++ }, files...)
		if err != nil {
			t.Fatal(err)
		}
		bias, f := toRule(file)
		if trust := bias - (a+b)/2; math.Abs(trust-f.Trust) > 1e-9 || (trust > 0) != trusts || trust > mostTrust {
			t.Errorf("where %g of the tasks may be later the trust is %g, and said to be %g", tolerance, trust, f.Trust)
		}
		if trusts && p.Short > 0.1 {
			t.Errorf("short by %g: want the trust that mends it", p.Short)
		}
		if f.Steps < 2*c.Steps || told != 3+11 {
			t.Errorf("%d steps of all members, told %d times: want the last policy of each, once of each, and of 11 trusts", f.Steps, told)
		}
		if !slices.Equal(f.Members, []uint64{0, 2}) || f.Training["on_time"] != p.OnTime || p.Steps != f.Steps || len(p.Cases) != 2 {
			t.Errorf("the policy of %v with %v came to %+v", f.Members, f.Training, p)
		}
	}
	if _, _, err := Merge(context.Background(), c, nil, []byte("none")); err == nil {
		t.Error("what is no policy was merged")
	}
}

// A peer without workers is no unit of cost: that is said before anything is learned.
func TestPeerNeedsWorkers(t *testing.T) {
	c := small(t, "dqn")
	s := *c.Scenarios[0]
	s.Farm.Min, s.Farm.Start = 0, 0
	c.Scenarios, c.Peer, c.Seeds = []*workload.Scenario{&s}, "static:n=0", c.Final
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
	if c.Dual <= whole.Dual {
		t.Errorf("the weight on lateness moves by %g: want more than %g, as it does so less often", c.Dual, whole.Dual)
	}
	if c.Steps != whole.Steps/4 || c.Warmup != whole.Warmup/4 || rate(c) != 2*rate(whole) {
		t.Errorf("%d steps, %d of them to warm up, at a rate of %g: want a quarter of %d and %d at twice %g", c.Steps, c.Warmup, rate(c), whole.Steps, whole.Warmup, rate(whole))
	}
}
