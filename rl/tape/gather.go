package tape

import "fmt"

// Pick takes one element of each row: y[i] = x[i, index[i]], a column. index must
// not change before Reset.
func (t *Tape) Pick(x Var, index []int) Var {
	m, n := t.Dims(x)
	checkIndex(index, m, n)
	y, to := t.put(m, 1, backPick, x)
	from := t.val(x)
	for i, j := range index {
		to[i] = from[i*n+j]
	}
	t.at(y).index = index
	return y
}

func backPick(t *Tape, y, g Var) {
	x := t.operand(y)
	_, n := t.Dims(x)
	t.add(x, t.place(g, t.at(y).index, n))
}

// place is the reverse of Pick: a matrix of zeros but for x[i] at i, index[i].
func (t *Tape) place(x Var, index []int, cols int) Var {
	m, _ := t.Dims(x)
	y, to := t.put(m, cols, backPlace, x)
	clear(to)
	for i, v := range t.val(x) {
		to[i*cols+index[i]] = v
	}
	t.at(y).index = index
	return y
}

func backPlace(t *Tape, y, g Var) { t.add(t.operand(y), t.Pick(g, t.at(y).index)) }

// Gather takes rows: row i of y is row index[i] of x. A row may be taken more
// than once. index must not change before Reset.
func (t *Tape) Gather(x Var, index []int) Var {
	m, n := t.Dims(x)
	checkIndex(index, len(index), m)
	y, to := t.put(len(index), n, backGather, x)
	from := t.val(x)
	for i, j := range index {
		copy(to[i*n:(i+1)*n], from[j*n:(j+1)*n])
	}
	t.at(y).index = index
	return y
}

func backGather(t *Tape, y, g Var) {
	x := t.operand(y)
	m, _ := t.Dims(x)
	t.add(x, t.scatter(g, t.at(y).index, m))
}

// scatter is the reverse of Gather: row i of x is added to row index[i].
func (t *Tape) scatter(x Var, index []int, rows int) Var {
	_, n := t.Dims(x)
	y, to := t.put(rows, n, backScatter, x)
	clear(to)
	from := t.val(x)
	for i, j := range index {
		out := to[j*n : (j+1)*n]
		for k, v := range from[i*n : (i+1)*n] {
			out[k] += v
		}
	}
	t.at(y).index = index
	return y
}

func backScatter(t *Tape, y, g Var) { t.add(t.operand(y), t.Gather(g, t.at(y).index)) }

func checkIndex(index []int, n, below int) {
	if len(index) != n {
		panic(fmt.Sprintf("tape: %d indexes: want %d", len(index), n))
	}
	for _, j := range index {
		if j < 0 || j >= below {
			panic(fmt.Sprintf("tape: index %d of %d", j, below))
		}
	}
}

// Where is x where the mask is set, and a constant elsewhere, from which nothing
// flows back. The mask, row by row, must not change before Reset.
func (t *Tape) Where(mask []bool, x Var, otherwise float64) Var {
	y, from, to := t.like(x, backWhere, x)
	if len(mask) != len(from) {
		panic(fmt.Sprintf("tape: a mask of %d for %d numbers", len(mask), len(from)))
	}
	for i, v := range from {
		if !mask[i] {
			v = otherwise
		}
		to[i] = v
	}
	t.at(y).mask = mask
	return y
}

func backWhere(t *Tape, y, g Var) { t.add(t.operand(y), t.Where(t.at(y).mask, g, 0)) }
