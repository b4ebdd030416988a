package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"farmhand/internal/checkpoint"
	"farmhand/policy/learned"
)

// MaxCheckpoint is how many bytes a checkpoint has at most.
const MaxCheckpoint = 32 << 20

// Save writes all that the Trainer is. Equal Trainers write equal bytes.
func (t *Trainer) Save(w io.Writer) error { return checkpoint.Save(w, t.header(), t.state) }

// Load makes the Trainer that was saved. The configuration is that of the saved one, but
// for Jobs, Log and Done, which have no effect on what is learned; the error names what
// differs, or what is wrong with the checkpoint.
func Load(r io.Reader, cfg Config) (*Trainer, error) {
	t, err := New(cfg)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, MaxCheckpoint+1))
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if len(b) > MaxCheckpoint {
		return nil, fmt.Errorf("train: the checkpoint has more than %d MiB: it is none of a training", MaxCheckpoint>>20)
	}
	if err := checkpoint.Load(bytes.NewReader(b), t.header(), t.state); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	t.weigh()
	return t, nil
}

// header says what a checkpoint belongs to.
func (t *Trainer) header() []byte {
	c := &t.cfg
	var scenarios []string
	for _, s := range c.Scenarios {
		h := fnv.New64a()
		h.Write(s.YAML())
		scenarios = append(scenarios, fmt.Sprintf("%s (%x)", s.Name, h.Sum64()))
	}
	from := ""
	if len(c.From) > 0 {
		from = learned.NameOf(c.From)
	}
	b, err := json.Marshal(map[string]any{"training": 3, "scenarios": scenarios, "rule": c.Rule, "fallback": c.Fallback, "learner": c.Learner, "steps": c.Steps,
		"round": c.Round, "envs": c.Envs, "episode": c.Episode, "seed": c.Seed, "seeds": c.Seeds, "final": c.Final, "margin": c.Margin, "dual": c.Dual,
		"late": c.Late, "churn": c.Churn, "actions": c.Actions, "clone": c.Clone, "warmup": c.Warmup, "randomise": c.Randomise, "blend": c.Blend, "rests": c.Rests, "patience": c.Patience, "hide": c.Hide, "only": c.Only, "peer": c.Peer, "tolerance": c.Tolerance, "last": c.Last, "from": from, "settings": json.RawMessage(t.config)})
	if err != nil {
		panic(err) // numbers and names
	}
	return b
}

// Bounds of what a checkpoint has.
const (
	maxSteps  = 1 << 40
	maxPoints = 1 << 20
)

func (t *Trainer) state(c *checkpoint.Codec) {
	cloned := 0
	if t.cloned {
		cloned = 1
	}
	c.Int("cloned", &cloned, 1)
	t.cloned = cloned == 1
	c.Int("until", &t.until, maxSteps)
	c.Floats("late", t.late)
	peer := 0
	if t.peer != nil {
		peer = 1
	}
	if c.Int("peer", &peer, 1); peer == 1 {
		if c.Reading() {
			t.peer = &Point{}
		}
		t.point(c, t.peer)
		for i := range t.peer.Cases {
			k := &t.peer.Cases[i]
			if c.Reading() {
				k.each = make([]float64, len(t.cfg.Final))
			}
			c.Floats("peer", k.each)
		}
	}
	t.points(c, "curve", &t.curve)
	t.points(c, "tries", &t.tries)
	t.points(c, "finals", &t.finals)
	n := c.Len("best", len(t.best), candidates)
	if c.Reading() {
		t.best = make([]candidate, n)
	}
	for i := range t.best {
		t.point(c, &t.best[i].Point)
		c.Bytes("policy", &t.best[i].file, MaxCheckpoint)
	}
	if c.Reading() && (len(t.curve) > 0 != (len(t.best) > 0) || len(t.finals) > candidates || len(t.tries) > t.triesInAll()) {
		c.Fail(errors.New("rounds, candidates and tries do not belong together"))
	}
	t.learnerState(c)
}

// learnerState visits the learner, which has a checkpoint of its own.
func (t *Trainer) learnerState(c *checkpoint.Codec) {
	var b bytes.Buffer
	if !c.Reading() {
		if err := t.learner.Save(&b); err != nil {
			c.Fail(err)
			return
		}
	}
	whole := b.Bytes()
	c.Bytes("learner", &whole, MaxCheckpoint)
	if c.Reading() && !c.Failed() {
		if err := t.learner.Load(bytes.NewReader(whole)); err != nil {
			c.Fail(err)
		}
	}
}

func (t *Trainer) points(c *checkpoint.Codec, name string, list *[]Point) {
	n := c.Len(name, len(*list), maxPoints)
	if c.Reading() {
		*list = nil
		for range n {
			if c.Failed() {
				return
			}
			var p Point
			t.point(c, &p)
			*list = append(*list, p)
		}
		return
	}
	for i := range *list {
		t.point(c, &(*list)[i])
	}
}

func (t *Trainer) point(c *checkpoint.Codec, p *Point) {
	c.Int("steps", &p.Steps, maxSteps)
	for _, x := range []*float64{&p.OnTime, &p.Workers, &p.Actions, &p.Short, &p.Missed, &p.Cost} {
		c.Float("mean", x)
	}
	if c.Reading() {
		p.Cases = make([]Case, len(t.cfg.Scenarios))
	}
	for i := range p.Cases {
		k := &p.Cases[i]
		k.Scenario = t.cfg.Scenarios[i].Name
		for _, x := range []*float64{&k.OnTime, &k.Workers, &k.Actions, &k.Cost, &k.Later, &k.Late} {
			c.Float("case", x)
		}
	}
}
