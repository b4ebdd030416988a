package report

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"farmhand/evaluate"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// entry has two episodes of a thousand tasks, an hour each.
func entry(name string, origin evaluate.Origin, late int, workers float64) evaluate.Entry {
	e := evaluate.Entry{
		Scenario:  &workload.Scenario{Name: "toy", Farm: workload.Farm{Target: 0.95, Deadline: 1}},
		Contender: evaluate.Contender{Name: name, Spec: name + ":n=1", Origin: origin},
	}
	for seed := range uint64(2) {
		w := workers + 0.1*float64(seed)
		e.Episodes = append(e.Episodes, evaluate.Episode{Seed: seed, Result: sim.Result{
			Horizon: 3600, Tasks: 1000, Decided: 1000, Done: 1000, Late: late + int(seed), MeanWorkers: w, WorkerSeconds: 3600 * w, PeakWorkers: 9, P95: 0.2, Windows: 10}})
	}
	return e
}

func entries() []evaluate.Entry {
	return []evaluate.Entry{
		entry("slow", evaluate.Default, 300, 2),
		entry("slower", evaluate.Default, 400, 1),
		entry("rule", evaluate.Calibrated, 40, 8),
		entry("static", evaluate.Calibrated, 10, 10),
		entry("oracle", evaluate.Bound, 45, 5),
	}
}

func TestRank(t *testing.T) {
	list := Rank(entries())
	if len(list) != 1 {
		t.Fatalf("%d rankings", len(list))
	}
	r := list[0]
	var names []string
	for _, p := range r.Places {
		names = append(names, p.mark()+p.Policy)
	}
	if got := strings.Join(names, " "); got != "○oracle ★rule static ✗slow ✗slower" {
		t.Error(got)
	}
	if more := r.Places[2].More; math.Abs(float64(more.Mean)-2) > 1e-9 || float64(more.Hi-more.Lo) > 1e-9 {
		t.Errorf("static beyond the rule: %+v", more)
	}
	want := "toy: rule (calibrated) is the cheapest that keeps 95 % on time: 8.05 workers at 95.95 %. A fixed count needs 10.05. " +
		"The oracle shows that 37 % at most could still be saved. 2 of 4 miss the target."
	if got := r.Verdict(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if r.Against("static", evaluate.Front{entry("static", evaluate.Calibrated, 10, 10), entry("static", evaluate.Calibrated, 60, 9)}, entries()); math.Abs(float64(r.Places[0].Saves.Mean)-4.3/9.35) > 1e-9 {
		t.Errorf("the oracle saves %+v", r.Places[0].Saves)
	}
	none := Rank(entries()[:2])[0]
	if got := none.Verdict(); got != "toy: no policy keeps 95 % on time." || none.Places[0].Best {
		t.Error(got)
	}
	free := entries()[:1]
	for i := range free[0].Episodes {
		free[0].Episodes[i].Result.Decided = 0
	}
	if got := Rank(free)[0].Verdict(); got != "toy: no task has a deadline, so that cost alone decides: slow has 2.05 workers." {
		t.Error(got)
	}
	e := entries()
	e[2].Episodes[0].Result.Saturated = true
	if r := Rank(e)[0]; r.Places[1].mark() != "★!" || !strings.Contains(r.Verdict(), "more than the farm's maximum") {
		t.Errorf("%s %s", r.Places[1].mark(), r.Verdict())
	}
}

func TestTables(t *testing.T) {
	var text, markdown, table bytes.Buffer
	list := Rank(entries())
	back := entries()
	back[0].Episodes[0].Result.HandBacks = 3
	if err := Text(&text, list); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"★  rule", "95.95 ± 0.64", "8.05 ± 0.64", "-3.00 ± 0.00", "\n  rule:n=1\n", "→ toy: rule"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if err := Markdown(&markdown, &list[0]); err != nil || !strings.Contains(markdown.String(), "| ★ | **rule** | calibrated | 95.95 ± 0.64 |") {
		t.Errorf("%v\n%s", err, markdown.String())
	}
	if strings.Contains(markdown.String(), "hand-backs") {
		t.Errorf("hand-backs, of which there were none, in\n%s", markdown.String())
	}
	markdown.Reset()
	if err := Markdown(&markdown, &Rank(back)[0]); err != nil || !strings.Contains(markdown.String(), "| hand-backs/h |") || !strings.Contains(markdown.String(), "| 1.50 |\n") {
		t.Errorf("%v, want 3 hand-backs in two hours in\n%s", err, markdown.String())
	}
	var rows []evaluate.Row
	for _, e := range entries() {
		rows = append(rows, e.Row())
	}
	if err := CSV(&table, rows); err != nil {
		t.Fatal(err)
	}
	cells, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(cells) != 6 || cells[0][3] != "on_time" || cells[3][0] != "rule" || cells[3][3] != "0.9595" {
		t.Errorf("%v %v", cells, err)
	}
}

func TestDrawings(t *testing.T) {
	run := []Moment{{At: 0, Arrivals: 20, Wanted: 1, Ready: 1, P95: 0.1}, {At: 2, Arrivals: 200, Waiting: 300, Wanted: 8, Ready: 1, P95: math.NaN()}, {At: 4, P95: 2}}
	for name, draw := range map[string]func(io.Writer) error{
		"timeline":             func(w io.Writer) error { return Timeline(w, "toy", run, 0.15) },
		"timeline without due": func(w io.Writer) error { return Timeline(w, "toy", run, 0) },
		"empty timeline":       func(w io.Writer) error { return Timeline(w, "toy", nil, 0.15) },
		"learning": func(w io.Writer) error {
			return Learning(w, "toy", []Progress{{"seed 1", []Looked{{1000, 0.5, 3}, {2000, 0.96, 8}}}}, []Level{{"rule", 0.95, 9}}, 0.95)
		},
		"pareto": func(w io.Writer) error {
			return Pareto(w, "toy", entries(), map[string]evaluate.Front{"rule": entries()[2:4]})
		},
	} {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d := xml.NewDecoder(&b)
		n := 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			if s, ok := token.(xml.StartElement); ok && (s.Name.Local == "path" || s.Name.Local == "text") {
				n++
			}
		}
		if n < 10 {
			t.Errorf("%s: %d lines and words", name, n)
		}
	}
}

