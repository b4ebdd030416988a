package paper

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"strings"
	"text/template"
)

// Report is what docs/paper.md is made of.
type Report struct {
	Command  string
	Machine  string
	Seeds    int // of training
	Episodes int // unseen, that each policy is measured on
	Rows     []Measured
	Statics  []Constant
}

// Constant is a farm that nobody scales.
type Constant struct {
	Scenario string
	Workers  int
	Result   *Result
}

//go:embed report.md.tmpl
var reportText string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"published": func() string { return publishedTable },
	"list":      func(names []string) string { return strings.Join(names, ", ") },
}).Parse(reportText))

// Write the report, in Markdown.
func (r *Report) Write(w io.Writer) error { return reportTemplate.Execute(w, r) }

// Missing names the rows of which no policy is there.
func (r *Report) Missing() (names []string) {
	for i := range r.Rows {
		if m := &r.Rows[i]; len(m.Results) == 0 {
			names = append(names, fmt.Sprintf("`%s` (%s)", m.Learner, m.Case))
		}
	}
	return names
}

// publishedTable are the published rows: means over ten episodes of one seed, with
// standard deviations.
const publishedTable = `| policy | on time % | workers | actions |
| --- | ---: | ---: | ---: |
| SARSA(λ) | 99.20 ± 0.52 | 14.78 ± 0.49 | 24.00 ± 2.05 |
| double DQN | 94.91 ± 3.79 | 14.40 ± 0.77 | 3.60 ± 1.02 |
| reactive, maximum | 65.61 ± 14.26 | 13.92 ± 0.68 | 26.80 ± 1.25 |
| reactive, average | 50.87 ± 4.38 | 10.79 ± 0.31 | 28.40 ± 0.92 |
`

// Table of the learners in the scenarios with a prefix.
func (r *Report) Table(scenario string) string {
	var b strings.Builder
	b.WriteString("| case | learner | seeds | median: on time % | workers | actions | best | worst | wanted | reached by |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n")
	for i := range r.Rows {
		m := &r.Rows[i]
		if !strings.HasPrefix(m.Case.Scenario, scenario) || len(m.Results) == 0 {
			continue
		}
		order := m.Order()
		best, median, worst := m.Results[order[0]], m.Results[order[(len(order)-1)/2]], m.Results[order[len(order)-1]]
		var wanted, reached []string
		for _, g := range m.Goals {
			wanted, reached = append(wanted, g.String()), append(reached, met(m.Met(g)))
		}
		onTime, workers, actions := median.Intervals()
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", m.Case.name(scenario), m.Learner, len(m.Results),
			interval(onTime.Mean, onTime.Hi, 100), interval(workers.Mean, workers.Hi, 1), interval(actions.Mean, actions.Hi, 1), short(best.Score()), short(worst.Score()), strings.Join(wanted, "; "), strings.Join(reached, "; "))
	}
	for _, c := range r.Statics {
		if c.Scenario == scenario {
			onTime, workers, _ := c.Result.Intervals()
			fmt.Fprintf(&b, "| | %d workers | | %s | %.2f | 0 | | | | |\n", c.Workers, interval(onTime.Mean, onTime.Hi, 100), float64(workers.Mean))
		}
	}
	return b.String()
}

// name of a case among those of a scenario.
func (c Case) name(scenario string) string {
	var parts []string
	if c.Jumps {
		parts = append(parts, "jumps")
	}
	if strings.HasSuffix(c.Scenario, ":shuffled") {
		parts = append(parts, "shuffled")
	}
	if c.MaskClock {
		parts = append(parts, "clock masked")
	}
	return strings.Join(parts, ", ")
}

func interval[F ~float64](mean, hi F, scale float64) string {
	return fmt.Sprintf("%.2f ± %.2f", scale*float64(mean), scale*float64(hi-mean))
}

func short(s Score) string {
	return fmt.Sprintf("%.2f @ %.2f, %.1f", 100*s.OnTime, s.Workers, s.Actions)
}

func (g Goal) String() string {
	s := fmt.Sprintf("%.1f @ %.1f", 100*g.OnTime, g.Workers)
	if !math.IsInf(g.Actions, 1) {
		s += fmt.Sprintf(", %.0f", g.Actions)
	}
	return s
}

func met(seeds, all int) string {
	switch seeds {
	case all:
		return "all seeds"
	case 0:
		return "none"
	}
	return fmt.Sprintf("%d of %d", seeds, all)
}
