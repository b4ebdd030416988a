package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"farmhand/evaluate"
	"farmhand/policy"
)

// column of a table for people.
type column struct {
	head string
	cell func(p *Place) string
}

var columns = []column{
	{"policy", func(p *Place) string { return p.Policy }},
	{"parameters", func(p *Place) string {
		if p.Free > 0 {
			return fmt.Sprintf("%s (%d)", p.Parameters, p.Free)
		}
		return p.Parameters
	}},
	{"on time %", func(p *Place) string { return interval(p.Values[evaluate.OnTime], 100, 2) }},
	{"worst", func(p *Place) string { return decimal(p.Worst, 100, 1) }},
	{"p50 s", func(p *Place) string { return digits(p.Values[evaluate.P50].Mean) }},
	{"p95 s", func(p *Place) string { return digits(p.Values[evaluate.P95].Mean) }},
	{"p99 s", func(p *Place) string { return digits(p.Values[evaluate.P99].Mean) }},
	{"workers", func(p *Place) string { return interval(p.Values[evaluate.MeanWorkers], 1, 2) }},
	{"beyond best", func(p *Place) string {
		if p.Best {
			return "–"
		}
		return signed(p.More)
	}},
	{"peak", func(p *Place) string { return decimal(p.Values[evaluate.PeakWorkers].Mean, 1, 0) }},
	{"busy %", func(p *Place) string { return decimal(p.Values[evaluate.BusyFraction].Mean, 100, 0) }},
	{"actions/h", func(p *Place) string { return decimal(p.Values[evaluate.Actions].Mean, 1, 0) }},
	{"starts/h", func(p *Place) string { return decimal(p.Values[evaluate.Starts].Mean, 1, 0) }},
	{"flaps/h", func(p *Place) string { return decimal(p.Values[evaluate.Flaps].Mean, 1, 0) }},
}

// columnsOf are the columns of a ranking: one more with a peer, and one where a learned
// policy was handed back.
func columnsOf(r *Ranking) []column {
	list := slices.Clone(columns)
	if r.Peer != "" {
		list = slices.Insert(list, 9, column{"saves %", func(p *Place) string { return interval(p.Saves, 100, 1) }})
	}
	if slices.ContainsFunc(r.Places, func(p Place) bool { return p.Values[evaluate.HandBacks].Mean > 0 }) {
		list = append(list, column{"hand-backs/h", func(p *Place) string { return decimal(p.Values[evaluate.HandBacks].Mean, 1, 2) }})
	}
	return list
}

// mark of a place: the best, a miss, a load that is too much.
func (p *Place) mark() string {
	s := ""
	switch {
	case p.Best:
		s = "★"
	case p.bound():
		s = "○"
	case !p.OnTarget():
		s = "✗"
	}
	if p.Saturated {
		s += "!"
	}
	return s
}

// seeds are those of most places; the plan oracle may have fewer.
func (r *Ranking) seeds() (n int) {
	for i := range r.Places {
		n = max(n, r.Places[i].Seeds)
	}
	return n
}

const legend = "★ cheapest on target   ✗ misses it   ○ bound: nobody could run it   ! overloaded   ± 95 % interval over seeds   (n) parameters chosen by calibration"

// Text writes rankings for a terminal.
func Text(w io.Writer, list []Ranking) error {
	for i := range list {
		r := &list[i]
		fmt.Fprintf(w, "%s, %s on time wanted, %d seeds\n", r.Scenario, percent(r.Target), r.seeds())
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprint(t, " \t")
		columns := columnsOf(r)
		for _, c := range columns {
			fmt.Fprintf(t, "%s\t", c.head)
		}
		fmt.Fprintln(t)
		for k := range r.Places {
			p := &r.Places[k]
			fmt.Fprintf(t, "%s\t", p.mark())
			for _, c := range columns {
				fmt.Fprintf(t, "%s\t", c.cell(p))
			}
			fmt.Fprintln(t)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		for k := range r.Places {
			if p := &r.Places[k]; p.Specification != p.Policy {
				fmt.Fprintf(w, "  %s\n", p.Specification)
			}
		}
		if r.Peer != "" {
			fmt.Fprintf(w, "saves: of the cost of %s, calibrated, at equal lateness; – where its family does not reach that lateness\n", r.Peer)
		}
		fmt.Fprintf(w, "→ %s\n\n", r.Verdict())
	}
	_, err := fmt.Fprintln(w, legend)
	return err
}

// Markdown writes a ranking as a table.
func Markdown(w io.Writer, r *Ranking) error {
	heads, rule := []string{""}, []string{"---"}
	columns := columnsOf(r)
	for i, c := range columns {
		heads = append(heads, c.head)
		if i < 2 {
			rule = append(rule, "---")
		} else {
			rule = append(rule, "---:")
		}
	}
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(heads)
	line(rule)
	for i := range r.Places {
		p := &r.Places[i]
		cells := []string{p.mark()}
		for _, c := range columns {
			cells = append(cells, c.cell(p))
		}
		if p.Best {
			cells[1] = "**" + cells[1] + "**"
		}
		line(cells)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Verdict())
	return err
}

// CSV writes rows with all columns of the JSON form; what is unknown is empty.
func CSV(w io.Writer, rows []evaluate.Row) error {
	c := csv.NewWriter(w)
	head := []string{"policy", "scenario", "seeds"}
	for _, m := range evaluate.Measures() {
		head = append(head, m.String(), m.String()+"_lo", m.String()+"_hi")
	}
	head = append(head, "parameters", "specification", "free_parameters", "target", "on_time_worst_episode", "episodes_on_target", "saturated")
	if err := c.Write(head); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		cells := []string{r.Policy, r.Scenario, strconv.Itoa(r.Seeds)}
		for _, m := range evaluate.Measures() {
			iv := r.Values[m]
			cells = append(cells, exact(iv.Mean), exact(iv.Lo), exact(iv.Hi))
		}
		cells = append(cells, r.Parameters, r.Specification, strconv.Itoa(r.Free), exact(policy.Maybe(r.Target)), exact(r.Worst), strconv.Itoa(r.Met), strconv.FormatBool(r.Saturated))
		if err := c.Write(cells); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func exact(x policy.Maybe) string {
	if !x.Known() {
		return ""
	}
	return strconv.FormatFloat(float64(x), 'g', -1, 64)
}

// decimal writes x·scale with so many places; – where it is unknown.
func decimal(x policy.Maybe, scale float64, places int) string {
	if !x.Known() {
		return "–"
	}
	return strconv.FormatFloat(float64(x)*scale, 'f', places, 64)
}

// digits writes a time with three digits.
func digits(x policy.Maybe) string {
	if !x.Known() {
		return "–"
	}
	if math.Abs(float64(x)) >= 100 {
		return strconv.FormatFloat(float64(x), 'f', 0, 64)
	}
	return strconv.FormatFloat(float64(x), 'g', 3, 64)
}

// interval writes a mean and half the width of its interval.
func interval(iv evaluate.Interval, scale float64, places int) string {
	s := decimal(iv.Mean, scale, places)
	if iv.Lo.Known() {
		s += " ± " + decimal(max(iv.Hi-iv.Mean, iv.Mean-iv.Lo), scale, places)
	}
	return s
}

// signed is an interval of a difference, of workers.
func signed(iv evaluate.Interval) string {
	s := interval(iv, 1, 2)
	if iv.Mean > 0 {
		s = "+" + s
	}
	return s
}
