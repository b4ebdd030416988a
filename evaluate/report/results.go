package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"farmhand/evaluate"
	"farmhand/policy"
)

// Results is a document about the peers.
type Results struct {
	Command  string // that makes it anew
	Machine  string
	Commit   string
	Quick    bool // a smaller search, and fewer seeds
	Training []uint64
	Judging  []uint64
	Oracle   int      // of the judging seeds that the plan oracle serves
	Missing  []string // what could not be examined, and why
	Pending  []string // scenarios that are not examined yet

	Examinations []*evaluate.Examination
}

// near is the gap to the plan oracle below which nobody can win what is worth it.
const near = 0.1

// Write the document. drawing is the path of a scenario's drawing from the document:
// kind is "pareto" or "timeline".
func (d *Results) Write(w io.Writer, drawing func(scenario, kind string) string) error {
	var b bytes.Buffer
	d.head(&b)
	d.summary(&b)
	d.compare(&b)
	for _, e := range d.Examinations {
		fmt.Fprintf(&b, "\n## %s\n\n%s. Offered load %.2f replicas, deadline %s, %s on time wanted, at most %d replicas.\n\n", e.Scenario.Name,
			sentence(e.Scenario.Doc), e.Load, deadline(e), percent(e.Scenario.Farm.Target), e.Scenario.Farm.Max)
		if e.Unguarded {
			fmt.Fprint(&b, "Runs are short, and not guarded: a guard scales nothing down in a farm's first two minutes.\n\n")
		}
		r := rank(e.Entries)
		if err := Markdown(&b, &r); err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n%s\n", room(e))
		fmt.Fprintf(&b, "\n![lateness against workers](%s)\n![time line of the cheapest policy that scales](%s)\n", drawing(e.Scenario.Name, "pareto"), drawing(e.Scenario.Name, "timeline"))
		parameters(&b, e)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (d *Results) head(b *bytes.Buffer) {
	fmt.Fprintf(b, `# Results: the peers

What the scalers that one could use today cost, and how late work is under them, on simulated work that was fixed beforehand. Made by

    %s

at commit %s on %s.
`, d.Command, d.Commit, d.Machine)
	if d.Quick {
		fmt.Fprint(b, "\n**A quick run: a smaller search and fewer seeds. Not for citing.**\n")
	}
	fmt.Fprintf(b, `
**How to read it.** Every law stands twice: with its defaults, and calibrated for the scenario: the fewest worker-seconds that keep the
target, chosen on seeds %s and judged on seeds %s, which the search never saw. All of them serve the same tasks on a platform with
the same luck, behind the guard of a live farm. ± is half a 95 %% interval over the seeds. *Workers* are worker-seconds over the horizon,
paid from the scale call to the end of the drain; an unfinished task is late. *Beyond best* pairs each seed with the same seed of the
cheapest law on target.

**The peer** of a claim is the calibrated law with the fewest worker-seconds at the target on the training seeds, a fixed count among
them; timer, which is a table made for loads that change by the clock, is none. *Saved at equal lateness* is how much less than the peer's
family, or a fixed count, a policy needs at its own lateness: the family's members and counts are interpolated, seed by seed.

**The bounds.** regime-oracle knows the rate of arrivals at every instant, the future too. oracle knows every task and every start-up:
the best plan that a local search found, executed (%d seeds). It is reached, by a policy that nobody can have; a better plan may exist,
so what is left to win may be a little more than it says. Where the peer is within %.0f %% of it, no learner can win what is worth it.

What learners make of that room: [policies of one load](RESULTS-learned.md), [a policy for any](RESULTS-general.md), [the published
benchmark](paper.md); the same on real processes: [simulated and live](live.md).

%s
`, span(d.Training), span(d.Judging), d.Oracle, 100*near, legend)
}

// summary is one line for each scenario.
func (d *Results) summary(b *bytes.Buffer) {
	fmt.Fprint(b, "\n## Summary\n\n| scenario | load | peer | on time % | workers | best fixed | timer | regime-oracle saves | oracle saves | room |\n|---|---:|---|---:|---:|---:|---:|---:|---:|---|\n")
	var none []string
	for _, e := range d.Examinations {
		of := func(name string) *evaluate.Entry {
			i := slices.IndexFunc(e.Entries, func(x evaluate.Entry) bool { return x.Contender.Name == name && x.Contender.Origin != evaluate.Default })
			if i < 0 {
				return nil
			}
			return &e.Entries[i]
		}
		workers := func(x *evaluate.Entry) string {
			if x == nil {
				return "–"
			}
			s := decimal(policy.Maybe(x.Mean(evaluate.MeanWorkers)), 1, 2)
			if row := x.Row(); !row.OnTarget() {
				s += " ✗"
			}
			return s
		}
		saves := func(x *evaluate.Entry) string {
			if x == nil {
				return "–"
			}
			gap := e.Front.Saves(x)
			if !gap.Mean.Known() {
				return "–"
			}
			return interval(gap, 100, 0) + " %"
		}
		verdict := "–"
		if oracle := of("oracle"); oracle != nil {
			verdict = roomWord(float64(e.Front.Saves(oracle).Mean))
			if verdict == "none" {
				none = append(none, e.Scenario.Name)
			}
		}
		peer := &e.Peer
		if len(peer.Episodes) == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s | %.2f | %s | %s | %s | %s | %s | %s | %s | %s |\n", e.Scenario.Name, e.Load, peer.Contender.Name,
			decimal(policy.Maybe(peer.Mean(evaluate.OnTime)), 100, 2), workers(peer), workers(of("static")), workers(of("timer")),
			saves(of("regime-oracle")), saves(of("oracle")), verdict)
	}
	fmt.Fprint(b, "\n*saves*: of the peer's cost, at equal lateness. – where the peer's family does not reach that lateness. ✗ misses the target.\n")
	if len(none) > 0 {
		fmt.Fprintf(b, "\nThe peer is so near the oracle that no learner can win on: %s.\n", strings.Join(none, ", "))
	}
	if len(d.Pending) > 0 {
		fmt.Fprintf(b, "\nNot examined yet, the same command goes on: %s.\n", strings.Join(d.Pending, ", "))
	}
	for _, m := range d.Missing {
		fmt.Fprintf(b, "\nMissing: %s.\n", m)
	}
}

// roomWord says whether something is left to win.
func roomWord(gap float64) string {
	switch {
	case math.IsNaN(gap):
		return "–"
	case gap < near:
		return "none"
	case gap < 2*near:
		return "little"
	}
	return "yes"
}

// room says what is left to win on a scenario.
func room(e *evaluate.Examination) string {
	var parts []string
	for i := range e.Entries {
		x := &e.Entries[i]
		if x.Contender.Origin != evaluate.Bound {
			continue
		}
		if gap := e.Front.Saves(x); gap.Mean.Known() {
			parts = append(parts, fmt.Sprintf("%s %s %%", x.Contender.Name, interval(gap, 100, 1)))
		} else if len(e.Peer.Episodes) > 0 {
			more := 1 - x.Mean(evaluate.MeanWorkers)/e.Peer.Mean(evaluate.MeanWorkers)
			parts = append(parts, fmt.Sprintf("%s %.0f %% (at unequal lateness)", x.Contender.Name, 100*more))
		}
	}
	if len(e.Peer.Episodes) == 0 {
		return "No peer was found."
	}
	return fmt.Sprintf("Peer: %s. Saved of its cost at equal lateness: %s.", e.Peer.Contender.Name, strings.Join(parts, ", "))
}

// parameters lists what calibration chose.
func parameters(b *bytes.Buffer, e *evaluate.Examination) {
	fmt.Fprint(b, "\n<details><summary>Calibrated parameters</summary>\n\n")
	hours := 0.0
	for i := range e.Entries {
		if c := &e.Entries[i].Contender; c.Free > 0 {
			fmt.Fprintf(b, "- `%s`\n", c.Spec)
		}
	}
	for _, c := range e.Calibrations {
		hours += c.Hours
	}
	fmt.Fprintf(b, "\n%.0f simulated hours were searched.\n\n</details>\n", hours)
}

func deadline(e *evaluate.Examination) string {
	f := &e.Scenario.Farm
	switch {
	case f.DeadlineFactor > 0:
		return fmt.Sprintf("%g × the task's own service", f.DeadlineFactor)
	case f.Deadline > 0:
		return fmt.Sprintf("%g s", f.Deadline)
	}
	return "none"
}

func sentence(s string) string {
	if s == "" {
		return "No description"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// span writes seeds that follow one another.
func span(seeds []uint64) string {
	if len(seeds) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d–%d", seeds[0], seeds[len(seeds)-1])
}
