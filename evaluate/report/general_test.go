package report

import (
	"fmt"
	"strings"
	"testing"

	"farmhand/evaluate"
	"farmhand/sim/workload"
)

// ran is an entry with two equal episodes of ten thousand tasks; the target is 95 %.
func ran(scenario, name string, late int, workers float64) evaluate.Entry {
	e := entry(name, evaluate.Pooled, 0, 0)
	e.Scenario = &workload.Scenario{Name: scenario, Farm: e.Scenario.Farm}
	for i := range e.Episodes {
		r := &e.Episodes[i].Result
		r.Tasks, r.Decided, r.Done, r.Late, r.MeanWorkers, r.WorkerSeconds = 10_000, 10_000, 10_000, late, workers, 3600*workers
	}
	return e
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		late, ruleLate int // of 10,000; 500 may be
		workers        float64
		want           outcome
		why            string
	}{
		"cheaper":                       {100, 100, 9.8, win, ""},
		"cheaper, and a little later":   {150, 100, 9.8, win, ""},
		"cheaper, and too much later":   {151, 100, 9.8, loss, "later than the rule by 0.51 points"},
		"much cheaper, target missed":   {501, 490, 5, loss, "late: target missed"},
		"missed, and too much later":    {600, 100, 5, loss, "late: target missed; later than the rule by 5.00 points"},
		"just on target":                {500, 490, 9.8, win, ""},
		"a little cheaper":              {100, 100, 9.95, tie, ""},
		"a little dearer":               {100, 100, 10.05, tie, ""},
		"as dear, and too much later":   {200, 100, 10, loss, "later than the rule by 1.00 points"},
		"dearer":                        {50, 100, 10.2, loss, "costs 2.0 % more"},
		"nothing is right":              {600, 100, 11, loss, "late: target missed; later than the rule by 5.00 points; costs 10.0 % more"},
		"only the policy is on target":  {400, 600, 20, win, "the rule misses the target"},
		"both miss, the policy is best": {550, 900, 5, loss, "late: target missed"},
	} {
		p, rule := ran("toy", "p", test.late, test.workers), ran("toy", "rule", test.ruleLate, 10)
		if o, why := judge(&p, &rule); o != test.want || why != test.why {
			t.Errorf("%s: %s, %q; want %s, %q", name, o, why, test.want, test.why)
		}
	}
}

// general has three files: a is the best, b the median as it wins less, c costs more.
func general(test, training []string) *General {
	d := &General{Command: "make it", Machine: "a machine", Commit: "abc", Judging: []uint64{1001, 1002}, Oracle: 2,
		Rule:     evaluate.Contender{Name: "staffing", Spec: "staffing:down=1", Origin: evaluate.Pooled},
		Policies: []GeneralPolicy{{"c.safetensors", "seed 3", "ppo"}, {"a.safetensors", "seed 1", "ppo"}, {"b.safetensors", "seed 2", "dqn"}}}
	cases := func(names []string) (list []GeneralCase) {
		for i, name := range names {
			b := 9.0
			if i == 0 {
				b = 10.05 // a tie
			}
			own, oracle := ran(name, "kpa", 300, 8), ran(name, "oracle", 490, 5)
			oracle.Episodes = oracle.Episodes[:1]
			list = append(list, GeneralCase{Rule: ran(name, "staffing", 100, 10), Own: &own, Oracle: &oracle,
				Policies: []evaluate.Entry{ran(name, "c", 100, 12), ran(name, "a", 100, 8), ran(name, "b", 120, b)}})
		}
		return list
	}
	d.Test, d.Training = cases(test), cases(training)
	return d
}

func contains(t *testing.T, d *General, wanted ...string) string {
	t.Helper()
	var b strings.Builder
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range wanted {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	return b.String()
}

func TestGeneral(t *testing.T) {
	d := general(workload.Test, []string{"ramp"})
	text := contains(t, d,
		"staffing, calibrated on the training half as a whole", "at commit abc on a machine", "seeds 1001–1002", "(2 seeds)",
		"| a.safetensors | seed 1 | 8 | 0 | 0 | 100.0 | -20.0 | +0.0 |\n| b.safetensors (median) | seed 2 | 7 | 1 | 0 | 93.8 | -8.7 | +12.5 |\n| c.safetensors (worst) | seed 3 | 0 | 0 | 8 | 0.0 | +20.0 | +50.0 |",
		"The policy is `b.safetensors`",
		"| flash | 95 | 99.00 @ 10.00 | 98.80 @ 9.00 | 0 | -10.00 ± 0.00 | win | kpa: 97.00 @ 8.00 | +12.50 ± 0.00 | 95.10 @ 5.00 | +100.00 | +80.00 |",
		"| variable | 95 | 99.00 @ 10.00 | 98.80 @ 10.05 | 0 | +0.50 ± 0.00 | tie |",
		"Score: 7 wins and 1 ties of 8, 93.8 %; wanted are 70 %: met.",
		"+12.5 % worker-seconds in the median; wanted are +5 % at most: not met.",
		"- flash: +12.50 ± 0.00 % beyond kpa, with 98.80 instead of 97.00 % on time. The own rule is +60.00 % beyond the oracle, the policy +80.00 %.",
		"## The training half", "| ramp | 95 |", "- the rule (pooled): `staffing:down=1`", "- `b.safetensors`: dqn", "- own rule of ramp: `kpa:n=1`",
	)
	if strings.Contains(text, "No score") || strings.Contains(text, "NaN") {
		t.Error(text)
	}
	for i := range d.Test {
		d.Test[i].Oracle = nil
	}
	d.Oracle, d.Test[0].Own, d.Rule.Origin = 0, nil, evaluate.Given
	contains(t, d, "with parameters that were given", "The plan oracle was left out.", "| – | – | – | – | – |\n", "| +12.5 (of 7) |", "Only 7 of 8 scenarios have a rule of their own")
}

// A policy that is not judged on the whole test half has no score.
func TestGeneralInPart(t *testing.T) {
	d := general(workload.Test[:3], nil)
	d.Missing, d.Pending = []string{"trace:huawei_private_f104: no folder"}, []string{"ramp", "constant"}
	text := contains(t, d, "| b.safetensors (median) | seed 2 | 2 | 1 | 0 | – |", "No score: 3 of 8 test scenarios were judged.",
		"Left out: trace:huawei_private_f104: no folder.", "goes on: ramp, constant.")
	if strings.Contains(text, "Score: ") || strings.Contains(text, "## The training half") {
		t.Error(text)
	}
	text = contains(t, general(nil, workload.Training[:3]), "| b.safetensors (median) | seed 2 | 2 | 1 | 0 | – |", "no test scenario was judged")
	if strings.Contains(text, "## The test half") {
		t.Error(text)
	}
}

// Of equal scores the cheaper policy is the better one.
func TestGeneralOrder(t *testing.T) {
	d := general(workload.Test[:1], nil)
	for i, workers := range []float64{8, 6, 7} {
		d.Test[0].Policies[i] = ran("toy", fmt.Sprint(i), 100, workers)
	}
	if m, w := d.Policies[d.Median()].File, d.Policies[d.Worst()].File; m != "b.safetensors" || w != "c.safetensors" {
		t.Errorf("the median is %s, the worst %s: want b and c", m, w)
	}
}
