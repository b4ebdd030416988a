package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"farmhand/evaluate"
	"farmhand/policy"
	"farmhand/sim/workload"
)

// General is a document about general policies, each one file for any farm: they were
// learned on workload.Training, and are judged on workload.Test.
type General struct {
	Command string // that makes it anew
	Machine string
	Commit  string
	Judging []uint64           // seeds
	Oracle  int                // of these, as many as the plan oracle serves; 0: none
	Rule    evaluate.Contender // whom the policies compete with: the same one everywhere
	Missing []string           // scenarios that are left out, and why
	Pending []string           // scenarios that are not judged yet

	Policies       []GeneralPolicy
	Test, Training []GeneralCase
}

// GeneralPolicy is a policy file.
type GeneralPolicy struct {
	File  string
	Seeds string // of training
	Note  string // how it was learned
}

// GeneralCase is what the policies, the rules and the bound came to on a scenario.
type GeneralCase struct {
	Policies []evaluate.Entry // in the order of General.Policies
	Rule     evaluate.Entry
	Own      *evaluate.Entry // the peer that was calibrated for the scenario; nil: none was
	Oracle   *evaluate.Entry // nil: left out
}

// What is wanted of a general policy.
const (
	wantedScore = 0.7  // share of the test scenarios that are won
	wantedOwn   = 0.05 // worker-seconds beyond the rule of each scenario, in the median
	explained   = 0.08 // beyond it, a scenario is looked at
	even        = 0.01 // of worker-seconds, within which two are as dear
	mostLater   = 0.5  // percentage points on time below the rule
	rounding    = 1e-9 // by which a difference of just mostLater may seem larger
)

// outcome of a policy on a scenario.
type outcome string

const (
	win  outcome = "win"
	tie  outcome = "tie"
	loss outcome = "loss"
)

// judge a policy beside the rule, in the means over the seeds; why says which
// conditions a loss has failed. It wins with fewer worker-seconds, as long as it meets
// the target and is hardly later than the rule, and wherever it alone meets the target.
func judge(p, rule *evaluate.Entry) (o outcome, why string) {
	row, ruleRow := p.Row(), rule.Row()
	if row.OnTarget() && !ruleRow.OnTarget() {
		return win, "the rule misses the target"
	}
	more := float64(costsMore(p, rule).Mean)
	later := 100 * (rule.Mean(evaluate.OnTime) - p.Mean(evaluate.OnTime)) // NaN where no task has a due
	var failed []string
	if !row.OnTarget() {
		failed = append(failed, "late: target missed")
	}
	if later-mostLater > rounding {
		failed = append(failed, fmt.Sprintf("later than the rule by %.2f points", later))
	}
	if !(more <= even) {
		failed = append(failed, fmt.Sprintf("costs %.1f %% more", 100*more))
	}
	switch {
	case len(failed) > 0:
		return loss, strings.Join(failed, "; ")
	case more < -even:
		return win, ""
	}
	return tie, ""
}

// tally sums a policy's cases up.
type tally struct {
	wins, ties, losses int
	more               float64   // mean of what it costs beyond the rule, a share
	own                []float64 // the same beyond the peer of each scenario, where there is one
}

func tallyOf(cases []GeneralCase, policy int) (t tally) {
	for i := range cases {
		c := &cases[i]
		p := &c.Policies[policy]
		switch o, _ := judge(p, &c.Rule); o {
		case win:
			t.wins++
		case tie:
			t.ties++
		default:
			t.losses++
		}
		t.more += float64(costsMore(p, &c.Rule).Mean) / float64(len(cases))
		if c.Own != nil {
			t.own = append(t.own, float64(costsMore(p, c.Own).Mean))
		}
	}
	return t
}

// score is the share of cases that are won; a tie is half a win.
func (t *tally) score() float64 {
	return (float64(t.wins) + float64(t.ties)/2) / float64(t.wins+t.ties+t.losses)
}

// median of values; NaN of none.
func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// judged are the cases that the policies are ordered by.
func (d *General) judged() []GeneralCase {
	if len(d.Test) > 0 {
		return d.Test
	}
	return d.Training
}

// order of the policies, the best first: by score, then by what they cost beside the rule.
func (d *General) order() []int {
	tallies, list := make([]tally, len(d.Policies)), make([]int, len(d.Policies))
	for i := range list {
		tallies[i], list[i] = tallyOf(d.judged(), i), i
	}
	slices.SortStableFunc(list, func(i, k int) int {
		a, b := &tallies[i], &tallies[k]
		return cmp.Or(cmp.Compare(b.score(), a.score()), cmp.Compare(a.more, b.more))
	})
	return list
}

// Median and Worst are those policies, by their place in Policies: see LearnedCase.Median.
func (d *General) Median() int { list := d.order(); return list[(len(list)-1)/2] }
func (d *General) Worst() int  { list := d.order(); return list[len(list)-1] }

// whole reports whether all test scenarios were judged, without which there is no score.
func (d *General) whole() bool { return len(d.Test) == len(workload.Test) }

