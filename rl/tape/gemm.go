package tape

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"farmhand/internal/simd"
)

// gemm multiplies matrices, with scratch memory that it uses again. Each element
// of a product is added up in the order of its terms, rounded after each product
// and each sum, on whichever way: the ways give the same bits.
type gemm struct {
	pack []float64 // a panel of b
	rows []float64 // of a, where there are fewer than a tile's
	tile [tileRows * tileCols]float64
	ta   []float64 // a, transposed
	tb   []float64 // b, transposed
}

// The tile of a product that the kernel makes at once.
const (
	tileRows = simd.TileRows
	tileCols = simd.TileCols
)

// multiply adds the product of a (m×k) and b (k×n) to c (m×n), or sets c to it. a
// and b are stored transposed where ta and tb say so.
func (g *gemm) multiply(ta, tb bool, m, n, k int, a, b []float64, add bool, c []float64) {
	if !add {
		clear(c)
	}
	if simd.Available && m >= tileRows {
		g.tiled(ta, tb, m, n, k, a, b, c)
	} else {
		g.plain(ta, tb, m, n, k, a, b, c)
	}
}

// plain adds the product by gonum. It is cut into blocks for which gonum starts
// no goroutines: on busy cores they cost more than they save, and they allocate.
func (g *gemm) plain(ta, tb bool, m, n, k int, a, b, c []float64) {
	if ta {
		g.ta = transpose(g.ta, a, k, m)
		a = g.ta
	}
	if tb {
		g.tb = transpose(g.tb, b, n, k)
		b = g.tb
	}
	const rows, cols = 64, 128
	for i := 0; i < m; i += rows {
		for j := 0; j < n; j += cols {
			gonum.Implementation{}.Dgemm(blas.NoTrans, blas.NoTrans, min(rows, m-i), min(cols, n-j), k,
				1, a[i*k:], k, b[j:], n, 1, c[i*n+j:], n)
		}
	}
}

// transpose returns the transpose of a (rows×cols) in the memory of to, which may
// be too short.
func transpose(to, a []float64, rows, cols int) []float64 {
	to = resized(to, rows*cols)
	for i := range rows {
		for j, v := range a[i*cols : (i+1)*cols] {
			to[j*rows+i] = v
		}
	}
	return to
}

// tiled adds the product tile by tile. The columns of b that a tile needs are
// packed next to one another first.
func (g *gemm) tiled(ta, tb bool, m, n, k int, a, b, c []float64) {
	rowStep, colStep := k, 1 // of a
	if ta {
		rowStep, colStep = 1, m
	}
	g.pack = resized(g.pack, k*tileCols)
	for j := 0; j < n; j += tileCols {
		cols := min(tileCols, n-j)
		g.panel(tb, n, k, b, j, cols)
		for i := 0; i < m; i += tileRows {
			if rows := min(tileRows, m-i); rows < tileRows || cols < tileCols {
				g.edge(rows, cols, k, a[i*rowStep:], rowStep, colStep, c[i*n+j:], n)
			} else {
				simd.AddTile(k, &a[i*rowStep], rowStep, colStep, &g.pack[0], &c[i*n+j], n)
			}
		}
	}
}

// panel packs cols columns of b from column j on; what is missing to a tile's
// columns stays 0.
func (g *gemm) panel(tb bool, n, k int, b []float64, j, cols int) {
	if cols < tileCols {
		clear(g.pack)
	}
	if tb {
		for x := range cols {
			for l, v := range b[(j+x)*k : (j+x+1)*k] {
				g.pack[l*tileCols+x] = v
			}
		}
		return
	}
	for l := range k {
		copy(g.pack[l*tileCols:(l+1)*tileCols], b[l*n+j:l*n+j+cols])
	}
}

// edge adds a tile of fewer rows or columns than the kernel's, in memory of its
// own, where rows that are missing are 0.
func (g *gemm) edge(rows, cols, k int, a []float64, rowStep, colStep int, c []float64, n int) {
	g.rows = resized(g.rows, tileRows*k)
	for i := range rows {
		for l := range k {
			g.rows[i*k+l] = a[i*rowStep+l*colStep]
		}
		copy(g.tile[i*tileCols:], c[i*n:i*n+cols])
	}
	simd.AddTile(k, &g.rows[0], k, 1, &g.pack[0], &g.tile[0], tileCols)
	for i := range rows {
		copy(c[i*n:i*n+cols], g.tile[i*tileCols:])
	}
}
