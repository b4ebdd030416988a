package paper

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"farmhand/env"
	"farmhand/env/envtest"
	"farmhand/env/farmenv"
)

// small is a training of a second: nothing worth having is learned in it.
func small(t *testing.T, learner string) Config {
	t.Helper()
	s, err := Preset(learner)
	if err != nil {
		t.Fatal(err)
	}
	s.SetSteps(240)
	s.Envs, s.Round, s.Looks, s.Final, s.Warmup = 2, 120, 2, 2, 0
	if s.DQN != nil {
		s.DQN.LearningStarts, s.DQN.Hidden = 60, []int{8}
	}
	if s.PG != nil {
		s.PG.Rollout, s.PG.Epochs, s.PG.Hidden = 30, 2, []int{8}
	}
	return Config{Case: Case{Scenario: "paper-fixed"}, Learner: learner, Settings: s, Seed: 1}
}

func train(t *testing.T, c Config) []byte {
	t.Helper()
	p, err := Train(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTrainingIsReproducible(t *testing.T) {
	for _, learner := range Learners() {
		a, b := train(t, small(t, learner)), train(t, small(t, learner))
		if !bytes.Equal(a, b) {
			t.Errorf("%s: equal configurations gave different policies", learner)
		}
		c := small(t, learner)
		c.Seed++
		if bytes.Equal(a, train(t, c)) {
			t.Errorf("%s: another seed gave the same policy", learner)
		}
	}
}

// A policy that was written and read acts as the learner does; an inclination to hold
// changes only what it does where it does not hold.
func TestPolicyActsAsTheLearner(t *testing.T) {
	for _, learner := range Learners() {
		tr, err := newTrainer(small(t, learner))
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.round(context.Background()); err != nil {
			t.Fatal(err)
		}
		c, err := tr.snapshot()
		if err != nil {
			t.Fatal(err)
		}
		calm, err := Parse(c.file)
		if err != nil {
			t.Fatal(err)
		}
		calm.Calm = 1e6
		seen := 0
		_, err = play(context.Background(), tr.judge, func(obs []float64) int {
			action := c.policy.Act(obs)
			shown := obs
			if tr.cfg.Settings.Logarithms {
				shown = withLogs(nil, obs)
			}
			if want := tr.learner.Act(shown, nil); action != want {
				t.Fatalf("%s: the policy takes action %d at %v: want %d", learner, action, obs, want)
			}
			if a := calm.Act(obs); a != tr.judge.Hold() {
				t.Fatalf("%s: inclined to hold it takes action %d", learner, a)
			}
			seen++
			return seen % 3
		}, 5, 5)
		if err != nil || seen < 100 {
			t.Fatalf("%d observations, error %v", seen, err)
		}
	}
}

func TestLogarithmsConform(t *testing.T) {
	envtest.Check(t, func() env.Env {
		f, err := Case{Scenario: "paper-fixed"}.Env(farmenv.Weighed)
		if err != nil {
			t.Fatal(err)
		}
		return withInputs(f, true)
	})
}

// The weight on lateness rises while too many are late, and falls while too few are.
func TestLatenessIsWeighedByTheTarget(t *testing.T) {
	for learner, sign := range map[string]float64{"ppo": 1, "sarsa": -1} { // which at first take every worker away, or add one
		c := small(t, learner)
		c.Settings.Target, c.Settings.Dual = 0.6, 0.1
		var weights []float64
		c.Done = func(_ int, _ Score, late float64) { weights = append(weights, late) }
		train(t, c)
		if len(weights) < 2 || (weights[1]-weights[0])*sign <= 0 {
			t.Errorf("%s: the weight goes %v", learner, weights)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	good := string(train(t, small(t, "sarsa")))
	net := string(train(t, small(t, "dqn")))
	for name, b := range map[string]string{
		"nothing":         "",
		"cut off":         good[:len(good)/2],
		"another format":  strings.Replace(good, Format, "x", 1),
		"no such case":    strings.Replace(good, "paper-fixed", "constant", 1),
		"both":            strings.Replace(good, `"table":`, `"network":{},"table":`, 1),
		"neither":         strings.Replace(good, `"table":`, `"chair":`, 1),
		"another action":  strings.Replace(good, `"scenario":"paper-fixed"`, `"scenario":"paper-fixed","jumps":true`, 1),
		"too many layers": strings.Replace(net, `"Layers":[`, `"Layers":[{"In":9,"Out":1,"Weight":[1],"Bias":[0]},`, 1),
		"no activation":   strings.Replace(net, `"Activation":"relu","Layers"`, `"Activation":"steep","Layers"`, 1),
		"wrong outputs":   strings.Replace(net, `"scenario":"paper-fixed"`, `"scenario":"paper-fixed","jumps":true`, 1),
	} {
		if b == good || b == net {
			t.Fatalf("%s: the test changes nothing", name)
		}
		if _, err := Parse([]byte(b)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSettingsRefuse(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		"Steps": func(s *Settings) { s.Steps = 0 }, "Target": func(s *Settings) { s.Target = math.NaN() },
		"Final": func(s *Settings) { s.Final = 0 }, "no learner": func(s *Settings) { s.PG = nil },
		"Reward": func(s *Settings) { s.Reward = "" },
	} {
		c := small(t, "ppo")
		change(&c.Settings)
		if _, err := Train(context.Background(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: want one about %s", err, want)
		}
	}
}

// Each row has its own files and a learner that there is; the report orders seeds by
// cost among those that reach the target, and says what is reached.
func TestReport(t *testing.T) {
	files := map[string]bool{}
	for _, row := range Plan() {
		for seed := range uint64(3) {
			files[row.File(seed)] = true
		}
		c, err := row.Config(1)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Settings.Validate(); err != nil || c.Settings.Target != row.Target {
			t.Errorf("%s: target %g, error %v", row.File(1), c.Settings.Target, err)
		}
		if _, err := row.Case.Env(farmenv.Published); err != nil {
			t.Error(err)
		}
	}
	checkRow(t)
	if len(files) != 3*len(Plan()) {
		t.Errorf("%d files for %d rows with three seeds", len(files), len(Plan()))
	}

	result := func(onTime, workers float64) *Result {
		return &Result{OnTime: []float64{onTime, onTime}, StepQoS: []float64{1, 1}, Workers: []float64{workers, workers}, Actions: []float64{8, 8}}
	}
	m := Measured{Row: Row{Case: Case{Scenario: "paper-fixed"}, Learner: "ppo", Target: 0.99, Goals: []Goal{{0.985, 14.4, 12}, {0.99, 13.7, 12}}},
		Results: []*Result{result(0.98, 12), result(0.995, 13.5), result(0.99, 13.9)}}
	if got := m.Order(); got[0] != 1 || got[1] != 2 || got[2] != 0 {
		t.Errorf("seeds in the order %v: want 1 2 0", got)
	}
	r := Report{Rows: []Measured{m}}
	table := r.Table("paper-fixed")
	if !strings.Contains(table, "| 99.00 ± 0.00 | 13.90 ± 0.00 | 8.00 ± 0.00 | 99.50 @ 13.50, 8.0 | 98.00 @ 12.00, 8.0 | 98.5 @ 14.4, 12; 99.0 @ 13.7, 12 | 2 of 3; 1 of 3 |") {
		t.Errorf("the table is\n%s", table)
	}
	m.Goals[1].Workers = 13.95
	if table := r.Table("paper-fixed"); !strings.Contains(table, "| 2 of 3; 2 of 3 |") {
		t.Errorf("the table is\n%s", table)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil || !strings.Contains(b.String(), "99.20") {
		t.Errorf("error %v, report\n%s", err, b.String())
	}
}

// checkRow: a row takes what was learned with its settings, and nothing else.
func checkRow(t *testing.T) {
	t.Helper()
	row := Row{Case: Case{Scenario: "paper-fixed"}, Learner: "sarsa-published"}
	c, err := row.Config(2)
	if err != nil {
		t.Fatal(err)
	}
	c.Settings.setSeed(2)
	settings, err := json.Marshal(c.Settings)
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{Case: row.Case, Learner: row.Learner, Seed: 2, Settings: settings}
	if err := row.Check(&p, 2); err != nil {
		t.Error(err)
	}
	longer := row
	longer.Steps = 7428
	for _, err := range []error{row.Check(&p, 3), longer.Check(&p, 2), Row{Case: row.Case, Learner: "sarsa"}.Check(&p, 2)} {
		if err == nil {
			t.Error("another policy than the row's: no error")
		}
	}
}

// A farm that nobody scales: its workers, and what headroom there is.
func TestStatic(t *testing.T) {
	last := 0.0
	for n := 12; n <= 16; n += 2 {
		r, err := Static(context.Background(), "paper-fixed", n, 40)
		if err != nil {
			t.Fatal(err)
		}
		s := r.Score()
		if math.Abs(s.Workers-float64(n)) > 1e-9 || s.Actions != 0 || s.OnTime <= last {
			t.Errorf("%d workers: %+v after %g on time", n, s, last)
		}
		last = s.OnTime
	}
	if last < 0.995 {
		t.Errorf("sixteen workers have %g on time: want nearly all", last)
	}
}
