package evaluate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"golang.org/x/sync/errgroup"

	"farmhand/policy"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// searching is a calibration under way.
type searching struct {
	*Calibrator
	family      Family
	scenarios   []*workload.Scenario
	evaluations int
	hours       float64
}

// shortlist searches for candidates.
func (s *searching) shortlist(ctx context.Context) ([]*trial, error) {
	b, dims := &s.Budget, len(s.family.Free)
	if dims == 0 {
		return s.trials([][]float64{nil}), nil
	}
	h := sha256.Sum256([]byte(s.family.Name))
	r := rand.New(rand.NewChaCha8(h))
	first := s.trials(append([][]float64{s.family.defaults()}, uniform(r, max(1, b.Random-1), dims)...))
	if err := s.play(ctx, first, s.stretches(0, b.Horizon/4)); err != nil {
		return nil, err
	}
	ce := crossEntropy{r: r, narrow: 0.1}
	elite := best(first, 1)
	ce.spread(points(elite[:max(1, len(first)/10)]))
	ce.guides = points(append(first[:1:1], elite[:min(guided-1, len(elite))]...))
	var all []*trial
	for g := range b.Generations {
		batch := s.trials(ce.draw(b.Population))
		if err := s.play(ctx, batch, s.stretches(g+1, b.Horizon)); err != nil {
			return nil, err
		}
		all = append(batch, all...) // the latest first: they are the best searched
		ce.spread(points(best(batch, 1)[:max(1, b.Population/4)]))
		ce.guides = points(best(all, 1)[:min(guided, len(all))])
	}
	if len(all) == 0 {
		all = first
	}
	list := first[:1]
	for i := 1; len(list) < b.Final && i <= 10*b.Final; i++ {
		for _, t := range best(all, levels[i%len(levels)]) {
			if !slices.ContainsFunc(list, func(o *trial) bool { return o.Specification == t.Specification }) {
				list = append(list, t)
				break
			}
		}
	}
	return s.trials(points(list)), nil
}

// counts searches the fewest replicas by bisection, and takes their neighbours too.
func (s *searching) counts(ctx context.Context) ([]*trial, error) {
	t := s.family.Free[0]
	at := func(n float64) []float64 { return s.family.point([]float64{n}) }
	lo, hi := t.Min, t.Max // hi is taken to be enough
	work := s.stretches(0, s.Budget.Horizon)
	for lo < hi {
		middle := math.Floor((lo + hi) / 2)
		one := s.trials([][]float64{at(middle)})
		if err := s.play(ctx, one, work); err != nil {
			return nil, err
		}
		if one[0].short(1) > 0 {
			lo = middle + 1
		} else {
			hi = middle
		}
	}
	var list [][]float64
	for n := max(t.Min, lo-2); n <= min(t.Max, lo+3); n++ {
		list = append(list, at(n))
	}
	return s.trials(list), nil
}

// final lets the shortlist serve all training seeds. Of a scenario that is longer
// than the horizon the seeds take one part after the other.
func (s *searching) final(ctx context.Context, list []*trial) ([]*trial, error) {
	n := float64(len(s.Budget.Seeds))
	for _, t := range list {
		t.Cost, t.OnTime, t.MeanWorkers = 0, make([]policy.Maybe, len(s.scenarios)), make([]float64, len(s.scenarios))
	}
	for i := range s.Budget.Seeds {
		batch := s.trials(points(list))
		if err := s.play(ctx, batch, s.parts(i)); err != nil {
			return nil, err
		}
		for k, t := range batch {
			list[k].Specification = t.Specification
			list[k].Cost += t.Cost / n
			for j, x := range t.OnTime {
				list[k].OnTime[j] += x / policy.Maybe(n)
				list[k].MeanWorkers[j] += t.MeanWorkers[j] / n
			}
		}
	}
	return list, nil
}

