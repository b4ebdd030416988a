package policy

import (
	"slices"
	"strconv"
)

// stale is why every law but the fixed one holds where Observation.Stale.
const stale = "the signals are missing or too old"

// stairs is how many past wishes peak remembers.
const stairs = 8

// stair is a wish and when it was made. Memory keeps them as wish0, at0 and on,
// after the name of what is held.
type stair struct{ at, wish float64 }

// keys are the names of stairs in Memory.
type keys [stairs][2]string

func keysOf(name string) (k keys) {
	for i := range k {
		k[i] = [2]string{name + "at" + strconv.Itoa(i), name + "wish" + strconv.Itoa(i)}
	}
	return k
}

// peak is the largest wish of the last span seconds, this one included: a law that
// wishes for it goes up at once and down only when a whole span agreed. It is the
// way autoscalers of Kubernetes stabilise.
//
// Memory need not keep every wish. One that a later wish reached can never be the
// largest again, so those that count form a stair that falls from the oldest to the
// newest. Where it has more than stairs steps the two nearest in height become one,
// the higher at the later time: a count is then held longer than span, never
// shorter.
func (k *keys) peak(m Memory, now, span, wish float64) float64 {
	kept := make([]stair, 0, stairs+1)
	for _, key := range k {
		s := stair{m[key[0]], m[key[1]]}
		if s.wish > wish && s.wish <= most && s.at <= now && s.at >= now-span {
			kept = append(kept, s)
		}
		delete(m, key[0])
		delete(m, key[1])
	}
	kept = append(kept, stair{now, wish})
	if len(kept) > stairs {
		low := 0
		for i := range kept[:stairs] {
			if kept[i].wish-kept[i+1].wish < kept[low].wish-kept[low+1].wish {
				low = i
			}
		}
		kept[low+1].wish = kept[low].wish
		kept = slices.Delete(kept, low, low+1)
	}
	for i, s := range kept {
		m[k[i][0]], m[k[i][1]] = s.at, s.wish
	}
	return kept[0].wish
}
