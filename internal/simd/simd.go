// Package simd has the inner loops of matrix products, with AVX where the processor
// has it (the build tag noasm leaves it out). Each number is added up in the order of its
// terms, rounded after each product and each sum, on whichever way: the ways give the
// same bits.
package simd

// The tile of a product that AddTile makes at once.
const (
	TileRows = 4
	TileCols = 8
)

// span is how many columns addSpan makes at once.
const span = 32

// AddRow adds x·w to y, where w has len(x) rows of len(y) numbers.
func AddRow(y, x, w []float64) {
	n, j := len(y), 0
	if len(x) == 0 {
		return
	}
	w = w[:len(x)*n]
	if Available {
		for ; j+span <= n; j += span {
			addSpan(len(x), &x[0], &w[j], n, &y[j])
		}
	}
	plain(y, x, w, j)
}

// plain is AddRow for the columns from j on, four rows at once.
func plain(y, x, w []float64, j int) {
	n := len(y)
	if y = y[j:]; len(y) == 0 {
		return
	}
	row := func(i int) []float64 { return w[i*n+j:][:len(y)] }
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b, c, d := x[i], x[i+1], x[i+2], x[i+3]
		wa, wb, wc, wd := row(i), row(i+1), row(i+2), row(i+3)
		for l := range y {
			y[l] = y[l] + a*wa[l] + b*wb[l] + c*wc[l] + d*wd[l]
		}
	}
	for ; i < len(x); i++ {
		for l, v := range row(i) {
			y[l] += x[i] * v
		}
	}
}
