package policy

import "slices"

// stale is why every law but the fixed one holds where Observation.Stale.
const stale = "the signals are missing or too old"

// stairs is how many past wishes peak remembers where its trail is no longer.
const stairs = 8

// wishes names a trail of past wishes.
func wishes(name string) trail { return trailOf(name, "wish", stairs) }

// peak is the largest wish of the last span seconds, this one included: a law that
// wishes for it goes up at once and down only when a whole span agreed. It is the
// way autoscalers of Kubernetes stabilise.
//
// Memory need not keep every wish. One that a later wish reached can never be the
// largest again, so those that count form a stair that falls from the oldest to the
// newest. Where it has more steps than the trail has room for, the two nearest in
// height become one, the higher at the later time: a count is then held longer than
// span, never shorter.
func (t trail) peak(m Memory, now, span, wish float64) float64 {
	var room [roomiest + 1]mark
	all := t.load(m, room[:0])
	kept := all[:0]
	for _, s := range all {
		if s.value > wish && s.value <= most && s.at <= now && s.at >= now-span {
			kept = append(kept, s)
		}
	}
	kept = append(kept, mark{now, wish})
	if len(kept) > len(t) {
		low := 0
		for i := range kept[:len(t)] {
			if kept[i].value-kept[i+1].value < kept[low].value-kept[low+1].value {
				low = i
			}
		}
		kept[low+1].value = kept[low].value
		kept = slices.Delete(kept, low, low+1)
	}
	t.save(m, kept)
	return kept[0].value
}
