package train

import (
	"context"
	"errors"
)

// Run learns and chooses until all is done, or ctx is.
func (t *Trainer) Run(ctx context.Context) error {
	_, err := t.Slice(ctx, func() bool { return false })
	return err
}

// Slice goes on with the work until enough says so, ctx is done, or nothing is left. It
// reports whether nothing is left. enough is asked after each piece of work: an update
// of the learner, a look at the policy, a try of the final selection; measuring the peer
// is one piece, and so is imitating the rule, or From. One is always done, so that slices
// get on however short they are. After it, and after an error of ctx, the Trainer can be
// saved.
func (t *Trainer) Slice(ctx context.Context, enough func() bool) (done bool, err error) {
	for !t.Done() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if err := t.advance(ctx, enough); err != nil && !errors.Is(err, errEnough) {
			return false, err
		}
		if enough() {
			break
		}
	}
	return t.Done(), nil
}

// advance does the next piece of work, or as many updates as there are until enough.
func (t *Trainer) advance(ctx context.Context, enough func() bool) error {
	switch {
	case t.cfg.Peer != "" && t.peer == nil:
		return t.measure(ctx)
	case t.cfg.Clone > 0 && !t.cloned:
		err := t.imitate(ctx)
		t.cloned = err == nil
		return err
	case t.learnt():
		return t.choose(ctx)
	case t.learner.Steps() < t.until:
		return t.learner.Learn(&updates{Context: ctx, enough: enough}, t.envs, t.until)
	}
	return t.look(ctx)
}

// learnt reports whether all steps are done, and the policy was looked at after them; or
// it has not become better for as many rounds as there is patience.
func (t *Trainer) learnt() bool {
	if len(t.curve) == 0 {
		return false
	}
	since := 0
	for _, p := range t.curve {
		if p.Steps > max(t.best[0].Steps, t.cfg.Warmup) {
			since++
		}
	}
	return t.curve[len(t.curve)-1].Steps >= t.cfg.Steps || t.cfg.Patience > 0 && since >= t.cfg.Patience
}

// updates is the context of a learner, which asks it before each update whether to go
// on: before the first one it always does.
type updates struct {
	context.Context
	enough func() bool
	asked  bool
}

var errEnough = errors.New("train: the slice is over")

func (u *updates) Err() error {
	if err := u.Context.Err(); err != nil {
		return err
	}
	if u.asked && u.enough() {
		return errEnough
	}
	u.asked = true
	return nil
}
