package evaluate

import (
	"context"
	"crypto/sha256"
	"fmt"

	"farmhand/policy"
	"farmhand/sim/workload"
)

// Seeds for choosing parameters, and those for judging the choice. No seed is both.
func TrainingSeeds() []uint64   { return seeds(1, 8) }
func EvaluationSeeds() []uint64 { return seeds(1001, 20) }

func seeds(first uint64, n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = first + uint64(i)
	}
	return list
}

// Budget is what a calibration may use. An evaluation is one candidate that serves a
// horizon of each scenario, in several runs where the scenario is shorter.
type Budget struct {
	Random      int     // candidates drawn evenly, each for a quarter of the horizon
	Generations int     // of the cross-entropy method
	Population  int     // candidates of a generation, each for the horizon
	Final       int     // candidates that all training seeds choose from
	Horizon     float64 // s at most
	Seeds       []uint64
}

// FullBudget is that of published figures.
func FullBudget() Budget {
	return Budget{Random: 120, Generations: 5, Population: 16, Final: 7, Horizon: 3600, Seeds: TrainingSeeds()}
}

// QuickBudget is for a first look.
func QuickBudget() Budget {
	return Budget{Random: 32, Generations: 3, Population: 8, Final: 4, Horizon: 3600, Seeds: TrainingSeeds()[:3]}
}

// Calibration is what was found for a family on one scenario, or on several at once.
type Calibration struct {
	Family      string   `json:"family"`
	Scenarios   []string `json:"scenarios"`
	Free        int      `json:"free_parameters"`
	Best        Tuned    `json:"best"`
	Front       []Tuned  `json:"front"` // members of the family that trade lateness for cost, the least late first
	Evaluations int      `json:"evaluations"`
	Hours       float64  `json:"simulated_hours"`
	Seeds       []uint64 `json:"training_seeds"`
}

// Tuned is a member of a family and what it came to on the training seeds.
type Tuned struct {
	Specification string         `json:"specification"`
	Values        []float64      `json:"values"`
	OnTime        []policy.Maybe `json:"on_time"` // by scenario
	Cost          float64        `json:"cost"`    // worker-seconds per second of offered work, mean over the scenarios
	OnTarget      bool           `json:"on_target"`
	MeanWorkers   []float64      `json:"mean_workers"` // by scenario
}

// Contender is the calibrated member of the family.
func (c *Calibration) Contender(f Family, t Tuned) (Contender, error) {
	member, err := f.Make(t.Values)
	if err != nil {
		return Contender{}, err
	}
	member.Free = c.Free
	if len(c.Scenarios) > 1 && member.Origin == Calibrated {
		member.Origin = Pooled
	}
	return member, nil
}

// Members are the contenders of the front.
func (c *Calibration) Members(f Family) ([]Contender, error) {
	list := make([]Contender, len(c.Front))
	for i, t := range c.Front {
		var err error
		if list[i], err = c.Contender(f, t); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Calibrator searches the parameters of a family for the fewest worker-seconds with
// which enough tasks are on time, on each of the scenarios.
//
// First, points drawn evenly serve a quarter of the horizon, that stretch of the
// first seed's work which is most like the whole; the best tenth begins a
// cross-entropy search, each generation of which has a training seed of its own and
// one horizon for each candidate. From all of these a shortlist, with the default
// among it, serves all training seeds, and that decides. The shortlist is on top of
// the budget of a search: without it chance would choose, as one hour of a bursty
// farm is as much luck as the last tenths of a worker are skill.
//
// The result depends on the arguments alone, not on Jobs.
//
// A Calibrator belongs to one goroutine; it starts its own.
type Calibrator struct {
	Settings
	Budget Budget

	probes map[*workload.Scenario]*probe
}

// trial is a candidate and what it came to.
type trial struct {
	Tuned
	point   []float64
	targets []float64
}

// levels of lateness, in what the target allows, that a shortlist has candidates
// for: the target itself, some that are safe on other seeds, and a front.
var levels = []float64{1, 0.75, 0.5, 1, 2, 0.75, 1}

// Calibrate a family.
func (c *Calibrator) Calibrate(ctx context.Context, f Family, scenarios []*workload.Scenario) (*Calibration, error) {
	if len(scenarios) == 0 || len(c.Budget.Seeds) == 0 {
		return nil, fmt.Errorf("evaluate: calibrating %s: want at least one scenario and one training seed", f.Name)
	}
	for _, s := range scenarios {
		if !HasDues(s) {
			return nil, fmt.Errorf("evaluate: calibrating %s: the tasks of %s have no deadline that could be kept: want one (farm.deadline of a scenario file)", f.Name, s.Name)
		}
	}
	f = f.bounded(scenarios)
	key, kept, err := c.kept(ctx, f, scenarios, c.Budget)
	if err != nil || kept != nil {
		return kept, err
	}
	s := &searching{Calibrator: c, family: f, scenarios: scenarios}
	var list []*trial
	switch {
	case f.Counted:
		list, err = s.counts(ctx)
	default:
		list, err = s.shortlist(ctx)
	}
	if err == nil {
		list, err = s.final(ctx, list)
	}
	if err != nil {
		return nil, fmt.Errorf("calibrating %s: %w", f.Name, err)
	}
	found := s.choose(list)
	if c.Store != nil {
		err = c.Store.Put(key, found)
	}
	return found, err
}

// HasDues reports whether the tasks of a scenario are due at some time.
func HasDues(s *workload.Scenario) bool { return s.Farm.Deadline > 0 || s.Farm.DeadlineFactor > 0 }

// Known is what a Store has of a family's calibration with the first of the budgets
// that it knows; nil where there is none.
func (c *Calibrator) Known(ctx context.Context, f Family, scenarios []*workload.Scenario, budgets ...Budget) (*Calibration, error) {
	f = f.bounded(scenarios)
	for _, b := range budgets {
		if _, kept, err := c.kept(ctx, f, scenarios, b); err != nil || kept != nil {
			return kept, err
		}
	}
	return nil, nil
}

// searchVersion changes when a search may find something else.
const searchVersion = 4

// kept asks the Store.
func (c *Calibrator) kept(ctx context.Context, f Family, scenarios []*workload.Scenario, b Budget) (key string, kept *Calibration, err error) {
	if c.Store == nil {
		return "", nil, nil
	}
	behaviour, err := c.behaviour(ctx, f, scenarios)
	if err != nil {
		return "", nil, err
	}
	h := sha256.New()
	fmt.Fprintf(h, "search %d %s %+v %v %+v %s\n", searchVersion, f.Name, f.Free, f.Counted, b, behaviour)
	key = "calibration " + sum(h)
	kept = &Calibration{}
	if ok, err := c.Store.Get(key, kept); err != nil || !ok {
		return key, nil, err
	}
	return key, kept, nil
}

// behaviour is that of two members of the family.
func (c *Calibrator) behaviour(ctx context.Context, f Family, scenarios []*workload.Scenario) (string, error) {
	middle := make([]float64, len(f.Free))
	for i := range middle {
		middle[i] = 0.5
	}
	keys := ""
	for _, s := range scenarios {
		known, ok := c.probes[s]
		if !ok {
			known = c.probe(s)
			if c.probes == nil {
				c.probes = map[*workload.Scenario]*probe{}
			}
			c.probes[s] = known
		}
		for _, point := range [][]float64{f.defaults(), middle} {
			member, err := f.Make(f.values(point))
			if err != nil {
				return "", err
			}
			key, err := known.contender(ctx, &member)
			if err != nil {
				return "", err
			}
			keys += key
		}
	}
	return keys, nil
}
