//go:build !amd64 || noasm

package tape

const hasKernel = false

func kernel(k int, a *float64, rowStep, colStep int, b, c *float64, n int) {
	panic("tape: there is no kernel for this processor")
}
