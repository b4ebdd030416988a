package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"farmhand/evaluate"
	"farmhand/policy"
	"farmhand/registry"
)

// The metrics. Of a run, ℓ is the share of its decided tasks that were late, and c its
// worker-seconds; X is the challenger and O its opponent.
const (
	OverTarget    = "on_time_over_target"   // (1 − ℓ_X) − target, where the opponent keeps the target
	OverOpponent  = "on_time_over_opponent" // ℓ_O − ℓ_X, where it does not
	CostRatio     = "worker_seconds_ratio"  // c_X ÷ c_O
	trafficOfFarm = "last traffic"
)

// Verdict is what the trials come to. The error says that they are not done.
func (g *Gate) Verdict() (registry.Verdict, error) {
	v := registry.Verdict{Champion: g.versions[1], Rule: g.cfg.Rule, Notes: g.cfg.Notes}
	if g.Done() < g.Trials() {
		return v, fmt.Errorf("gate: %d of %d trials are done: run the others", g.Done(), g.Trials())
	}
	n, l := len(g.cfg.Traffic), g.cfg.Limits
	for i, s := range g.cfg.Scenarios {
		if !evaluate.HasDues(s) {
			v.Notes = append(slices.Clone(v.Notes), fmt.Sprintf("%s has no deadline: nothing is ever late there, and nothing can be proved; set farm.deadline of the scenario, farmhand.deadline of a farm", s.Name))
		}
		from := n + i*len(g.cfg.Seeds)
		v.Checks = append(v.Checks, g.checks(s.Name, s.Farm.Target, g.done[from:from+len(g.cfg.Seeds)], l)...)
	}
	if n > 0 {
		l.Late, l.Cost = l.TrafficLate, l.TrafficCost
		v.Checks = append(v.Checks, g.checks(trafficOfFarm, g.cfg.Traffic[n-1].Farm.Target, g.done[:n], l)...)
	}
	v.Conclude()
	return v, nil
}

// againstRule is where the rule stands in the field; the challenger is first.
const againstRule = 1

// checks compares the challenger with each opponent on one kind of work.
func (g *Gate) checks(work string, target float64, runs [][]Score, l Limits) (list []registry.Check) {
	for k := 1; k < len(g.field); k++ {
		mine, theirs := make([]Score, len(runs)), make([]Score, len(runs))
		for i, scores := range runs {
			mine[i], theirs[i] = scores[0], scores[k]
		}
		onTime, mends := lateness(mine, theirs, target, l)
		found := []registry.Check{onTime}
		if !mends || k == againstRule { // what a late champion costs is no measure
			cost := registry.Check{Metric: CostRatio, Limit: l.Cost}
			if mends {
				cost.Limit = max(l.Cost, l.Mend)
			}
			ratio, rests := ratioOf(mine, theirs, func(a, b Score) (float64, float64) { return a.WorkerSeconds, b.WorkerSeconds })
			measure(&cost, ratio, rests)
			found = append(found, cost)
		}
		for _, c := range found {
			c.Work, c.Against, c.N = work, g.field[k].Spec, len(runs)
			list = append(list, c)
		}
	}
	return list
}

// lateness checks that enough is on time. mends reports that the opponent misses the
// target for sure, and the challenger, which is on time more often, keeps it.
func lateness(mine, theirs []Score, target float64, l Limits) (c registry.Check, mends bool) {
	late := func(runs []Score) (float64, []float64) {
		return ratioOf(runs, runs, func(a, _ Score) (float64, float64) { return a.Late, a.Decided })
	}
	x, restX := late(mine)
	o, restO := late(theirs)
	own, paired := make([]float64, len(restX)), make([]float64, len(restX))
	for i := range own {
		own[i], paired[i] = -restX[i], restO[i]-restX[i]
	}
	over := registry.Check{Metric: OverTarget, Limit: -l.Late, AtLeast: true}
	measure(&over, 1-x-target, own)
	if !(1-o < target) {
		return over, false
	}
	against := registry.Check{Metric: OverOpponent, Limit: -l.Late, AtLeast: true}
	measure(&against, o-x, paired)
	opponent := registry.Check{AtLeast: true}
	for i := range restO {
		restO[i] = -restO[i]
	}
	measure(&opponent, 1-o-target, restO)
	return against, opponent.Outcome == registry.Rejected && against.Lo > 0 && over.Outcome == registry.Promoted
}

// measure judges a check by its value and what each run contributes beyond it, the mean
// of which is zero.
func measure(c *registry.Check, value float64, rests []float64) {
	iv := evaluate.MeanOf(rests)
	c.Value, c.Lo, c.Hi = policy.Maybe(value), policy.Maybe(value)+iv.Lo, policy.Maybe(value)+iv.Hi
	c.Judge()
}

// ratioOf is R = Σy ÷ Σx over runs, so that busy runs count for more, and
//
//	e_i = (y_i − R x_i) ÷ x̄
//
// whose scatter is that of R: the ratio estimator (Cochran, Sampling Techniques, ch. 6).
func ratioOf(a, b []Score, of func(a, b Score) (y, x float64)) (r float64, rests []float64) {
	sumY, sumX := 0.0, 0.0
	for i := range a {
		y, x := of(a[i], b[i])
		sumY, sumX = sumY+y, sumX+x
	}
	r = sumY / sumX
	rests = make([]float64, len(a))
	for i := range a {
		y, x := of(a[i], b[i])
		rests[i] = (y - r*x) * float64(len(a)) / sumX
	}
	return r, rests
}

// Settle keeps a verdict on a version, and promotes it where the verdict says so. It
// may be called again after it was interrupted. It reports whether the version is
// champion now; where the farm has another champion than the one it was compared with,
// it is not.
func Settle(ctx context.Context, reg registry.Registry, farm, version string, v registry.Verdict) (promoted bool, err error) {
	if err := reg.Judge(ctx, farm, version, v); err != nil {
		return false, err
	}
	if v.Outcome != registry.Promoted {
		return false, nil
	}
	err = reg.Promote(ctx, farm, version, registry.Reason{By: "gate", Text: summary(v)})
	if errors.Is(err, registry.ErrRefused) {
		return false, nil
	}
	return err == nil, err
}

// summary is the reason of a promotion: what the version costs on unseen work.
func summary(v registry.Verdict) string {
	for _, c := range v.Checks {
		if c.Metric == CostRatio { // the first one is against the rule
			return fmt.Sprintf("%.1f %% of the rule's worker-seconds on %.100s (%.1f to %.1f %%, n = %d)", 100*c.Value, c.Work, 100*c.Lo, 100*c.Hi, c.N)
		}
	}
	return ""
}
