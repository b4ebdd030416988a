package tape

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"farmhand/internal/simd"
)

// The ways to multiply give the same bits, for all shapes and transpositions.
func TestBothWaysGiveTheSameBits(t *testing.T) {
	if !simd.Available {
		t.Skip("this processor has one way only")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			if x[i] = rng.NormFloat64(); rng.IntN(4) == 0 {
				x[i] = 0 // as after a relu
			}
		}
		return x
	}
	var g gemm
	for _, m := range []int{1, 3, 4, 5, 64, 71, 200} {
		for _, n := range []int{1, 5, 8, 10, 64, 130} {
			for _, k := range []int{1, 2, 64, 71, 100} {
				a, b, c := random(m*k), random(k*n), random(m*n)
				for _, ta := range []bool{false, true} {
					for _, tb := range []bool{false, true} {
						x, y := slices.Clone(c), slices.Clone(c)
						g.plain(ta, tb, m, n, k, a, b, x)
						g.tiled(ta, tb, m, n, k, a, b, y)
						if !slices.Equal(x, y) {
							t.Fatalf("%d×%d×%d, transposed %v and %v: the products differ", m, n, k, ta, tb)
						}
					}
				}
			}
		}
	}
}

func BenchmarkGemm(b *testing.B) {
	for _, way := range []string{"plain", "tiled"} {
		for _, m := range []int{1, 64} {
			for _, kind := range []struct {
				name   string
				ta, tb bool
			}{{"NN", false, false}, {"TN", true, false}, {"NT", false, true}} {
				b.Run(fmt.Sprint(way, kind.name, m), func(b *testing.B) {
					if way == "tiled" && !simd.Available {
						b.Skip("this processor has no kernel")
					}
					var g gemm
					x, y, c := make([]float64, m*64), make([]float64, 64*64), make([]float64, m*64)
					for i := range x {
						x[i] = float64(i)
					}
					for b.Loop() {
						if way == "tiled" {
							g.tiled(kind.ta, kind.tb, m, 64, 64, x, y, c)
						} else {
							g.plain(kind.ta, kind.tb, m, 64, 64, x, y, c)
						}
					}
				})
			}
		}
	}
}
