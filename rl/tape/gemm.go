package tape

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// gemm adds the product of a (m×k) and b (k×n) to c (m×n), or sets c to it. a and
// b are stored transposed where ta and tb say so.
//
// It is cut into blocks for which gonum starts no goroutines: on busy cores they
// cost more than they save, and they allocate.
func gemm(ta, tb bool, m, n, k int, a, b []float64, add bool, c []float64) {
	const rows, cols = 64, 128
	lda, opA := k, blas.NoTrans
	if ta {
		lda, opA = m, blas.Trans
	}
	ldb, opB := n, blas.NoTrans
	if tb {
		ldb, opB = k, blas.Trans
	}
	beta := 0.0
	if add {
		beta = 1
	}
	for i := 0; i < m; i += rows {
		ai := i * lda
		if ta {
			ai = i
		}
		for j := 0; j < n; j += cols {
			bj := j
			if tb {
				bj = j * ldb
			}
			gonum.Implementation{}.Dgemm(opA, opB, min(rows, m-i), min(cols, n-j), k,
				1, a[ai:], lda, b[bj:], ldb, beta, c[i*n+j:], n)
		}
	}
}
