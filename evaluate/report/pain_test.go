package report

import (
	"testing"

	"farmhand/evaluate"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// P80 (arXiv 2605.26418, RLScale-Bench): a rule calibrated with as many trials beats
// learned policies on cost where the load has nothing to learn. On seeds that nobody
// searched, and a load that has shifted, the ranking says so, with an interval that
// excludes luck.
func TestP80TheRuleMayWin(t *testing.T) {
	load := func(rate float64) *workload.Scenario {
		s := &workload.Scenario{Name: "steady", Horizon: 1200, Arrivals: workload.Poisson{Rate: rate}, Service: workload.LogNormalOf(0.1, 0.6),
			Farm: workload.DefaultFarm(), Platform: workload.DefaultPlatform()}
		s.Farm.Deadline = 0.5
		return s
	}
	settings := evaluate.Settings{Jobs: 2, Guard: &guard.Settings{}}
	family, err := evaluate.LawFamily("staffing")
	if err != nil {
		t.Fatal(err)
	}
	c := evaluate.Calibrator{Settings: settings, Budget: evaluate.Budget{Random: 24, Generations: 3, Population: 8, Final: 6, Horizon: 1200, Seeds: evaluate.TrainingSeeds()[:2]}}
	found, err := c.Calibrate(t.Context(), family, []*workload.Scenario{load(30)})
	if err != nil {
		t.Fatal(err)
	}
	rule, err := found.Contender(family, found.Best)
	if err != nil {
		t.Fatal(err)
	}
	// What was learned on bursts: to be prepared for one.
	learned := evaluate.Contender{Name: "learned", Spec: "learned", Origin: evaluate.PolicyFile,
		Make: func(sim.Config) (policy.Policy, error) { return policy.New("staffing:headroom=1.5") }}
	study := evaluate.Study{Settings: settings, Seeds: evaluate.EvaluationSeeds()[:5]}
	entries, err := study.Run(t.Context(), []evaluate.Case{{Scenario: load(33), Contenders: []evaluate.Contender{rule, learned}}})
	if err != nil {
		t.Fatal(err)
	}
	r := Rank(entries)[0]
	if first, second := r.Places[0], r.Places[1]; first.Policy != "staffing" || !first.OnTarget() || second.Policy != "learned" || second.More.Lo <= 0 {
		t.Errorf("%s before %s, which costs %+v more", first.Policy, second.Policy, second.More)
	}
}
