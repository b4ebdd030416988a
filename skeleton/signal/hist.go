package signal

import (
	"math"
	"slices"
)

// Bin is a bin that is not empty.
type Bin struct {
	At uint16 // 0 … Bins-1
	N  uint32
}

// Hist is a histogram of durations in seconds. Histograms can be merged: that
// of several dispatchers, or seconds, is that of all their durations. The zero
// value is empty.
type Hist struct {
	N       int
	Sum     float64
	Squares float64 // sum of the squares
	Max     float64
	Bins    []Bin // in order, none of them empty
}

// Add counts a duration. What is negative or not a number counts as 0, as clocks
// may differ.
func (h *Hist) Add(x float64) {
	if !(x > 0) {
		x = 0
	}
	x = min(x, math.MaxInt32) // 68 years: the sums stay finite
	h.N++
	h.Sum += x
	h.Squares += x * x
	h.Max = max(h.Max, x)
	h.put(Bin{uint16(binOf(x)), 1})
}

func (h *Hist) put(b Bin) {
	i, found := slices.BinarySearchFunc(h.Bins, b.At, func(c Bin, at uint16) int { return int(c.At) - int(at) })
	if found {
		h.Bins[i].N += b.N
		return
	}
	h.Bins = slices.Insert(h.Bins, i, b)
}

// Merge adds what o has counted.
func (h *Hist) Merge(o *Hist) {
	h.N += o.N
	h.Sum += o.Sum
	h.Squares += o.Squares
	h.Max = max(h.Max, o.Max)
	for _, b := range o.Bins {
		h.put(b)
	}
}

// dense are the counts of all bins: cheap to add to, to take from and to walk.
type dense [Bins]uint32

func (d *dense) add(h *Hist) {
	for _, b := range h.Bins {
		d[b.At] += b.N
	}
}

func (d *dense) sub(h *Hist) {
	for _, b := range h.Bins {
		d[b.At] -= b.N
	}
}

// quantiles returns the nearest-rank quantiles of the given shares, which
// ascend: for each, the middle of the bin in which at least that share of the n
// durations has been met.
func (d *dense) quantiles(n int, most float64, shares [3]float64) (q [3]float64) {
	if n == 0 {
		return q
	}
	bin, seen := -1, 0
	for i, share := range shares {
		rank := max(1, int(math.Ceil(share*float64(n))))
		for seen < rank && bin < Bins-1 {
			bin++
			seen += int(d[bin])
		}
		q[i] = min(middle(bin), most)
	}
	return q
}