// Write the document. At least one case must have been judged.
func (d *General) Write(w io.Writer) error {
	var b bytes.Buffer
	d.head(&b)
	d.summary(&b)
	if len(d.Test) > 0 {
		fmt.Fprint(&b, "\n## The test half\n\nNeither learning nor calibration saw these scenarios.\n\n")
		d.table(&b, d.Test)
		d.verdict(&b)
		d.dear(&b)
	}
	if len(d.Training) > 0 {
		fmt.Fprint(&b, "\n## The training half\n\nOther seeds of what the policy and the rule were made for; it counts for nothing.\n\n")
		d.table(&b, d.Training)
	}
	d.notes(&b)
	_, err := w.Write(b.Bytes())
	return err
}

func (d *General) head(b *bytes.Buffer) {
	rule := "with parameters that were given"
	if d.Rule.Origin == evaluate.Pooled {
		rule = "calibrated on the training half as a whole"
	}
	oracle := "The plan oracle was left out."
	if d.Oracle > 0 {
		oracle = fmt.Sprintf(`*Oracle* knows all that will happen (%d seeds), and is just on target: how far rule and
policy are beyond it is what could at most be saved.`, d.Oracle)
	}
	fmt.Fprintf(b, `# Results: a general policy

One policy file for any farm, learned on half of the scenarios, the training half, and judged on the other half, which it has not seen,
beside one rule for any farm: %s, %s. The training half is
%s. Made by

    %s

at commit %s on %s.

**How to read it.** All serve the same simulated work, seeds %s, which neither learning nor calibration saw, behind the guard of a live
farm. *On time %% @ workers* are means over the seeds; workers are worker-seconds over the horizon. *Beyond the rule* is how many more
worker-seconds the policy needs, paired seed by seed, ± half a 95 %% interval. A **win**: more than %g %% fewer, the target met, and not more
than %g points later than the rule; or the target met where the rule misses it. A **tie**, which counts half: within %g %% under the same
conditions. All else is a **loss**. *Own rule* is the cheapest of all laws, calibrated for that scenario alone ([Results: the peers](RESULTS.md)).
%s

✗ misses the target, ! overloaded. Of several files, learned with different seeds, the median and the worst count, not the best: in the
order of their scores, then of their cost beside the rule's.
`, d.Rule.Name, rule, strings.Join(workload.Training, ", "), d.Command, d.Commit, d.Machine, span(d.Judging), 100*even, mostLater, 100*even, oracle)
}

// summary is one line for each file, the best first.
func (d *General) summary(b *bytes.Buffer) {
	fmt.Fprint(b, "\n## Summary\n\n| file | learned with | wins | ties | losses | score % | beyond the rule %, mean | beyond own rules %, median |\n|---|---|---:|---:|---:|---:|---:|---:|\n")
	for _, i := range d.order() {
		p := &d.Policies[i]
		name := p.File
		if len(d.Policies) > 1 {
			switch i {
			case d.Median():
				name += " (median)"
			case d.Worst():
				name += " (worst)"
			}
		}
		t := tallyOf(d.judged(), i)
		score := "–"
		if d.whole() {
			score = fmt.Sprintf("%.1f", 100*t.score())
		}
		own := plus(median(t.own))
		if n := len(d.judged()); len(t.own) > 0 && len(t.own) < n {
			own += fmt.Sprintf(" (of %d)", len(t.own))
		}
		fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %s | %s | %s |\n", name, p.Seeds, t.wins, t.ties, t.losses, score, plus(t.more), own)
	}
	if len(d.Test) == 0 {
		fmt.Fprint(b, "\nOf the training half: no test scenario was judged, so that there is no score.\n")
	} else if !d.whole() {
		fmt.Fprintf(b, "\nNo score: %d of %d test scenarios were judged.\n", len(d.Test), len(workload.Test))
	}
	for _, m := range d.Missing {
		fmt.Fprintf(b, "\nLeft out: %s.\n", m)
	}
	if len(d.Pending) > 0 {
		fmt.Fprintf(b, "\nNot judged yet, the same command goes on: %s.\n", strings.Join(d.Pending, ", "))
	}
}

// table is what the median policy came to on the scenarios of a half.
func (d *General) table(b *bytes.Buffer, cases []GeneralCase) {
	fmt.Fprintf(b, "The policy is `%s`.\n\n", d.Policies[d.Median()].File)
	fmt.Fprint(b, "| scenario | target % | rule: on time % @ workers | policy: on time % @ workers | actions/h | beyond the rule % | verdict | own rule: on time % @ workers | beyond it % "+
		"| oracle: on time % @ workers | rule beyond it % | policy beyond it % |\n|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|\n")
	for i := range cases {
		c := &cases[i]
		p := &c.Policies[d.Median()]
		o, why := judge(p, &c.Rule)
		verdict := string(o)
		if why != "" {
			verdict += ": " + why
		}
		own, ownMore := "–", "–"
		if c.Own != nil {
			own, ownMore = c.Own.Contender.Name+": "+at(c.Own), percentMore(p, c.Own)
		}
		oracle := "–"
		if c.Oracle != nil {
			oracle = at(c.Oracle)
		}
		s := p.Scenario
		fmt.Fprintf(b, "| %s | %.4g | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", s.Name, 100*s.Farm.Target, at(&c.Rule), at(p),
			decimal(policy.Maybe(p.Mean(evaluate.Actions)), 1, 0), percentMore(p, &c.Rule), verdict, own, ownMore,
			oracle, percentBeyond(&c.Rule, c.Oracle), percentBeyond(p, c.Oracle))
	}
}

