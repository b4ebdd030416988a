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

	"farmhand/env"
	"farmhand/policy/learned"
	"farmhand/rl"
)

// candidates is how many policies are kept to choose from.
const candidates = 5

// latePrice is what it costs to be short: to be as late again as is allowed is worth as
// much as 60 % more workers, more than it takes to be in time where that can be had.
const latePrice = 0.6

// Compare orders policies, the better first: by how far they miss the targets that count
// (Point.Missed), then by cost. Being short of the aim, and needing more actions an hour
// than so many, has a price: if either were forbidden, one of few candidates would be
// chosen for being in time by luck, however dear, and of several scenarios the one that
// is hardest to serve would decide alone.
func Compare(a, b *Point, actions float64) int {
	dear := func(p *Point) float64 {
		short := p.Short + max(0, p.Actions/actions-1)
		return p.Cost * (1 + latePrice*short/float64(max(1, len(p.Cases))))
	}
	return cmp.Or(cmp.Compare(a.Missed, b.Missed), cmp.Compare(dear(a), dear(b)))
}

// keep a policy if it is among the best. How often it acts is settled in the end.
func (t *Trainer) keep(p candidate) {
	if t.cfg.Last {
		t.best = t.best[:0]
	}
	t.best = append(t.best, p)
	slices.SortStableFunc(t.best, func(a, b candidate) int { return Compare(&a.Point, &b.Point, math.Inf(1)) })
	t.best = t.best[:min(len(t.best), candidates)]
}

// bias is what is added to the output of an action in the final selection.
type bias struct {
	action int
	by     float64
}

// calm are the biases that are tried: a policy whose outputs are nearly equal goes to and
// fro between them, which a bias towards holding mends.
var calm = []bias{{}, {learned.Hold, 0.25}, {learned.Hold, 0.5}, {learned.Hold, 1}, {learned.Hold, 1.5}, {learned.Hold, 2}, {learned.Hold, 3}, {learned.Hold, 4}}

func (t *Trainer) biases() []bias {
	if len(t.cfg.Scenarios) > 1 { // what is calmer on one is late on another
		return calm[:1]
	}
	return calm
}

// biased returns the policy with a bias.
func biased(file []byte, b bias) ([]byte, error) {
	f, err := learned.Parse(file)
	if err != nil {
		return nil, err
	}
	f.Net.Layers[len(f.Net.Layers)-1].Bias[b.action] += b.by
	var to bytes.Buffer
	err = f.Write(&to)
	return to.Bytes(), err
}

// choose goes on with the final selection by one try. Each of the best policies is tried
// as it is and with some biases, on some of the training work; then a few
// of these on all of it. Try k is of best k/n with the bias k%n, of n biases.
func (t *Trainer) choose(ctx context.Context) error {
	list, seeds, k := &t.tries, t.cfg.Seeds, len(t.tries)
	if k == t.triesInAll() {
		list, seeds, k = &t.finals, t.cfg.Final, t.shortlist()[len(t.finals)]
	}
	file, err := t.tried(k)
	if err != nil {
		return err
	}
	p, err := t.try(ctx, file, seeds)
	if err != nil {
		return err
	}
	from := &t.best[k/len(t.biases())]
	p.Steps = from.Steps
	for i := range p.Cases {
		p.Cases[i].Late = from.Cases[i].Late
	}
	*list = append(*list, p)
	return nil
}

func (t *Trainer) triesInAll() int {
	if t.cfg.Last { // there is nothing to choose
		return 0
	}
	return len(t.best) * len(t.biases())
}

// tried is the file of a try.
func (t *Trainer) tried(k int) ([]byte, error) {
	biases := t.biases()
	return biased(t.best[k/len(biases)].file, biases[k%len(biases)])
}

// shortlist are the numbers of the tries that go on to all of the work, the best first.
func (t *Trainer) shortlist() []int {
	list := make([]int, len(t.tries))
	for k := range list {
		list[k] = k
	}
	slices.SortStableFunc(list, func(a, b int) int { return Compare(&t.tries[a], &t.tries[b], t.cfg.Actions) })
	return list[:min(len(list), candidates)]
}

// Done reports whether nothing is left to do.
func (t *Trainer) Done() bool {
	return t.learnt() && len(t.tries) == t.triesInAll() && len(t.finals) == min(len(t.tries), candidates)
}

// Choosing tells how far the final selection is.
func (t *Trainer) Choosing() (done, all int) {
	return len(t.tries) + len(t.finals), t.triesInAll() + min(t.triesInAll(), candidates)
}

// errNone is the error of a training that has not come to the end of a round.
var errNone = errors.New("train: no round is done yet: want more steps")

// Policy returns the policy file that was chosen, with what it came to on all of the
// training work; as long as not all is done, the best so far, with what it came to on
// some of it.
func (t *Trainer) Policy() ([]byte, Point, error) {
	chosen, seeds, err := t.chosen()
	if err != nil {
		return nil, Point{}, err
	}
	file, err := t.describe(chosen, seeds)
	return file, chosen.Point, err
}

