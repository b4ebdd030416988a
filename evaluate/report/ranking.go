package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"farmhand/evaluate"
)

// Ranking is what the entries of one scenario came to, the best first: those on
// target by their cost, then the others by how many tasks were on time.
type Ranking struct {
	Scenario string
	Target   float64
	Peer     string // whom Saves compares with; empty: nobody
	Places   []Place
}

// Against compares the places with a peer's front, whose entries are on the ranking's
// scenario. entries are those that were ranked.
func (r *Ranking) Against(peer string, front evaluate.Front, entries []evaluate.Entry) {
	r.Peer = peer
	for i := range r.Places {
		p := &r.Places[i]
		for k := range entries {
			if e := &entries[k]; e.Scenario.Name == r.Scenario && e.Contender.Spec == p.Specification && string(e.Contender.Origin) == p.Parameters {
				p.Saves = front.Saves(e)
			}
		}
	}
}

// Place is a row of a ranking.
type Place struct {
	evaluate.Row
	Best bool // the cheapest on target that somebody could run
	// More is how many mean workers it has beyond the best, or, where there is none,
	// beyond the first: the same seeds, pair by pair.
	More evaluate.Interval
	// Saves is the share of the peer's cost that it saves at equal lateness.
	Saves evaluate.Interval
}

// bound reports whether nobody could run it.
func (p *Place) bound() bool { return p.Parameters == string(evaluate.Bound) }

// Rank sorts entries, scenario by scenario in their order.
func Rank(entries []evaluate.Entry) (list []Ranking) {
	var names []string
	of := map[string][]evaluate.Entry{}
	for _, e := range entries {
		if of[e.Scenario.Name] == nil {
			names = append(names, e.Scenario.Name)
		}
		of[e.Scenario.Name] = append(of[e.Scenario.Name], e)
	}
	for _, name := range names {
		list = append(list, rank(of[name]))
	}
	return list
}

func rank(entries []evaluate.Entry) Ranking {
	type ranked struct {
		entry *evaluate.Entry
		row   evaluate.Row
	}
	rows := make([]ranked, len(entries))
	for i := range entries {
		rows[i] = ranked{&entries[i], entries[i].Row()}
	}
	mean := func(r *evaluate.Row, m evaluate.Measure) float64 { return r.Values[m].Mean.Or(0) }
	slices.SortStableFunc(rows, func(a, b ranked) int {
		switch {
		case a.row.OnTarget() != b.row.OnTarget():
			if a.row.OnTarget() {
				return -1
			}
			return 1
		case a.row.OnTarget():
			return cmp.Compare(mean(&a.row, evaluate.MeanWorkers), mean(&b.row, evaluate.MeanWorkers))
		}
		return cmp.Compare(mean(&b.row, evaluate.OnTime), mean(&a.row, evaluate.OnTime))
	})
	r := Ranking{Scenario: rows[0].row.Scenario, Target: rows[0].row.Target}
	best := 0
	for i := range rows {
		if rows[i].row.OnTarget() && rows[i].entry.Contender.Origin != evaluate.Bound {
			best = i
			break
		}
	}
	for i := range rows {
		p := Place{Row: rows[i].row, More: rows[i].entry.Against(rows[best].entry, evaluate.MeanWorkers), Saves: evaluate.Nothing}
		p.Best = i == best && p.OnTarget() && !p.bound()
		r.Places = append(r.Places, p)
	}
	return r
}

// Verdict says in words who won, by how much, and what is left to win.
func (r *Ranking) Verdict() string {
	var best, static, oracle *Place
	var short, saturated int
	for i := range r.Places {
		p := &r.Places[i]
		if !p.OnTarget() && !p.bound() {
			short++
		}
		if p.Saturated {
			saturated++
		}
		switch {
		case p.Best:
			best = p
		case p.bound() && p.OnTarget() && oracle == nil:
			oracle = p
		}
		if p.Policy == "static" && p.OnTarget() && static == nil {
			static = p
		}
	}
	var b strings.Builder
	if best == nil {
		fmt.Fprintf(&b, "%s: no policy keeps %s on time.", r.Scenario, percent(r.Target))
	} else if !best.Values[evaluate.OnTime].Mean.Known() {
		fmt.Fprintf(&b, "%s: no task has a deadline, so that cost alone decides: %s has %.2f workers.", r.Scenario, best.Policy, best.Values[evaluate.MeanWorkers].Mean)
	} else {
		fmt.Fprintf(&b, "%s: %s (%s) is the cheapest that keeps %s on time: %.2f workers at %s.", r.Scenario, best.Policy, best.Parameters,
			percent(r.Target), best.Values[evaluate.MeanWorkers].Mean, percent(best.Values[evaluate.OnTime].Mean.Or(1)))
		if static != nil && static != best {
			fmt.Fprintf(&b, " A fixed count needs %.2f.", static.Values[evaluate.MeanWorkers].Mean)
		}
		if oracle != nil {
			most, least := best.Values[evaluate.MeanWorkers].Mean, oracle.Values[evaluate.MeanWorkers].Mean
			fmt.Fprintf(&b, " The %s shows that %.0f %% at most could still be saved.", oracle.Policy, max(0, 100*float64(1-least/most)))
		}
	}
	if short > 0 && best != nil {
		fmt.Fprintf(&b, " %d of %d miss the target.", short, r.people())
	}
	if saturated > 0 {
		fmt.Fprintf(&b, " The load is more than the farm's maximum can do (marked !): no policy can be judged by it.")
	}
	return b.String()
}

// people are the places that are no bounds.
func (r *Ranking) people() (n int) {
	for i := range r.Places {
		if !r.Places[i].bound() {
			n++
		}
	}
	return n
}

func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }
