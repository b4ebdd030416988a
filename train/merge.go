package train

import (
	"bytes"
	"context"
	"slices"

	"farmhand/policy/learned"
)

// Trust of a merged policy in the rule, in the logarithm of odds: what is added to the output
// of the action that does what the rule wishes.
const (
	mostTrust  = 5.0
	trustStep  = 0.5
	roughTrust = 1.0 // where policies are compared
)

// Tell is told what a policy, or a mean of policies, comes to with some trust in the rule.
type Tell func(f *learned.File, trust float64, p Point)

// Merge makes one policy of several that learned with a configuration and other seeds: the
// mean of what the better half of them would do (learned.Mean). It, and before that each of
// them, has as much trust in the rule as Compare puts first on the training work: where
// little is to be won it does as the rule does, and a bold policy is judged by what it saves
// once it is in time. Merge returns the policy file and what it comes to there; tell, which
// may be nil, is told of each policy with its trust, and of the mean with any.
func Merge(ctx context.Context, cfg Config, tell Tell, files ...[]byte) ([]byte, Point, error) {
	if tell == nil {
		tell = func(*learned.File, float64, Point) {}
	}
	t, err := New(cfg)
	if err != nil {
		return nil, Point{}, err
	}
	var all []*learned.File
	for _, b := range files {
		f, err := learned.Parse(b)
		if err != nil {
			return nil, Point{}, err
		}
		all = append(all, f)
	}
	if cfg.Peer != "" {
		if err := t.measure(ctx); err != nil {
			return nil, Point{}, err
		}
	}
	half, err := t.betterHalf(ctx, tell, all)
	if err != nil {
		return nil, Point{}, err
	}
	mean, err := learned.Mean(half...)
	if err != nil {
		return nil, Point{}, err
	}
	best, _, err := t.trusting(ctx, mean, trustStep, tell)
	if err != nil {
		return nil, Point{}, err
	}
	file, err := t.describe(best, cfg.Final)
	return file, best.Point, err
}

// betterHalf of some policies, or one more, in the order that they have.
func (t *Trainer) betterHalf(ctx context.Context, tell Tell, all []*learned.File) ([]*learned.File, error) {
	var points []*Point
	for _, f := range all {
		best, trust, err := t.trusting(ctx, f, roughTrust, nil)
		if err != nil {
			return nil, err
		}
		points = append(points, &best.Point)
		tell(f, trust, best.Point)
	}
	order := slices.Clone(points)
	slices.SortStableFunc(order, func(a, b *Point) int { return Compare(a, b, t.cfg.Actions) })
	order = order[:(len(order)+1)/2]
	var half []*learned.File
	for i, f := range all {
		if slices.Contains(order, points[i]) {
			half = append(half, f)
		}
	}
	return half, nil
}

// trusting is a policy with the trust that Compare puts first, of equals the least.
func (t *Trainer) trusting(ctx context.Context, f *learned.File, step float64, tell Tell) (best candidate, with float64, err error) {
	defer func() { f.Trust = 0 }()
	for trust := mostTrust; trust >= 0; trust -= step {
		f.Trust = trust
		var b bytes.Buffer
		if err := f.Write(&b); err != nil {
			return best, 0, err
		}
		file, err := biased(b.Bytes(), bias{learned.Rule, trust})
		if err != nil {
			return best, 0, err
		}
		p, err := t.try(ctx, file, t.cfg.Final)
		if err != nil {
			return best, 0, err
		}
		if tell != nil {
			tell(f, trust, p)
		}
		p.Steps = f.Steps
		if best.file == nil || Compare(&p, &best.Point, t.cfg.Actions) <= 0 {
			best, with = candidate{p, file}, trust
		}
	}
	return best, with, nil
}
