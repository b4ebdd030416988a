package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"farmhand/evaluate"
	"farmhand/policy"
)

// Learned is a document about learned policies.
type Learned struct {
	Command string // that makes it anew
	Machine string
	Commit  string
	Judging []uint64 // seeds
	Oracle  int      // of these, as many as the plan oracle serves

	Cases []LearnedCase
}

// LearnedCase is what learned policies, the peer and the bounds came to on a scenario.
type LearnedCase struct {
	Peer     evaluate.Entry   // with its calibrated parameters
	Front    evaluate.Front   // of its family
	Policies []evaluate.Entry // learned, a seed of training each
	Others   []evaluate.Entry // ablations, timer, bounds
	Notes    []string         // a line for each policy file: how it was learned
}

// rank orders the policies, the best first: see Rank.
func (c *LearnedCase) rank() []*evaluate.Entry {
	var list []*evaluate.Entry
	for _, p := range rank(c.Policies).Places {
		i := slices.IndexFunc(c.Policies, func(e evaluate.Entry) bool { return e.Contender.Spec == p.Specification })
		list = append(list, &c.Policies[i])
	}
	return list
}

// Median and Worst are those policies among the training seeds, by rank: a claim is about
// both, as the best of several is luck.
func (c *LearnedCase) Median() *evaluate.Entry { list := c.rank(); return list[(len(list)-1)/2] }
func (c *LearnedCase) Worst() *evaluate.Entry  { list := c.rank(); return list[len(list)-1] }

// other finds an entry by its name; nil where it was not examined.
func (c *LearnedCase) other(name string) *evaluate.Entry {
	i := slices.IndexFunc(c.Others, func(e evaluate.Entry) bool { return e.Contender.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Others[i]
}

// Write the document.
func (d *Learned) Write(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Results: learned policies

What policies that were learned cost, and how late work is under them, beside the best that a tuned rule can do. Made by

    %s

at commit %s on %s.

**How to read it.** All serve the same simulated work, seeds %s, which neither learning nor calibration saw, behind the guard of a live
farm. The peer is the calibrated law with the fewest worker-seconds at the target on the training seeds ([Results: the peers](RESULTS.md)).
*Saves* is how much less than the peer's family, or fixed counts, a policy costs at its own lateness, paired seed by seed. A learner was begun with several
seeds: the median and the worst of them count, not the best. ± is half a 95 %% interval over the seeds of work. oracle knows all that will
happen (%d seeds); regime-oracle and timer are told, or assume, when the load changes. *hidden* policies were learned without some of the
features, *unguarded* is the median without the guard.

%s

## Summary

| scenario | target %% | peer | on time %% | workers | median: on time %% | workers | saves %% | worst: on time %% | workers | saves %% | beyond timer %% | actions/h | oracle saves %% |
|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`, d.Command, d.Commit, d.Machine, span(d.Judging), d.Oracle, legend)
	for i := range d.Cases {
		d.Cases[i].line(&b)
	}
	for i := range d.Cases {
		c := &d.Cases[i]
		s := c.Peer.Scenario
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n", s.Name, sentence(s.Doc))
		entries := slices.Concat(c.Policies, c.Others, []evaluate.Entry{c.Peer})
		r := rank(entries)
		r.Against(c.Peer.Contender.Name, c.Front, entries)
		median, worst := c.Median(), c.Worst()
		for k := range r.Places {
			p := &r.Places[k]
			if len(c.Policies) > 1 && p.Parameters == string(evaluate.PolicyFile) {
				switch p.Specification {
				case median.Contender.Spec:
					p.Policy += " (median)"
				case worst.Contender.Spec:
					p.Policy += " (worst)"
				}
			}
		}
		if err := Markdown(&b, &r); err != nil {
			return err
		}
		c.verdict(&b)
		c.notes(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// line is the case in the summary.
func (c *LearnedCase) line(b *bytes.Buffer) {
	of := func(e *evaluate.Entry, m evaluate.Measure, scale float64, n int) string {
		if e == nil {
			return "–"
		}
		return decimal(policy.Maybe(e.Mean(m)), scale, n)
	}
	saves := func(e *evaluate.Entry) string {
		if e == nil {
			return "–"
		}
		return interval(c.Front.Saves(e), 100, 1)
	}
	median, worst, timer := c.Median(), c.Worst(), c.other("timer")
	beyond := "–"
	if timer != nil {
		beyond = interval(costsMore(median, timer), 100, 1)
	}
	fmt.Fprintf(b, "| %s | %.4g | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", c.Peer.Scenario.Name, 100*c.Peer.Scenario.Farm.Target,
		c.Peer.Contender.Name, of(&c.Peer, evaluate.OnTime, 100, 2), of(&c.Peer, evaluate.MeanWorkers, 1, 2),
		of(median, evaluate.OnTime, 100, 2), of(median, evaluate.MeanWorkers, 1, 2), saves(median),
		of(worst, evaluate.OnTime, 100, 2), of(worst, evaluate.MeanWorkers, 1, 2), saves(worst),
		beyond, of(median, evaluate.Actions, 1, 0), saves(c.other("oracle")))
}

// notes say how the policies were learned, and with what the peer runs.
func (c *LearnedCase) notes(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n<details><summary>The policies and the peer</summary>\n\n- `%s`\n", c.Peer.Contender.Spec)
	for _, n := range c.Notes {
		fmt.Fprintf(b, "- %s\n", n)
	}
	fmt.Fprint(b, "\n</details>\n")
}

// costsMore is how much more an entry costs than another one, as a share of that.
func costsMore(e, than *evaluate.Entry) evaluate.Interval {
	more, cost := e.Against(than, evaluate.WorkerSeconds), policy.Maybe(than.Mean(evaluate.WorkerSeconds))
	if !more.Mean.Known() || cost <= 0 {
		return evaluate.Nothing
	}
	return evaluate.Interval{Mean: more.Mean / cost, Lo: more.Lo / cost, Hi: more.Hi / cost}
}

// verdict compares with the peer as it stands, not at equal lateness.
func (c *LearnedCase) verdict(b *bytes.Buffer) {
	for _, x := range []struct {
		name string
		e    *evaluate.Entry
	}{{"median", c.Median()}, {"worst", c.Worst()}} {
		row := x.e.Row()
		met := "meets"
		if !row.OnTarget() {
			met = "misses"
		}
		fmt.Fprintf(b, "\nThe %s of %d %s the target. Beyond the peer as it stands: %s points on time, %s %% worker-seconds; at equal lateness it saves %s %%.\n",
			x.name, len(c.Policies), met, signed(scaled(x.e.Against(&c.Peer, evaluate.OnTime), 100)), signed(scaled(costsMore(x.e, &c.Peer), 100)),
			interval(c.Front.Saves(x.e), 100, 1))
	}
}

func scaled(iv evaluate.Interval, k policy.Maybe) evaluate.Interval {
	return evaluate.Interval{Mean: k * iv.Mean, Lo: k * iv.Lo, Hi: k * iv.Hi}
}
