package work

import (
	"bytes"
	"testing"

	"farmhand/policies"
	"farmhand/sim/workload"
	"farmhand/train"
	"farmhand/trainer"
)

// A training may begin with the policy that is shipped. The weight on lateness moves in
// the second half, however small the budget is.
func TestTrainingOfARequest(t *testing.T) {
	scenario, err := workload.Find(trainer.DefaultScenario, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plain := trainer.DefaultRequest()
	plain.Budget = 10_000
	general := plain
	general.From = trainer.General
	for _, r := range []trainer.Request{plain, general} {
		s := &session{Worker: &Worker{cfg: Config{Jobs: 1}}, run: trainer.Run{Request: r}}
		s.state.rule = "staffing:down=7"
		c := s.training(scenario)
		if c.Steps != 10_000 || c.Warmup != 5_000 || c.Fallback != "staffing:down=7" {
			t.Errorf("from %q: %d steps, %d of them until lateness finds its weight, handed back to %s", r.From, c.Steps, c.Warmup, c.Fallback)
		}
		if is := bytes.Equal(c.From, policies.General); is != (r.From == trainer.General) {
			t.Errorf("from %q: it begins with the general policy: %v", r.From, is)
		}
		if _, err := train.New(c); err != nil {
			t.Errorf("from %q: %v", r.From, err)
		}
	}
}