// Member is Policy for Merge, which describes what it makes: the file does not yet say
// what training knows of it.
func (t *Trainer) Member() ([]byte, Point, error) {
	chosen, _, err := t.chosen()
	return chosen.file, chosen.Point, err
}

// chosen is the policy that was chosen, or the best so far, and the seeds of the work that
// it was judged with.
func (t *Trainer) chosen() (candidate, []uint64, error) {
	if len(t.best) == 0 {
		return candidate{}, nil, errNone
	}
	if !t.Done() || t.cfg.Last {
		return t.best[0], t.cfg.Seeds, nil
	}
	at := 0
	for i := range t.finals {
		if Compare(&t.finals[i], &t.finals[at], t.cfg.Actions) < 0 {
			at = i
		}
	}
	file, err := t.tried(t.shortlist()[at])
	return candidate{t.finals[at], file}, t.cfg.Final, err
}

// describe adds to a policy file what training knows of it.
func (t *Trainer) describe(p candidate, seeds []uint64) ([]byte, error) {
	f, err := learned.Parse(p.file)
	if err != nil {
		return nil, err
	}
	f.Training = map[string]float64{"on_time": p.OnTime, "mean_workers": p.Workers, "actions_per_h": p.Actions, "short": p.Short, "cost": p.Cost,
		"steps": float64(p.Steps), "seeds": float64(len(seeds))}
	for _, c := range p.Cases {
		prefix := ""
		if len(p.Cases) > 1 {
			prefix = c.Scenario + "/"
			f.Training[prefix+"on_time"], f.Training[prefix+"mean_workers"] = c.OnTime, c.Workers
		}
		if c.Late > 0 { // what was merged has none
			f.Training[prefix+"late_weight"] = c.Late
		}
	}
	if err := t.ranges(f); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = f.Write(&b)
	return b.Bytes(), err
}

// mostReplay is how many bytes of a checkpoint may be the memory of a learner: the rest
// has room in two MiB.
const mostReplay = MaxCheckpoint - 2<<20

// frameBytes is what a frame takes in a checkpoint: its observation as float32, mask,
// reward, action and kind (package replay).
func frameBytes(spec *env.Spec) int { return 4*spec.Observation.Len() + 18 }

// write makes a policy file of what was learned.
func (t *Trainer) write() ([]byte, error) {
	box := t.envs.Spec().Observation
	f := &learned.File{
		Meta: learned.Meta{Rule: t.cfg.Rule, Fallback: t.cfg.Fallback, Learner: t.cfg.Learner, Environment: t.envs.Spec().ID, Scenario: t.cfg.name(),
			Seed: t.cfg.Seed, Steps: t.learner.Steps(), Hidden: t.cfg.Hide, Only: t.cfg.Only, Settings: json.RawMessage(t.config)},
		Net: Net(t.learner.Network()),
		Low: box.Low, High: box.High,
	}
	f.Net.Scale = slices.Clone(f.Net.Scale)
	for _, name := range t.cfg.Hide { // a live farm shows them
		f.Net.Scale[slices.Index(box.Names, name)] = 0
	}
	var b bytes.Buffer
	err := f.Write(&b)
	return b.Bytes(), err
}

// Net is a learner's network as a policy file has it. They share their numbers.
func Net(n rl.Network) learned.Net {
	net := learned.Net{Shift: n.Normalise.Shift, Scale: n.Normalise.Scale, Limit: n.Normalise.Limit, Activation: learned.Activation(n.Activation)}
	for _, l := range n.Layers {
		net.Layers = append(net.Layers, learned.Layer{In: l.In, Out: l.Out, Weight: l.Weight, Bias: l.Bias})
	}
	return net
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
		c.Seed, c.Gamma, c.RewardScale, c.Dueling, c.NStep = cfg.Seed, cfg.Gamma, 0.02, true, 5
		c.AnnealSteps, c.EpsilonSteps, c.EpsilonEnd = cfg.Steps, cfg.Steps/4, 0.02
		// Errors count squared however large: a burst that is met too late is rare and
		// costs much, and a loss that grows linearly learns the median, which leaves it out.
		c.Huber = 0
		b, err := adjust(&c)
		if err != nil {
			return nil, nil, err
		}
		if n := c.Buffer * frameBytes(spec); n > mostReplay {
			return nil, nil, fmt.Errorf("train: Buffer is %d: its frames take %d bytes each, and a checkpoint has room for %d", c.Buffer, frameBytes(spec), mostReplay/frameBytes(spec))
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
		c.Seed, c.Gamma, c.RewardScale, c.Rollout = cfg.Seed, cfg.Gamma, 0.1, max(1, c.Rollout/cfg.Envs)
		c.AnnealSteps = cfg.Steps + cfg.Steps/6 // the last of them teach something too
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
