package train

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"farmhand/env/farmenv"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// Point is what a policy came to on all scenarios.
type Point struct {
	Steps   int     // that it had learned from
	OnTime  float64 // share of tasks; this and the next two are means over the scenarios
	Workers float64 // mean
	Actions float64 // per hour
	// Short is how far the policy is from the aim: the lateness beyond what is allowed,
	// in units of what is aimed at by the target alone, summed over the scenarios. 0: on
	// target everywhere.
	Short float64
	// Missed is likewise how far it is from the targets that the peer reaches; where there is
	// no peer, from that of the one scenario, and 0 if there are several.
	Missed float64
	// Cost is the mean of workers per replica that the load keeps busy, or per worker of
	// the peer where there is one, so that small and large farms count alike.
	Cost  float64
	Cases []Case // by scenario
}

// Case is what a policy came to on a scenario.
type Case struct {
	Scenario string
	OnTime   float64   // share of tasks
	Workers  float64   // mean
	Actions  float64   // per hour
	Cost     float64   // workers per replica that the load keeps busy
	Later    float64   // share of tasks by which it is later than the peer; 0 where there is none
	Late     float64   // weight on lateness in the round
	each     []float64 // OnTime by seed
}

// trials let policies scale farms for the work of some seeds, as a live controller
// does.
type trials struct {
	cfg *Config
	mix *farmenv.Mix

	mu    sync.Mutex
	kept  map[drawing]*workload.Tasks // guarded by mu
	tasks int                         // kept in all; guarded by mu
}

type drawing struct {
	scenario int
	seed     uint64
}

// mostKept is how many tasks are kept for the next look: they need 16 bytes each.
const mostKept = 4_000_000

func newTrials(cfg *Config, mix *farmenv.Mix) *trials {
	return &trials{cfg: cfg, mix: mix, kept: map[drawing]*workload.Tasks{}}
}

// draw makes the work of a scenario and seed; where arrivals are blended, every even seed
// has such; where farms vary and arrivals are not blended, it is of another farm; where
// farms rest, the work of every even seed comes after a rest.
func (t *trials) draw(scenario int, seed uint64) (*workload.Scenario, *workload.Tasks) {
	s := t.cfg.Scenarios[scenario]
	switch {
	case seed%2 > 0:
	case t.cfg.Blend:
		s = t.mix.Blended(scenario, seed)
	case t.cfg.Randomise:
		s = t.mix.Varied(scenario, seed)
	}
	w := t.work(s, drawing{scenario, seed})
	if t.cfg.Rests && seed%2 == 0 {
		return farmenv.Rested(s, w, seed)
	}
	return s, w
}

// work of a drawing, kept if there is room.
func (t *trials) work(s *workload.Scenario, d drawing) *workload.Tasks {
	t.mu.Lock()
	w := t.kept[d]
	t.mu.Unlock()
	if w != nil {
		return w
	}
	w = s.Draw(d.seed)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tasks += len(w.At); t.tasks <= mostKept {
		t.kept[d] = w
	}
	return w
}

// play returns what a policy comes to over all scenarios and seeds, but for what is made
// of it. It does not depend on how many run at once.
func (t *trials) play(ctx context.Context, p policy.Policy, seeds []uint64) (Point, error) {
	n := len(t.cfg.Scenarios)
	runs := make([]Case, n*len(seeds))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(t.cfg.Jobs)
	for i := range runs {
		g.Go(func() error {
			seed := seeds[i/n]
			s, tasks := t.draw(i%n, seed)
			r, err := sim.Run(ctx, sim.Config{Scenario: s, Tasks: tasks, Seed: seed}, sim.Driver{Policy: p, Guard: &guard.Settings{}})
			runs[i] = caseOf(s, tasks, &r)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Point{}, err
	}
	var sum Point
	for k, s := range t.cfg.Scenarios {
		c := Case{Scenario: s.Name}
		for i := k; i < len(runs); i += n {
			c.add(&runs[i], float64(len(seeds)))
			c.each = append(c.each, runs[i].OnTime)
		}
		sum.Cases = append(sum.Cases, c)
		sum.OnTime += c.OnTime / float64(n)
		sum.Workers += c.Workers / float64(n)
		sum.Actions += c.Actions / float64(n)
	}
	return sum, nil
}

// caseOf is what a run came to.
func caseOf(s *workload.Scenario, tasks *workload.Tasks, r *sim.Result) Case {
	busy := 0.0
	for _, x := range tasks.Service {
		busy += x + s.Platform.Overhead
	}
	return Case{OnTime: float64(r.OnTime().Or(1)), Workers: r.MeanWorkers, Actions: float64(r.Actions) / r.Horizon * 3600,
		Cost: r.WorkerSeconds * float64(max(1, s.Farm.Slots)) / max(busy, 1)}
}

// add a part of n of another case.
func (c *Case) add(o *Case, n float64) {
	c.OnTime += o.OnTime / n
	c.Workers += o.Workers / n
	c.Actions += o.Actions / n
	c.Cost += o.Cost / n
}