func TestResults(t *testing.T) {
	list := entries()
	front := evaluate.Front{entry("static", evaluate.Calibrated, 10, 10), entry("static", evaluate.Calibrated, 60, 9)}
	d := Results{Command: "farmhand report peers", Machine: "a machine", Commit: "abc", Training: evaluate.TrainingSeeds(), Judging: []uint64{1001, 1002}, Oracle: 2,
		Missing: []string{"the traces: no folder"}, Pending: []string{"flash", "ramp"},
		Examinations: []*evaluate.Examination{{Scenario: list[0].Scenario, Load: 3.2, Entries: list, Peer: list[3], Front: front,
			Calibrations: []*evaluate.Calibration{{Hours: 12}}}}}
	var b bytes.Buffer
	if err := d.Write(&b, func(scenario, kind string) string { return scenario + "-" + kind + ".svg" }); err != nil {
		t.Fatal(err)
	}
	// At 4.5 % late the family needs 10 − 0.7 + 0.05 workers; the oracle has 5.05.
	for _, want := range []string{
		"at commit abc on a machine", "seeds 1–8", "seeds 1001–1002", "| toy | 3.20 | static | 98.95 | 10.05 | 10.05 | – | – | 46 ± 0 % | yes |",
		"Missing: the traces: no folder.", "goes on: flash, ramp.", "![lateness against workers](toy-pareto.svg)", "Peer: static. Saved of its cost at equal lateness: oracle 46.0 ± 0.0 %.",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// The median and the worst of the training seeds are compared with the peer, at equal
// lateness and as they stand.
func TestLearned(t *testing.T) {
	c := LearnedCase{Peer: entry("static", evaluate.Calibrated, 10, 10),
		Front:    evaluate.Front{entry("static", evaluate.Calibrated, 10, 10), entry("static", evaluate.Calibrated, 60, 9)},
		Policies: []evaluate.Entry{entry("a", evaluate.PolicyFile, 40, 7), entry("b", evaluate.PolicyFile, 40, 5), entry("c", evaluate.PolicyFile, 80, 4)},
		Others:   []evaluate.Entry{entry("timer", evaluate.Calibrated, 40, 8), entry("oracle", evaluate.Bound, 45, 5)}}
	if m, w := c.Median().Contender.Name, c.Worst().Contender.Name; m != "a" || w != "c" {
		t.Errorf("the median is %s, the worst %s: want a and c, which is late", m, w)
	}
	var b strings.Builder
	d := Learned{Command: "make it", Machine: "a machine", Commit: "abc", Judging: []uint64{1001, 1002}, Oracle: 2, Cases: []LearnedCase{c}}
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	// At 4 % late the peer's family needs 9.45 workers, a has 7.05, and timer 8.05.
	for _, want := range []string{
		"| toy | 95 | static | 98.95 | 10.05 | 95.95 | 7.05 | 25.4 ± 0.0 | 91.95 | 4.05 | – | -12.4 ±", "| 46.",
		"a (median)", "c (worst)", "saves %", "The median of 3 meets the target. Beyond the peer as it stands: -3.00 ± 0.00 points on time, -29.85", "The worst of 3 misses",
		"- `static:n=1`",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// The earlier study stands beside what was examined, and only where its scenarios were.
func TestBesideTheEarlierStudy(t *testing.T) {
	one := entry("timer", evaluate.Calibrated, 20, 6)
	e := &evaluate.Examination{Scenario: &workload.Scenario{Name: "burst-cron-150ms"}, Entries: []evaluate.Entry{one}}
	d := Results{Examinations: []*evaluate.Examination{e}}
	var b bytes.Buffer
	d.compare(&b)
	if got := b.String(); !strings.Contains(got, "| 6.05 (98.0 %) | 5.79 |") || strings.Contains(got, "| burst-150ms |") {
		t.Error(got)
	}
	b.Reset()
	e.Scenario.Name = "toy"
	if d.compare(&b); b.Len() > 0 {
		t.Error(b.String())
	}
}
