package evaluate

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"farmhand/policy/guard"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// Settings are what all runs of the package share.
type Settings struct {
	Guard *guard.Settings // nil: nothing limits a wish but the bounds of the farm
	Jobs  int             // runs at the same time; 0: one
	Store Store           // nil: nothing is kept
	Ran   func()          // nil; called after each run, from any goroutine

	run runFunc // nil: simulate
}

func (s *Settings) runner() runFunc {
	run := s.run
	if run == nil {
		run = simulate
	}
	if s.Ran == nil {
		return run
	}
	return func(ctx context.Context, c sim.Config, d sim.Driver) (sim.Result, error) {
		defer s.Ran()
		return run(ctx, c, d)
	}
}

// farms are simulated farms whose memory is used again.
var farms = sync.Pool{New: func() any { return new(sim.Sim) }}

// simulate is sim.Run.
func simulate(ctx context.Context, c sim.Config, d sim.Driver) (sim.Result, error) {
	farm := farms.Get().(*sim.Sim)
	defer farms.Put(farm)
	if err := farm.Reset(c); err != nil {
		return sim.Result{}, err
	}
	return farm.Play(ctx, d)
}

// Case is a scenario and who competes on it.
type Case struct {
	Scenario   *workload.Scenario
	Contenders []Contender
}

// Study is a comparison: cases × seeds, with common random numbers.
type Study struct {
	Settings
	Seeds []uint64
}

// Run lets each contender of each case serve each seed. It returns the entries in
// the order of the cases and their contenders; they do not depend on Jobs. On an
// error, an interrupt too, it returns what was finished beside the error.
//
// What a Store has is not run again, and what was run is put there at once.
func (s *Study) Run(ctx context.Context, cases []Case) ([]Entry, error) {
	r, err := s.begin(ctx, cases)
	if err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, s.Jobs))
	for c := range cases {
		for _, seed := range s.Seeds {
			g.Go(func() error { return r.block(ctx, c, seed) })
		}
	}
	err = g.Wait()
	return r.entries(), err
}

// round is a Study under way.
type round struct {
	*Study
	cases []Case
	keys  [][]string // of a contender on a case; empty without a Store

	mu   sync.Mutex
	done []map[uint64][]*sim.Result // by case and seed; nil: not finished
}

func (s *Study) begin(ctx context.Context, cases []Case) (*round, error) {
	r := &round{Study: s, cases: cases, keys: make([][]string, len(cases)), done: make([]map[uint64][]*sim.Result, len(cases))}
	for i, c := range cases {
		r.done[i] = map[uint64][]*sim.Result{}
		for _, seed := range s.Seeds {
			r.done[i][seed] = make([]*sim.Result, len(c.Contenders))
		}
		if s.Store == nil {
			continue
		}
		p := s.probe(c.Scenario)
		for k := range c.Contenders {
			key, err := p.contender(ctx, &c.Contenders[k])
			if err != nil {
				return nil, err
			}
			r.keys[i] = append(r.keys[i], key)
		}
	}
	return r, nil
}

// block runs one seed of one case: the tasks are drawn once, and only if needed.
func (r *round) block(ctx context.Context, c int, seed uint64) error {
	scenario := r.cases[c].Scenario
	var tasks *workload.Tasks
	for i := range r.cases[c].Contenders {
		if err := ctx.Err(); err != nil {
			return err
		}
		var kept sim.Result
		if known, err := r.recall(c, i, seed, &kept); err != nil {
			return err
		} else if known {
			r.finish(c, i, seed, &kept)
			continue
		}
		if tasks == nil {
			tasks = scenario.Draw(seed)
		}
		contender := &r.cases[c].Contenders[i]
		result, err := contender.play(ctx, r.runner(), r.Guard, sim.Config{Scenario: scenario, Tasks: tasks, Seed: seed})
		if err != nil {
			return fmt.Errorf("%s on %s, seed %d: %w", contender.Spec, scenario.Name, seed, err)
		}
		if r.Store != nil {
			if err := r.Store.Put(episodeKey(r.keys[c][i], seed), result); err != nil {
				return err
			}
		}
		r.finish(c, i, seed, &result)
	}
	return nil
}

// recall asks the Store for a result.
func (r *round) recall(c, i int, seed uint64, into *sim.Result) (bool, error) {
	if r.Store == nil {
		return false, nil
	}
	return r.Store.Get(episodeKey(r.keys[c][i], seed), into)
}

func (r *round) finish(c, i int, seed uint64, result *sim.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[c][seed][i] = result
}

// entries are those with a finished episode.
func (r *round) entries() (list []Entry) {
	for i, c := range r.cases {
		for k, contender := range c.Contenders {
			e := Entry{Scenario: c.Scenario, Contender: contender}
			for _, seed := range r.Seeds {
				if result := r.done[i][seed][k]; result != nil {
					e.Episodes = append(e.Episodes, Episode{seed, *result})
				}
			}
			if len(e.Episodes) > 0 {
				list = append(list, e)
			}
		}
	}
	return list
}