// verdict holds the median file against what is wanted.
func (d *General) verdict(b *bytes.Buffer) {
	if !d.whole() {
		return
	}
	t := tallyOf(d.Test, d.Median())
	fmt.Fprintf(b, "\nScore: %d wins and %d ties of %d, %.1f %%; wanted are %g %%: %s.\n", t.wins, t.ties, len(d.Test), 100*t.score(), 100*wantedScore, met(t.score() >= wantedScore))
	if len(t.own) < len(d.Test) {
		fmt.Fprintf(b, "\nOnly %d of %d scenarios have a rule of their own: farmhand calibrate --law all finds it.\n", len(t.own), len(d.Test))
		return
	}
	m := median(t.own)
	fmt.Fprintf(b, "\nBeyond the rules calibrated for each scenario: %s %% worker-seconds in the median; wanted are +%g %% at most: %s.\n", plus(m), 100*wantedOwn, met(m <= wantedOwn))
}

// dear tells of the test scenarios on which the policy costs much more than their own
// rules, and what there is to win.
func (d *General) dear(b *bytes.Buffer) {
	begun := false
	for i := range d.Test {
		c := &d.Test[i]
		p := &c.Policies[d.Median()]
		if c.Own == nil || !(costsMore(p, c.Own).Mean > explained) {
			continue
		}
		if !begun {
			fmt.Fprintf(b, "\nMore than %g %% beyond the own rule:\n\n", 100*explained)
			begun = true
		}
		fmt.Fprintf(b, "- %s: %s %% beyond %s, with %s instead of %s %% on time.", p.Scenario.Name, percentMore(p, c.Own), c.Own.Contender.Name,
			onTime(p), onTime(c.Own))
		if c.Oracle != nil {
			fmt.Fprintf(b, " The own rule is %s %% beyond the oracle, the policy %s %%.", percentBeyond(c.Own, c.Oracle), percentBeyond(p, c.Oracle))
		}
		fmt.Fprintln(b)
	}
}

// notes say how the policies were learned, and with what the rules run.
func (d *General) notes(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n<details><summary>The policies and the rules</summary>\n\n- the rule (%s): `%s`\n", d.Rule.Origin, d.Rule.Spec)
	for i := range d.Policies {
		fmt.Fprintf(b, "- `%s`: %s\n", d.Policies[i].File, d.Policies[i].Note)
	}
	for _, c := range slices.Concat(d.Test, d.Training) {
		if c.Own != nil {
			fmt.Fprintf(b, "- own rule of %s: `%s`\n", c.Own.Scenario.Name, c.Own.Contender.Spec)
		}
	}
	fmt.Fprint(b, "\n</details>\n")
}

// beyond is how much more an entry costs than the oracle on the seeds that it has
// served, as a share of the oracle's cost.
func beyond(e, oracle *evaluate.Entry) evaluate.Interval {
	if oracle == nil {
		return evaluate.Nothing
	}
	less, cost := oracle.Against(e, evaluate.WorkerSeconds), policy.Maybe(oracle.Mean(evaluate.WorkerSeconds))
	if !less.Mean.Known() || cost <= 0 {
		return evaluate.Nothing
	}
	return evaluate.Interval{Mean: -less.Mean / cost, Lo: -less.Hi / cost, Hi: -less.Lo / cost}
}

func percentMore(e, than *evaluate.Entry) string { return signed(scaled(costsMore(e, than), 100)) }

func percentBeyond(e, oracle *evaluate.Entry) string { return signed(scaled(beyond(e, oracle), 100)) }

func onTime(e *evaluate.Entry) string { return decimal(policy.Maybe(e.Mean(evaluate.OnTime)), 100, 2) }

// at writes the share on time and the workers of an entry, and marks what is wrong.
func at(e *evaluate.Entry) string {
	s := fmt.Sprintf("%s @ %s", onTime(e), decimal(policy.Maybe(e.Mean(evaluate.MeanWorkers)), 1, 2))
	row := e.Row()
	if !row.OnTarget() {
		s += " ✗"
	}
	if row.Saturated {
		s += " !"
	}
	return s
}

// plus writes a share as a percentage with its sign.
func plus(share float64) string {
	if math.IsNaN(share) {
		return "–"
	}
	return fmt.Sprintf("%+.1f", 100*share)
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "not met"
}
