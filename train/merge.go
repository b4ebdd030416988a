package train

import (
	"bytes"
	"context"

	"farmhand/policy/learned"
)

// Merge makes one policy of several that learned with a configuration and other seeds: the
// mean of what they would do (learned.Mean), with some trust in the rule: what is added to
// the output of the action that does what the rule wishes, so that where little is to be won
// it does as the rule does. Of trust from 0 to mostTrust it takes what Compare puts first on
// the training work. Merge returns the policy file and what it comes to there; tell, which
// may be nil, is told what each trust comes to.
func Merge(ctx context.Context, cfg Config, tell func(trust float64, p Point), files ...[]byte) ([]byte, Point, error) {
	t, err := New(cfg)
	if err != nil {
		return nil, Point{}, err
	}
	if cfg.Peer != "" {
		if err := t.measure(ctx); err != nil {
			return nil, Point{}, err
		}
	}
	var members []*learned.File
	for _, b := range files {
		f, err := learned.Parse(b)
		if err != nil {
			return nil, Point{}, err
		}
		members = append(members, f)
	}
	mean, err := learned.Mean(members...)
	if err != nil {
		return nil, Point{}, err
	}
	var best candidate
	for trust := mostTrust; trust >= 0; trust -= trustStep {
		mean.Trust = trust
		var b bytes.Buffer
		if err := mean.Write(&b); err != nil {
			return nil, Point{}, err
		}
		file, err := biased(b.Bytes(), bias{learned.Rule, trust})
		if err != nil {
			return nil, Point{}, err
		}
		p, err := t.try(ctx, file, cfg.Final)
		if err != nil {
			return nil, Point{}, err
		}
		if tell != nil {
			tell(trust, p)
		}
		p.Steps = mean.Steps
		if best.file == nil || Compare(&p, &best.Point, cfg.Actions) <= 0 {
			best = candidate{p, file}
		}
	}
	file, err := t.describe(best, cfg.Final)
	return file, best.Point, err
}

// Trust of a merged policy, in the logarithm of odds.
const (
	mostTrust = 5.0
	trustStep = 0.5
)
