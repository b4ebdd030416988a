package evaluate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"farmhand/sim/workload"
)

// aims are levels of lateness, in what the target allows, at which a wide front has
// members.
var aims = []float64{4, 2, 1.4, 0.7, 0.4}

// nearby is the standard deviation of the candidates for a front around the best
// member, in the unit cube, and half of it.
const nearby = 0.15

// Widen gives a calibration more of a front: a claim is judged at its own lateness, and
// the members that the search had no use for, a little later or earlier than the
// target, may be missing. Two generations around the best member serve a horizon, and
// for each of the aims the one that is best there serves all training seeds. It is done
// for peers alone.
func (c *Calibrator) Widen(ctx context.Context, f Family, scenarios []*workload.Scenario, found *Calibration) (*Calibration, error) {
	if f.Counted || len(f.Free) == 0 {
		return found, nil // its neighbours are there
	}
	f = f.bounded(scenarios)
	key, _, err := c.kept(ctx, f, scenarios, c.Budget)
	if err != nil {
		return nil, err
	}
	key = fmt.Sprintf("wide %v %s", found.Best.Values, key)
	if c.Store != nil {
		var before Calibration
		if ok, err := c.Store.Get(key, &before); err != nil || ok {
			return &before, err
		}
	}
	s := &searching{Calibrator: c, family: f, scenarios: scenarios}
	list, err := s.aside(ctx, f.point(found.Best.Values))
	if err == nil {
		list, err = s.final(ctx, list)
	}
	if err != nil {
		return nil, fmt.Errorf("the front of %s: %w", f.Name, err)
	}
	for _, t := range found.Front {
		again := s.trials([][]float64{f.point(t.Values)})[0]
		again.Tuned = t
		list = append(list, again)
	}
	wide := *found
	wide.Front = s.choose(list).Front
	if c.Store != nil {
		err = c.Store.Put(key, wide)
	}
	return &wide, err
}

// aside searches for candidates around a point, one for each of the aims.
func (s *searching) aside(ctx context.Context, from []float64) ([]*trial, error) {
	r := rand.New(rand.NewChaCha8(sha256.Sum256([]byte("front of " + s.family.Name))))
	ce := crossEntropy{r: r, mean: from, sd: make([]float64, len(from))}
	batch := s.trials(nil)
	for _, sd := range []float64{nearby, nearby / 2} {
		for d := range ce.sd {
			ce.sd[d] = sd
		}
		batch = append(batch, s.trials(ce.draw(s.Budget.Population))...)
	}
	if err := s.play(ctx, batch, s.stretches(0, s.Budget.Horizon)); err != nil {
		return nil, err
	}
	var list []*trial
	for _, level := range aims {
		for _, t := range best(batch, level) {
			if (t.short(1) > 0) == (level > 1) && !slices.ContainsFunc(list, func(o *trial) bool { return o.Specification == t.Specification }) {
				list = append(list, t)
				break
			}
		}
	}
	return s.trials(points(list)), nil
}

// Front is what anybody could run in place of a calibrated law on a scenario, each a
// member for Front.Compare: the law's family, as wide as Widen makes it, and fixed counts
// around what the law uses, as a family may have no member between one that is just on
// target and one that is far beyond it.
func (c *Calibrator) Front(ctx context.Context, f Family, s *workload.Scenario, found *Calibration) ([]Contender, error) {
	wide, err := c.Widen(ctx, f, []*workload.Scenario{s}, found)
	if err != nil {
		return nil, err
	}
	list, err := wide.Members(f)
	if err != nil {
		return nil, err
	}
	about := int(math.Ceil(found.Best.MeanWorkers[0]))
	for n := max(1, about-2); n <= min(about+4, s.Farm.Max); n++ {
		count, err := Law(fmt.Sprintf("static:n=%d", n), Given)
		if err != nil {
			return nil, err
		}
		list = append(list, count)
	}
	return list, nil
}
