package train

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"farmhand/env"
	"farmhand/policy/guard"
	"farmhand/policy/learned"
	"farmhand/rl"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// candidates is how many policies are kept to choose from.
const candidates = 5

// goal is what a policy should come to.
type goal struct {
	onTime  float64 // share, at least
	actions float64 // an hour, at most
}

// compare orders policies, the better first: those that reach the goal by cost, the
// others by how far they are from it.
func (g goal) compare(a, b Point) int {
	short := func(p Point) float64 {
		return max(0, g.onTime-p.OnTime)/(1-g.onTime) + max(0, p.Actions/g.actions-1)
	}
	return cmp.Or(cmp.Compare(short(a), short(b)), cmp.Compare(a.Workers, b.Workers))
}

// keep a policy if it is among the best. How often it acts is settled in the end.
func (t *Trainer) keep(p Point) {
	t.best = append(t.best, p)
	g := goal{t.aim(), math.Inf(1)}
	slices.SortStableFunc(t.best, g.compare)
	t.best = t.best[:min(len(t.best), candidates)]
}

// calm are the biases towards holding that are tried: a policy whose outputs are nearly
// equal goes to and fro between them.
var calm = []float64{0, 0.25, 0.5, 1, 1.5, 2, 3, 4}

// calmer returns the policy with a bias on the output that holds.
func calmer(file []byte, bias float64) ([]byte, error) {
	f, err := learned.Parse(file)
	if err != nil {
		return nil, err
	}
	last := f.Net.Layers[len(f.Net.Layers)-1]
	last.Bias[learned.Hold] += bias
	var b bytes.Buffer
	err = f.Write(&b)
	return b.Bytes(), err
}

// errNone is the error of a training that has not come to the end of a round.
var errNone = errors.New("train: no round is done yet: want more steps")

// Policy chooses among the best policies, each as it is and with some bias towards
// holding, and returns the file of the one, with what it came to: all are tried on some
// of the training work, a few on all of it.
func (t *Trainer) Policy(ctx context.Context) ([]byte, Point, error) {
	if len(t.best) == 0 {
		return nil, Point{}, errNone
	}
	g := goal{t.aim(), t.cfg.Actions}
	var list []Point
	for _, p := range t.best {
		for _, bias := range calm {
			file, err := calmer(p.file, bias)
			if err != nil {
				return nil, Point{}, err
			}
			q, err := t.try(ctx, p, file, t.cfg.Seeds)
			if err != nil {
				return nil, Point{}, err
			}
			list = append(list, q)
		}
	}
	slices.SortStableFunc(list, g.compare)
	list = list[:min(len(list), candidates)]
	for i, p := range list {
		q, err := t.try(ctx, p, p.file, t.cfg.Final)
		if err != nil {
			return nil, Point{}, err
		}
		list[i] = q
	}
	best := slices.MinFunc(list, g.compare)
	file, err := t.describe(best)
	return file, best, err
}

// try a file made of p.
func (t *Trainer) try(ctx context.Context, p Point, file []byte, seeds []uint64) (Point, error) {
	q, err := t.trials.play(ctx, file, seeds)
	q.Steps, q.Late, q.file = p.Steps, p.Late, file
	return q, err
}

// describe adds to a policy file what training knows of it.
func (t *Trainer) describe(p Point) ([]byte, error) {
	f, err := learned.Parse(p.file)
	if err != nil {
		return nil, err
	}
	f.Training = map[string]float64{"on_time": p.OnTime, "mean_workers": p.Workers, "actions_per_h": p.Actions, "late_weight": p.Late, "steps": float64(p.Steps),
		"seeds": float64(len(t.cfg.Final))}
	if err := t.ranges(f); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = f.Write(&b)
	return b.Bytes(), err
}

// ranges finds out where the features of a policy lie, all but a thousandth at each
// end, while it scales the farm of each seed.
func (t *Trainer) ranges(f *learned.File) error {
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		return err
	}
	p, err := learned.Load(b.Bytes())
	if err != nil {
		return err
	}
	farm, err := t.farms[0].Another()
	if err != nil {
		return err
	}
	columns := make([][]float64, len(f.Features))
	for _, seed := range t.cfg.Final {
		obs, info := farm.Reset(seed, nil)
		for over := false; !over; {
			for i, x := range obs {
				columns[i] = append(columns[i], x)
			}
			obs, _, _, over, info = farm.Step(p.Act(obs, info.Mask))
		}
	}
	f.Low, f.High = make([]float64, len(columns)), make([]float64, len(columns))
	for i, c := range columns {
		slices.Sort(c)
		f.Low[i], f.High[i] = c[len(c)/1000], c[len(c)-1-len(c)/1000]
	}
	return nil
}

