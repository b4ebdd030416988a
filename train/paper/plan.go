package paper

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"

	"farmhand/env/farmenv"
	"farmhand/sim/workload"
)

// Row is a line of the report: a learner in a case, trained with several seeds.
type Row struct {
	Case    Case
	Learner string
	Target  float64 // share on time that it is trained for; 0: as published
	Steps   int     // of training; 0: the preset's
	Actions float64 // an episode that it is trained for at most; 0: the preset's
	Margin  float64 // of the choice; 0: the preset's
	Goals   []Goal  // that the row should reach
}

// Goal is what a policy should come to.
type Goal struct{ OnTime, Workers, Actions float64 } // Actions +Inf: any number

// Met reports whether a score reaches the goal.
func (g Goal) Met(s Score) bool {
	return s.OnTime >= g.OnTime && s.Workers <= g.Workers && s.Actions <= g.Actions
}

// Plan is what the report is made of.
func Plan() (rows []Row) {
	const asRun, fixed = "paper-as-run", "paper-fixed"
	any := math.Inf(1)
	for _, s := range []string{asRun, fixed} {
		best, table, jumps := Goal{0.99, 14.0, 12}, Goal{0.989, 14.8, any}, Goal{0.985, 13.2, any}
		dqn, ppo, wide := 0, 1_000_000, 0
		// Where there is little room, with a margin just wide enough: that the 1,500 episodes
		// of the choice are luckier by 0.06 points than 1,000 others has a chance of 3 %.
		margin := 0.06
		if s == fixed { // easier, one worker at a time: phases are longer and less dense
			dqn, ppo, wide, margin = 100_000, 0, 900_000, 0
			best, table, jumps = Goal{0.99, 13.7, 12}, Goal{0.992, 14.8, any}, Goal{0.985, 12.7, any}
		}
		rows = append(rows,
			Row{Case: Case{Scenario: s}, Learner: "sarsa-published"},
			Row{Case: Case{Scenario: s}, Learner: "dqn-published"},
			Row{Case: Case{Scenario: s}, Learner: "sarsa", Target: table.OnTime, Goals: []Goal{table}},
			Row{Case: Case{Scenario: s}, Learner: "dqn", Target: best.OnTime, Steps: dqn, Goals: []Goal{{0.985, 14.4, any}, best}},
			Row{Case: Case{Scenario: s}, Learner: "ppo", Target: best.OnTime, Steps: ppo, Margin: margin, Goals: []Goal{best}},
			Row{Case: Case{Scenario: s, Jumps: true}, Learner: "ppo", Target: jumps.OnTime, Steps: wide, Actions: 30, Goals: []Goal{jumps}},
			Row{Case: Case{Scenario: s, MaskClock: true}, Learner: "ppo", Target: 0.99, Steps: 200_000})
	}
	const shuffled = fixed + ":shuffled"
	return append(rows,
		Row{Case: Case{Scenario: shuffled}, Learner: "ppo", Target: 0.99, Steps: 200_000},
		Row{Case: Case{Scenario: shuffled, MaskClock: true}, Learner: "ppo", Target: 0.99, Steps: 200_000})
}

// maskedGamma is the discount where the clock is masked. Without one, a state is worth
// more the later it comes in an episode, as fewer costs follow; a farm that only grows
// then learns that many workers are worth much.
const maskedGamma = 0.9

// Config of the training of a row with a seed.
func (r Row) Config(seed uint64) (Config, error) {
	s, err := Preset(r.Learner)
	if err == nil && r.Target > 0 {
		s.Target = r.Target
	}
	if err == nil && r.Steps > 0 {
		s.SetSteps(r.Steps)
	}
	if err == nil && r.Actions > 0 {
		s.Actions = r.Actions
	}
	if err == nil && r.Margin > 0 {
		s.Margin = r.Margin
	}
	if r.Case.MaskClock && s.PG != nil {
		s.PG.Gamma = maskedGamma
	}
	return Config{Case: r.Case, Learner: r.Learner, Settings: s, Seed: seed}, err
}

// Check that a policy is what the row says of a seed, and not what was learned with
// other settings.
func (r Row) Check(p *Policy, seed uint64) error {
	c, err := r.Config(seed)
	if err != nil {
		return err
	}
	c.Settings.setSeed(seed)
	var s Settings
	if err := json.Unmarshal(p.Settings, &s); err != nil {
		return fmt.Errorf("paper: its settings: %w", err)
	}
	if p.Case != r.Case || p.Learner != r.Learner || p.Seed != seed || !reflect.DeepEqual(s, c.Settings) {
		return fmt.Errorf("paper: learned by %s in %s with seed %d and settings that the report has not: remove the file to learn it again", p.Learner, p.Case, p.Seed)
	}
	return nil
}

// File is the name of the policy file of a row with a seed.
func (r Row) File(seed uint64) string {
	name := r.Learner + "-" + r.Case.Scenario
	if r.Case.Jumps {
		name += "-jumps"
	}
	if r.Case.MaskClock {
		name += "-masked"
	}
	return fmt.Sprintf("%s-%d.json", name, seed)
}

// publishedTarget is the quality of service in the published reward.
const publishedTarget = 0.95

// Measured is what the seeds of a row came to.
type Measured struct {
	Row
	Results []*Result // by training seed
}

// Order of the training seeds, the best first: those that reach the target by what they
// cost, the others by how late they are.
func (m *Measured) Order() []int {
	target := m.Target
	if target == 0 {
		target = publishedTarget
	}
	order := make([]int, len(m.Results))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return compare(m.Results[a].Score(), m.Results[b].Score(), target, math.Inf(1))
	})
	return order
}

// Met counts the seeds that reach a goal, of all.
func (m *Measured) Met(g Goal) (seeds, all int) {
	for _, r := range m.Results {
		if g.Met(r.Score()) {
			seeds++
		}
	}
	return seeds, len(m.Results)
}

// Static measures a farm of n workers that nobody scales.
func Static(ctx context.Context, scenario string, n, episodes int) (*Result, error) {
	s, err := workload.Find(scenario, workload.Options{})
	if err != nil {
		return nil, err
	}
	s.Farm.Start = n
	e, err := farmenv.NewPaper(farmenv.PaperConfig{Scenario: s, Reward: farmenv.Published})
	if err != nil {
		return nil, err
	}
	return play(ctx, e, func([]float64) int { return e.Hold() }, unseenSeed, episodes)
}
