package controller

import (
	"cmp"
	"slices"
)

// Allocator fits what farms want into what there is.
type Allocator interface {
	// Allot returns a count for each demand, at most what it wants. It is pure.
	Allot(demands []Demand) []int
}

// Demand is what one farm wants.
type Demand struct {
	Farm string
	Want int
	Min  int // it gets this much first, where there is so much
}

// Capacity is an Allocator over a number of replicas; 0 is unlimited. Where the
// wants do not fit, each farm gets its minimum first, and of what remains the
// same share of what it wants above that. Replicas left over by rounding go to
// the largest remainders, by name where these are equal.
type Capacity int

// Allot implements Allocator.
func (c Capacity) Allot(demands []Demand) []int {
	out := make([]int, len(demands))
	total, mins := 0, 0
	for i, d := range demands {
		out[i] = max(0, d.Want)
		total += out[i]
		mins += min(out[i], max(0, d.Min))
	}
	if c <= 0 || total <= int(c) {
		return out
	}
	base, want, room := make([]int, len(demands)), make([]int, len(demands)), int(c)
	for i, d := range demands {
		want[i] = min(out[i], max(0, d.Min)) // shares of the minima, where not even these fit
	}
	if mins <= room {
		room -= mins
		for i, least := range want {
			base[i], want[i] = least, out[i]-least
		}
	}
	sum := 0
	for _, w := range want {
		sum += w
	}
	order := make([]int, len(demands))
	for i := range demands {
		order[i] = i
		out[i] = base[i] + want[i]*room/sum
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(want[b]*room%sum, want[a]*room%sum), cmp.Compare(demands[a].Farm, demands[b].Farm))
	})
	left := int(c)
	for _, n := range out {
		left -= n
	}
	for _, i := range order {
		if left > 0 && want[i] > 0 && out[i] < base[i]+want[i] {
			out[i]++
			left--
		}
	}
	return out
}
