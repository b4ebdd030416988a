//go:build !noasm

package tape

import "golang.org/x/sys/cpu"

// hasKernel reports whether the processor can run kernel.
var hasKernel = cpu.X86.HasAVX

// kernel adds a product to a tile of c: 4 rows that are n apart, of 8 columns. a
// has 4 rows, rowStep apart, and k columns, colStep apart; b is a packed panel of
// k rows of 8.
//
//go:noescape
func kernel(k int, a *float64, rowStep, colStep int, b, c *float64, n int)
