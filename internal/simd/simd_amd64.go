//go:build !noasm

package simd

import "golang.org/x/sys/cpu"

// Available reports whether the processor can run AddTile and has vectors for AddRow.
var Available = cpu.X86.HasAVX

// AddTile adds a product to a tile of c: TileRows rows that are n apart, of TileCols
// columns. a has TileRows rows, rowStep apart, and k > 0 columns, colStep apart; b is a
// packed panel of k rows of TileCols.
//
//go:noescape
func AddTile(k int, a *float64, rowStep, colStep int, b, c *float64, n int)

// addSpan adds x (of k > 0 numbers) times a span of a matrix's columns to a span of y; the
// rows of w are n apart.
//
//go:noescape
func addSpan(k int, x, w *float64, n int, y *float64)
