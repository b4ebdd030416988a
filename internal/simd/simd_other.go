//go:build !amd64 || noasm

package simd

// Available says that there is no AddTile.
const Available = false

// AddTile must not be called.
func AddTile(k int, a *float64, rowStep, colStep int, b, c *float64, n int) {
	panic("simd: there is no kernel for this processor")
}

func addSpan(k int, x, w *float64, n int, y *float64) {
	panic("simd: there is no kernel for this processor")
}
