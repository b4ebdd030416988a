package main

import (
	"context"
	"slices"
	"strings"

	"farmhand/evaluate"
	"farmhand/evaluate/report"
	"farmhand/policy"
	"farmhand/sim/workload"
)

// rival is whom eval compares with on a scenario: the peer that --peer names.
type rival struct {
	scenario string
	law      string
	members  []evaluate.Contender // of its front
	front    evaluate.Front       // once they were run
}

// rival finds the peer, which must have been calibrated.
func (f *field) rival(ctx context.Context, s *workload.Scenario, name string) (*rival, error) {
	names := []string{name}
	if name == "best" {
		names = peers()
	} else if !slices.Contains(peers(), name) {
		return nil, usage("--peer %q: want best, or one of %s", name, strings.Join(peers(), ", "))
	}
	peer, family, err := f.calibrated(ctx, s, names)
	if err != nil {
		return nil, err
	}
	if peer == nil {
		return nil, usage("--peer %s: it is not calibrated for %s: want farmhand calibrate first, with the same guard", name, s.Name)
	}
	members, err := f.calibrator.Front(ctx, family, s, peer)
	if err != nil {
		return nil, err
	}
	return &rival{scenario: s.Name, law: peer.Family, members: members}, nil
}

// calibrated is the best of the laws that were calibrated for a scenario, and its family;
// nil where none was. timer and the oracles are compared with nobody: they are found only
// when they are asked for alone.
func (f *field) calibrated(ctx context.Context, s *workload.Scenario, names []string) (*evaluate.Calibration, evaluate.Family, error) {
	families := map[string]evaluate.Family{}
	var list []*evaluate.Calibration
	for _, name := range names {
		family, err := familyOf(name)
		if err != nil {
			return nil, family, err
		}
		families[name] = family
		known, err := f.calibrator.Known(ctx, family, []*workload.Scenario{s}, evaluate.FullBudget(), evaluate.QuickBudget())
		if err != nil {
			return nil, family, err
		}
		if known != nil {
			list = append(list, known)
		}
	}
	best := evaluate.PeerOf(list)
	if len(names) == 1 && len(list) == 1 {
		best = list[0]
	}
	if best == nil {
		return nil, evaluate.Family{}, nil
	}
	return best, families[best.Family], nil
}

// run lets the members serve what the others served.
func (r *rival) run(ctx context.Context, study evaluate.Study, s *workload.Scenario) error {
	entries, err := study.Run(ctx, []evaluate.Case{{Scenario: s, Contenders: r.members}})
	r.front = entries
	return err
}

// comparison is a contender beside a peer, for programs. The share saved is at equal
// lateness.
type comparison struct {
	Policy        string       `json:"policy"`
	Specification string       `json:"specification"`
	Scenario      string       `json:"scenario"`
	Peer          string       `json:"peer"`
	Saves         policy.Maybe `json:"saves"`
	SavesLo       policy.Maybe `json:"saves_lo"`
	SavesHi       policy.Maybe `json:"saves_hi"`
}

func comparisons(list []report.Ranking) (all []comparison) {
	for _, r := range list {
		for _, p := range r.Places {
			if r.Peer != "" {
				all = append(all, comparison{p.Policy, p.Specification, p.Scenario, r.Peer, p.Saves.Mean, p.Saves.Lo, p.Saves.Hi})
			}
		}
	}
	return all
}