// write makes a policy file of what was learned.
func (t *Trainer) write() ([]byte, error) {
	n := t.learner.Network()
	box := t.envs.Spec().Observation
	f := &learned.File{
		Meta: learned.Meta{Rule: t.cfg.Rule, Learner: t.cfg.Learner, Environment: t.envs.Spec().ID, Scenario: t.cfg.Scenario.Name,
			Seed: t.cfg.Seed, Steps: t.learner.Steps(), Settings: json.RawMessage(t.config)},
		Net: learned.Net{Shift: n.Normalise.Shift, Scale: n.Normalise.Scale, Limit: n.Normalise.Limit, Activation: learned.Activation(n.Activation)},
		Low: box.Low, High: box.High,
	}
	for _, l := range n.Layers {
		f.Net.Layers = append(f.Net.Layers, learned.Layer{In: l.In, Out: l.Out, Weight: l.Weight, Bias: l.Bias})
	}
	var b bytes.Buffer
	err := f.Write(&b)
	return b.Bytes(), err
}

// learner is an rl.Learner whose policy is a network.
type learner interface {
	rl.Learner
	Network() rl.Network
	Clone(ctx context.Context, envs *env.Vector, teacher rl.Teacher, cfg rl.CloneConfig) error
}

// Learners are the names of those that there are.
func Learners() []string { return []string{"dqn", "ppo", "reinforce"} }

func newLearner(cfg Config, spec *env.Spec) (learner, []byte, error) {
	adjust := func(settings any) ([]byte, error) {
		if cfg.Adjust != nil {
			cfg.Adjust(settings)
		}
		return json.Marshal(settings)
	}
	switch cfg.Learner {
	case "dqn":
		c := rl.DefaultDQN()
		c.Seed, c.Gamma, c.EpsilonSteps, c.RewardScale, c.Dueling = cfg.Seed, 0.98, cfg.Steps/4, 0.1, true
		b, err := adjust(&c)
		if err != nil {
			return nil, nil, err
		}
		l, err := rl.NewDQN(c, spec)
		if err != nil {
			return nil, nil, err
		}
		l.SetLog(cfg.Log)
		return l, b, nil
	case "ppo", "reinforce":
		c := rl.PPO()
		if cfg.Learner == "reinforce" {
			c = rl.REINFORCE()
		}
		c.Seed, c.Gamma, c.RewardScale, c.Rollout = cfg.Seed, 0.98, 0.1, max(1, c.Rollout/cfg.Envs)
		b, err := adjust(&c)
		if err != nil {
			return nil, nil, err
		}
		l, err := rl.NewPG(c, spec)
		if err != nil {
			return nil, nil, err
		}
		l.SetLog(cfg.Log)
		return l, b, nil
	}
	return nil, nil, fmt.Errorf("train: %q is no learner: want one of %v", cfg.Learner, Learners())
}

// trials let policies scale the farm for the work of some seeds, as a live controller
// does.
type trials struct {
	scenario *workload.Scenario
	jobs     int
	mu       sync.Mutex
	tasks    map[uint64]*workload.Tasks // guarded by mu
}

func newTrials(s *workload.Scenario, jobs int) *trials {
	return &trials{scenario: s, jobs: jobs, tasks: map[uint64]*workload.Tasks{}}
}

func (t *trials) draw(seed uint64) *workload.Tasks {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.tasks[seed]
	if w == nil {
		w = t.scenario.Draw(seed)
		t.tasks[seed] = w
	}
	return w
}

// play returns what a policy comes to over all seeds.
func (t *trials) play(ctx context.Context, file []byte, seeds []uint64) (Point, error) {
	p, err := learned.Load(file)
	if err != nil {
		return Point{}, err
	}
	results := make([]sim.Result, len(seeds))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(t.jobs)
	for i, seed := range seeds {
		g.Go(func() (err error) {
			results[i], err = sim.Run(ctx, sim.Config{Scenario: t.scenario, Tasks: t.draw(seed), Seed: seed},
				sim.Driver{Policy: p, Rule: p.Rule(), Guard: &guard.Settings{Learned: true}})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Point{}, err
	}
	var sum Point
	decided, late, seconds := 0, 0, 0.0
	for _, r := range results {
		decided, late, seconds = decided+r.Decided, late+r.Late, seconds+r.Horizon
		sum.Workers += r.WorkerSeconds
		sum.Actions += float64(r.Actions)
	}
	sum.OnTime = 1 - float64(late)/float64(max(1, decided))
	sum.Workers /= seconds
	sum.Actions *= 3600 / seconds
	return sum, nil
}
