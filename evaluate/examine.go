package evaluate

import (
	"context"
	"slices"

	"farmhand/sim/workload"
)

// Examiner finds out how good the laws are on a scenario, with their defaults and
// well tuned, and what is left to win.
type Examiner struct {
	Settings
	Budget      Budget
	Seeds       []uint64 // for judging
	Laws        []string // that compete
	OracleSeeds int      // of Seeds, that the plan oracle serves
	Effort      int      // of the plan oracle
}

// Examination is what was found on a scenario.
type Examination struct {
	Scenario     *workload.Scenario
	Load         float64 // offered, in replicas that work all the time, on the first seed
	Calibrations []*Calibration
	Entries      []Entry // the laws with their defaults, calibrated, and the bounds
	Peer         Entry   // whom a claim has to beat; see PeerOf
	Front        Front   // of the peer's law, and of fixed counts
	Unguarded    bool    // the runs are too short for the guard
}

// shortest is the horizon below which runs are not guarded, in seconds: the guard
// scales nothing down in the first two minutes of a farm's life, which would be much
// of what is judged.
const shortest = 600

// noPeer are laws that know more than a scaler could ask for: timer is a table over
// the age of the load's level, made by hand for work like this, and stands beside a
// learned policy to show where its gain comes from.
var noPeer = []string{"timer", "regime-oracle", "oracle"}

// PeerOf is the calibration that a claim is compared with: of static and all laws but
// noPeer, the one with the fewest worker-seconds at the target on the training seeds;
// where none is on target, the least late. Nil of none.
func PeerOf(list []*Calibration) (peer *Calibration) {
	better := func(a, b *Calibration) bool {
		if a.Best.OnTarget != b.Best.OnTarget {
			return a.Best.OnTarget
		}
		if !a.Best.OnTarget && a.Best.OnTime[0] != b.Best.OnTime[0] {
			return a.Best.OnTime[0] > b.Best.OnTime[0]
		}
		return a.Best.Cost < b.Best.Cost
	}
	for _, c := range list {
		if !slices.Contains(noPeer, c.Family) && (peer == nil || better(c, peer)) {
			peer = c
		}
	}
	return peer
}

// Examine a scenario. Contenders given beside the laws are judged with them.
func (x *Examiner) Examine(ctx context.Context, s *workload.Scenario, also ...Contender) (*Examination, error) {
	e := &Examination{Scenario: s, Unguarded: x.Guard == nil || s.Horizon < shortest}
	if e.Unguarded {
		unguarded := *x
		unguarded.Guard = nil
		x = &unguarded
	}
	tasks := s.Draw(x.Seeds[0])
	e.Load = offered(tasks) / tasks.Horizon / float64(max(1, s.Farm.Slots))
	calibrator := Calibrator{Settings: x.Settings, Budget: x.Budget}
	var list []Contender
	families := map[string]Family{"regime-oracle": Regime()}
	for _, law := range append(slices.Clone(x.Laws), "regime-oracle") {
		if families[law].Make == nil {
			family, err := LawFamily(law)
			if err != nil {
				return nil, err
			}
			families[law] = family
			if !family.Counted { // which has no default worth the name
				c, err := Law(law, Default)
				if err != nil {
					return nil, err
				}
				list = append(list, c)
			}
		}
		family := families[law]
		if len(family.Free) == 0 {
			continue
		}
		found, err := calibrator.Calibrate(ctx, family, []*workload.Scenario{s})
		if err != nil {
			return nil, err
		}
		e.Calibrations = append(e.Calibrations, found)
		best, err := found.Contender(family, found.Best)
		if err != nil {
			return nil, err
		}
		list = append(list, best)
	}
	list = append(list, also...)
	return e, x.judge(ctx, e, list, families)
}

// judge runs the contenders, the front of the peer and the plan oracle.
func (x *Examiner) judge(ctx context.Context, e *Examination, list []Contender, families map[string]Family) error {
	study := Study{Settings: x.Settings, Seeds: x.Seeds}
	peer, own := PeerOf(e.Calibrations), len(list)
	if peer != nil {
		calibrator := Calibrator{Settings: x.Settings, Budget: x.Budget}
		front, err := calibrator.Front(ctx, families[peer.Family], e.Scenario, peer)
		if err != nil {
			return err
		}
		list = append(list, front...)
	}
	entries, err := study.Run(ctx, []Case{{e.Scenario, list}})
	if err != nil {
		return err
	}
	e.Entries, e.Front = entries[:own:own], entries[own:]
	for _, entry := range e.Entries {
		if peer != nil && entry.Contender.Spec == peer.Best.Specification && entry.Contender.Origin == Calibrated {
			e.Peer = entry
		}
	}
	if x.OracleSeeds > 0 && HasDues(e.Scenario) {
		study.Seeds = x.Seeds[:min(x.OracleSeeds, len(x.Seeds))]
		oracle, err := study.Run(ctx, []Case{{e.Scenario, []Contender{Plan(ctx, x.Effort)}}})
		if err != nil {
			return err
		}
		e.Entries = append(e.Entries, oracle...)
	}
	return nil
}