// choose the best and the front.
func (s *searching) choose(list []*trial) *Calibration {
	c := &Calibration{Family: s.family.Name, Free: len(s.family.Free), Evaluations: s.evaluations, Hours: s.hours, Seeds: s.Budget.Seeds}
	for _, scenario := range s.scenarios {
		c.Scenarios = append(c.Scenarios, scenario.Name)
	}
	for _, t := range list {
		t.OnTarget = t.short(1) == 0
	}
	c.Best = cheapest(list).Tuned
	slices.SortStableFunc(list, func(a, b *trial) int { return cmp.Compare(a.short(0), b.short(0)) })
	for _, t := range list {
		if k := len(c.Front); k == 0 || t.Cost < c.Front[k-1].Cost {
			c.Front = append(c.Front, t.Tuned)
		}
	}
	return c
}

func points(list []*trial) [][]float64 {
	p := make([][]float64, len(list))
	for i, t := range list {
		p[i] = t.point
	}
	return p
}

func (s *searching) trials(points [][]float64) []*trial {
	list := make([]*trial, len(points))
	for i, p := range points {
		list[i] = &trial{point: p}
		list[i].Values = s.family.values(p)
		for _, scenario := range s.scenarios {
			list[i].targets = append(list[i].targets, scenario.Farm.Target)
		}
	}
	return list
}

// play lets candidates serve the same work: runs of each scenario, of which the mean
// counts.
func (s *searching) play(ctx context.Context, batch []*trial, work [][]sim.Config) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, s.Jobs))
	for _, t := range batch {
		g.Go(func() error {
			member, err := s.family.Make(t.Values)
			if err != nil {
				return err
			}
			t.Specification = member.Spec
			t.Cost, t.OnTime, t.MeanWorkers = 0, make([]policy.Maybe, len(work)), make([]float64, len(work))
			for i, runs := range work {
				n := float64(len(runs))
				for _, w := range runs {
					r, err := member.play(ctx, s.runner(), s.Guard, w)
					if err != nil {
						return fmt.Errorf("%s on %s: %w", member.Spec, w.Scenario.Name, err)
					}
					t.OnTime[i] += r.OnTime() / policy.Maybe(n)
					t.MeanWorkers[i] += r.MeanWorkers / n
					t.Cost += r.WorkerSeconds / offered(w.Tasks) / n / float64(len(work))
				}
			}
			return nil
		})
	}
	for _, runs := range work {
		for _, w := range runs {
			s.hours += w.Tasks.Horizon / 3600 * float64(len(batch))
		}
	}
	s.evaluations += len(batch)
	return g.Wait()
}

// leastStretch is how short a stretch of work may be, in seconds: a farm does not
// shrink in its first two minutes.
const leastStretch = 600

// stretches is work of that length from each scenario: the part of the seed's work
// which is most like the whole, or, of a scenario that is shorter, as many seeds as
// go into it, this one first.
func (s *searching) stretches(first int, length float64) [][]sim.Config {
	length = max(length, leastStretch)
	work := make([][]sim.Config, len(s.scenarios))
	for i, scenario := range s.scenarios {
		if length < scenario.Horizon {
			seed := s.seed(first)
			tasks := scenario.Draw(seed)
			from := likest(tasks, length, scenario.Farm.Interval)
			work[i] = []sim.Config{stretch(scenario, tasks, seed, from, from+length)}
			continue
		}
		for k := range min(int(length/scenario.Horizon), len(s.Budget.Seeds)) {
			seed := s.seed(first + k)
			work[i] = append(work[i], sim.Config{Scenario: scenario, Tasks: scenario.Draw(seed), Seed: seed})
		}
	}
	return work
}

// parts is of each scenario the i-th part of a horizon's length, over and over, with
// the i-th seed.
func (s *searching) parts(i int) [][]sim.Config {
	work := make([][]sim.Config, len(s.scenarios))
	for j, scenario := range s.scenarios {
		tasks := scenario.Draw(s.seed(i))
		length := min(s.Budget.Horizon, tasks.Horizon)
		n := max(1, int(math.Round(tasks.Horizon/length)))
		from := float64(i%n) * length
		work[j] = []sim.Config{stretch(scenario, tasks, s.seed(i), from, min(from+length, tasks.Horizon))}
	}
	return work
}

// seed is the i-th training seed, over and over.
func (s *searching) seed(i int) uint64 { return s.Budget.Seeds[i%len(s.Budget.Seeds)] }
