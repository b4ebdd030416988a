package tape

import "fmt"

// Scan is the linear recurrence of state-space models, fused over time:
//
//	h[s] = a[s]∘h[s−1] + u[s],  h[−1] = 0
//
// a and u are sequences of steps blocks of rows, one block after the other: with
// a batch of b, row s·b+i is step s of sequence i.
func (t *Tape) Scan(a, u Var, steps int) Var { return t.scan(a, u, steps, false) }

// scan goes from the first step to the last, or back from the last to the first:
// h[s] = a[s]∘h[s+1] + u[s].
func (t *Tape) scan(a, u Var, steps int, back bool) Var {
	m, n := t.Dims(u)
	if k, l := t.Dims(a); k != m || l != n || steps < 1 || m%steps != 0 {
		panic(fmt.Sprintf("tape: scan over %d steps of %d×%d and %d×%d", steps, k, l, m, n))
	}
	vjp := backScan
	if back {
		vjp = backScanBack
	}
	y, h := t.put(m, n, vjp, a, u)
	t.at(y).k = float64(steps)
	factor, block := t.val(a), m/steps*n
	copy(h, t.val(u))
	for i := 1; i < steps; i++ {
		s, from := i*block, (i-1)*block
		if back {
			s, from = (steps-1-i)*block, (steps-i)*block
		}
		for j := range block {
			h[s+j] += factor[s+j] * h[from+j]
		}
	}
	return y
}

// What flows back through a scan is a scan in the other direction:
// r[s] = g[s] + a[s+1]∘r[s+1] is the gradient of u, and r[s]∘h[s−1] that of a.
func backScan(t *Tape, y, g Var)     { t.scanVJP(y, g, 1) }
func backScanBack(t *Tape, y, g Var) { t.scanVJP(y, g, -1) }

func (t *Tape) scanVJP(y, g Var, direction int) {
	a, u, steps := t.at(y).in[0], t.at(y).in[1], int(t.at(y).k)
	r := t.scan(t.Shift(a, steps, -direction), g, steps, direction > 0)
	if t.flows(u) {
		t.add(u, r)
	}
	if t.flows(a) {
		t.add(a, t.Mul(r, t.Shift(y, steps, direction)))
	}
}

// Shift moves a sequence of steps blocks (as Scan's) by a number of steps, later
// where by is positive: y[s] = x[s−by], and 0 where there is none.
func (t *Tape) Shift(x Var, steps, by int) Var {
	m, n := t.Dims(x)
	if steps < 1 || m%steps != 0 {
		panic(fmt.Sprintf("tape: shift of %d rows in %d steps", m, steps))
	}
	y, from, to := t.like(x, backShift, x)
	node := t.at(y)
	node.k, node.l = float64(steps), float64(by)
	clear(to)
	block := m / steps * n
	for s := max(0, by); s < min(steps, steps+by); s++ {
		copy(to[s*block:(s+1)*block], from[(s-by)*block:(s-by+1)*block])
	}
	return y
}

func backShift(t *Tape, y, g Var) {
	n := t.at(y)
	t.add(t.operand(y), t.Shift(g, int(n.k), -int(n.l)))
}
