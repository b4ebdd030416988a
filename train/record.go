package train

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"

	"farmhand/env"
	"farmhand/policy/learned"
)

const (
	// explored is the share of random actions in every other episode of the record.
	explored = 0.1
	// rare is the share of decisions at each end that the record leaves out. At a
	// thousandth, policies were handed back in one of twenty hours of their own scenario:
	// a level of the load that is seen for a moment only makes the age of the next a
	// multiple of it, for half a minute in twenty hours.
	rare = 1e-4
)

// ranges finds out where the features of a policy lie while it scales farms for
// Config.Record seconds: in every other episode as well as it can, else with some random
// actions, as in training, so that it is known in the troubles it learned to mend.
func (t *Trainer) ranges(f *learned.File) error {
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		return err
	}
	p, err := learned.Load(b.Bytes())
	if err != nil {
		return err
	}
	farm, err := t.farms[0].Alone()
	if err != nil {
		return err
	}
	box := t.envs.Spec().Observation
	seen := make([]histogram, box.Len())
	for i := range int(math.Ceil(t.cfg.Record / t.cfg.Episode)) {
		seed := env.EpisodeSeed(t.cfg.Seed, -1, uint64(i))
		rng := rand.New(rand.NewPCG(seed, 0))
		obs, info := farm.Reset(seed, nil)
		for over := false; !over; {
			for j, x := range obs {
				seen[j].add(x, box.Low[j], box.High[j])
			}
			action := p.Act(obs, info.Mask)
			if a := rng.IntN(len(info.Mask)); i%2 == 1 && info.Mask[a] && rng.Float64() < explored {
				action = a
			}
			obs, _, _, over, info = farm.Step(action)
		}
	}
	f.Low, f.High = slices.Clone(box.Low), slices.Clone(box.High)
	for j, name := range box.Names {
		if !slices.Contains(t.cfg.Hide, name) { // whatever that is, it is not strange
			f.Low[j], f.High[j] = seen[j].within(rare, box.Low[j], box.High[j])
		}
	}
	return nil
}

// histogram counts numbers between two bounds, in bins of equal width.
type histogram [1024]int

func (h *histogram) add(x, low, high float64) {
	i := 0
	if high > low {
		i = int(float64(len(h)) * (x - low) / (high - low))
	}
	h[min(max(i, 0), len(h)-1)]++
}

// within are the outer edges of the bins that hold all but a share at each end.
func (h *histogram) within(share, low, high float64) (from, to float64) {
	n := 0
	for _, c := range h {
		n += c
	}
	least := max(1, int(share*float64(n)))
	first, last := 0, len(h)-1
	for c := h[first]; c < least && first < last; c += h[first] {
		first++
	}
	for c := h[last]; c < least && last > first; c += h[last] {
		last--
	}
	width := (high - low) / float64(len(h))
	return low + float64(first)*width, low + float64(last+1)*width
}
