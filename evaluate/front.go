package evaluate

import (
	"cmp"
	"math"
	"slices"

	"farmhand/policy"
)

// Front is what a family of policies can reach: entries that trade lateness for
// worker-seconds, all on the same scenario and seeds.
type Front []Entry

// Compare says what an entry costs beyond the family at equal lateness, in
// worker-seconds; unknown where no members of the family that have served all of
// its seeds lie on both sides of its lateness.
//
// Let ℓ be the share of tasks that is late and c the worker-seconds, bars means over
// the seeds. Members that another one beats in both are left out; of those that
// remain, A and B are the neighbours with ℓ̄_A ≤ ℓ̄_X ≤ ℓ̄_B. A share w of episodes
// under B and 1 − w under A is as late as X,
//
//	w = (ℓ̄_X − ℓ̄_A)/(ℓ̄_B − ℓ̄_A)
//
// and is a policy that anybody could run. For each seed s
//
//	d_s = c_X − [(1 − w)c_A + w c_B] − g·(ℓ_X − [(1 − w)ℓ_A + w ℓ_B])
//	g   = (c̄_B − c̄_A)/(ℓ̄_B − ℓ̄_A)
//
// The last term is zero in the mean. It moves each seed's difference along the front
// to equal lateness, so that the interval of the d_s knows that the latenesses, and
// with them w, are estimates (the delta method), and that they are paired.
func (f Front) Compare(x *Entry) Interval {
	a, b := f.neighbours(x)
	if a == nil {
		return Nothing
	}
	late := [3][]float64{lateness(x), lateness(a), lateness(b)}
	cost := [3][]float64{x.Values(WorkerSeconds), a.Values(WorkerSeconds), b.Values(WorkerSeconds)}
	var ml, mc [3]float64
	for i := range 3 {
		ml[i], mc[i] = float64(MeanOf(late[i]).Mean), float64(MeanOf(cost[i]).Mean)
	}
	w, slope := 0.0, 0.0
	if ml[2] > ml[1] {
		w = (ml[0] - ml[1]) / (ml[2] - ml[1])
		slope = (mc[2] - mc[1]) / (ml[2] - ml[1])
	}
	d := make([]float64, len(x.Episodes))
	for s := range d {
		mix := func(y [3][]float64) float64 { return y[0][s] - (1-w)*y[1][s] - w*y[2][s] }
		d[s] = mix(cost) - slope*mix(late)
	}
	return MeanOf(d)
}

// Cost is what the family needs at the lateness of an entry, in worker-seconds.
func (f Front) Cost(x *Entry) policy.Maybe {
	more := f.Compare(x)
	if !more.Mean.Known() {
		return policy.Unknown
	}
	return policy.Maybe(x.Mean(WorkerSeconds)) - more.Mean
}

// Saves is the share of the family's cost that an entry saves at its own lateness; see
// Compare.
func (f Front) Saves(x *Entry) Interval {
	more, cost := f.Compare(x), f.Cost(x)
	if !cost.Known() || cost <= 0 {
		return Nothing
	}
	return Interval{-more.Mean / cost, -more.Hi / cost, -more.Lo / cost}
}

// neighbours are the members on either side of x; nil where there are none.
func (f Front) neighbours(x *Entry) (a, b *Entry) {
	at, front := 1-x.Mean(OnTime), f.pareto(x)
	for i, e := range front {
		switch late := 1 - e.Mean(OnTime); {
		case late == at:
			return e, e
		case late > at && i > 0:
			return front[i-1], e
		case late > at:
			return nil, nil
		}
	}
	return nil, nil
}

// pareto are the members with the seeds of x that no other beats, the least late
// first.
func (f Front) pareto(x *Entry) []*Entry {
	var list []*Entry
	for i := range f {
		if e := f[i].on(x); e != nil && !math.IsNaN(e.Mean(OnTime)) {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(b.Mean(OnTime), a.Mean(OnTime)), cmp.Compare(a.Mean(WorkerSeconds), b.Mean(WorkerSeconds)))
	})
	kept := list[:0]
	for _, e := range list {
		if len(kept) == 0 || e.Mean(WorkerSeconds) < kept[len(kept)-1].Mean(WorkerSeconds) {
			kept = append(kept, e)
		}
	}
	return kept
}

// Against is how much more of a measure an entry has than another on its seeds;
// unknown where the other has not served them all.
func (e *Entry) Against(peer *Entry, m Measure) Interval {
	part := peer.on(e)
	if part == nil {
		return Nothing
	}
	return Paired(e.Values(m), part.Values(m))
}

// on is the entry with the seeds of another one; nil where one is missing.
func (e *Entry) on(x *Entry) *Entry {
	part := &Entry{Scenario: e.Scenario, Contender: e.Contender}
	for _, episode := range x.Episodes {
		i := slices.IndexFunc(e.Episodes, func(o Episode) bool { return o.Seed == episode.Seed })
		if i < 0 {
			return nil
		}
		part.Episodes = append(part.Episodes, e.Episodes[i])
	}
	return part
}

// lateness of each episode, a share.
func lateness(e *Entry) []float64 {
	x := e.Values(OnTime)
	for i := range x {
		x[i] = 1 - x[i]
	}
	return x
}
