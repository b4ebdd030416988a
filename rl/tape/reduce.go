package tape

import "fmt"

// SumTo adds up rows, columns or both: each of rows and cols is that of x, or 1.
func (t *Tape) SumTo(x Var, rows, cols int) Var {
	m, n := t.Dims(x)
	if rows == m && cols == n {
		return x
	}
	if rows != m && rows != 1 || cols != n && cols != 1 {
		panic(fmt.Sprintf("tape: sum of %d×%d to %d×%d", m, n, rows, cols))
	}
	y, to := t.put(rows, cols, backSumTo, x)
	from := t.val(x)
	clear(to)
	for i := range m {
		row := from[i*n : (i+1)*n]
		out := to
		if rows > 1 {
			out = to[i*cols : (i+1)*cols]
		}
		if cols == 1 {
			sum := 0.0
			for _, v := range row {
				sum += v
			}
			out[0] += sum
			continue
		}
		for j, v := range row {
			out[j] += v
		}
	}
	return y
}

func backSumTo(t *Tape, y, g Var) {
	x := t.operand(y)
	m, n := t.Dims(x)
	t.add(x, t.Broadcast(g, m, n))
}

// Broadcast repeats the row or column, or the number, that x is.
func (t *Tape) Broadcast(x Var, rows, cols int) Var {
	m, n := t.Dims(x)
	if rows == m && cols == n {
		return x
	}
	if m != rows && m != 1 || n != cols && n != 1 {
		panic(fmt.Sprintf("tape: %d×%d cannot be repeated to %d×%d", m, n, rows, cols))
	}
	y, to := t.put(rows, cols, backBroadcast, x)
	from := t.val(x)
	for i := range rows {
		row := from
		if m > 1 {
			row = from[i*n : (i+1)*n]
		}
		out := to[i*cols : (i+1)*cols]
		if n == cols {
			copy(out, row)
			continue
		}
		for j := range out {
			out[j] = row[0]
		}
	}
	return y
}

func backBroadcast(t *Tape, y, g Var) {
	x := t.operand(y)
	m, n := t.Dims(x)
	t.add(x, t.SumTo(g, m, n))
}

// Sum is the sum of all elements.
func (t *Tape) Sum(x Var) Var { return t.SumTo(x, 1, 1) }

// Mean is the mean of all elements.
func (t *Tape) Mean(x Var) Var {
	m, n := t.Dims(x)
	return t.Scale(1/float64(m*n), t.Sum(x))
}

// RowMean is the mean of each row, a column.
func (t *Tape) RowMean(x Var) Var {
	m, n := t.Dims(x)
	return t.Scale(1/float64(n), t.SumTo(x, m, 1))
}
