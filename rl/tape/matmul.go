package tape

import "fmt"

// MatMul is a·b.
func (t *Tape) MatMul(a, b Var) Var { return t.product(a, b, false, false) }

// MatMulT is a·bᵀ.
func (t *Tape) MatMulT(a, b Var) Var { return t.product(a, b, false, true) }

// TMatMul is aᵀ·b.
func (t *Tape) TMatMul(a, b Var) Var { return t.product(a, b, true, false) }

func (t *Tape) product(a, b Var, ta, tb bool) Var {
	m, k := t.Dims(a)
	if ta {
		m, k = k, m
	}
	l, n := t.Dims(b)
	if tb {
		l, n = n, l
	}
	if k != l {
		panic(fmt.Sprintf("tape: product of %d×%d and %d×%d", m, k, l, n))
	}
	back := backMatMul
	switch {
	case ta:
		back = backTMatMul
	case tb:
		back = backMatMulT
	}
	y, val := t.put(m, n, back, a, b)
	t.gemm.multiply(ta, tb, m, n, k, t.val(a), t.val(b), false, val)
	return y
}

func backMatMul(t *Tape, y, g Var) {
	a, b := t.at(y).in[0], t.at(y).in[1]
	if t.flows(a) {
		t.add(a, t.MatMulT(g, b))
	}
	if t.flows(b) {
		t.add(b, t.TMatMul(a, g))
	}
}

func backMatMulT(t *Tape, y, g Var) {
	a, b := t.at(y).in[0], t.at(y).in[1]
	if t.flows(a) {
		t.add(a, t.MatMul(g, b))
	}
	if t.flows(b) {
		t.add(b, t.TMatMul(g, a))
	}
}

func backTMatMul(t *Tape, y, g Var) {
	a, b := t.at(y).in[0], t.at(y).in[1]
	if t.flows(a) {
		t.add(a, t.MatMulT(b, g))
	}
	if t.flows(b) {
		t.add(b, t.MatMul(a, g))
	}
}

// Affine is x·w + b, where b is one row that is added to each.
func (t *Tape) Affine(x, w, b Var) Var {
	m, k := t.Dims(x)
	l, n := t.Dims(w)
	if rows, cols := t.Dims(b); k != l || rows != 1 || cols != n {
		panic(fmt.Sprintf("tape: %d×%d · %d×%d + %d×%d", m, k, l, n, rows, cols))
	}
	y, val := t.put(m, n, backAffine, x, w, b)
	row := t.val(b)
	for i := range m {
		copy(val[i*n:(i+1)*n], row)
	}
	t.gemm.multiply(false, false, m, n, k, t.val(x), t.val(w), true, val)
	return y
}

func backAffine(t *Tape, y, g Var) {
	backMatMul(t, y, g)
	if b := t.at(y).in[2]; t.flows(b) {
		_, n := t.Dims(b)
		t.add(b, t.SumTo(g, 1, n))
	}
}
