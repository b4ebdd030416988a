package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func numbers(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		if x[i] = rng.NormFloat64(); rng.IntN(4) == 0 {
			x[i] = 0 // as after a relu
		}
	}
	return x
}

// A row gets the bits of plain sums in the order of the terms, and nothing beside it
// changes.
func TestAddRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{0, 1, 3, 4, 74} {
		for _, n := range []int{0, 1, 10, 31, 32, 33, 64, 100} {
			x, w, y := numbers(rng, k), numbers(rng, k*n), numbers(rng, n+1)
			want := slices.Clone(y)
			for i, v := range x {
				for j := range n {
					want[j] += float64(v * w[i*n+j])
				}
			}
			plained := slices.Clone(y)
			plain(plained[:n], x, w, 0)
			AddRow(y[:n], x, w)
			if !slices.Equal(y, want) || !slices.Equal(plained, want) {
				t.Errorf("%d×%d: AddRow makes %v and plain %v: want %v", k, n, y, plained, want)
			}
		}
	}
}

func BenchmarkAddRow(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{64, 10} {
		b.Run(fmt.Sprintf("64x%d", n), func(b *testing.B) {
			x, w, y := numbers(rng, 64), numbers(rng, 64*n), numbers(rng, n)
			for b.Loop() {
				AddRow(y, x, w)
			}
		})
	}
}
