// Package tape differentiates programs of matrices, any number of times.
//
// A Tape writes down each operation as it is done (define by run). Grad walks
// back over what was written and writes the gradient down as operations too, so
// that a gradient can be differentiated again: the gradient of a gradient's norm
// is one more call.
//
//	t := tape.New()
//	x, w := t.Input(64, 16, batch), t.Input(16, 4, weights)
//	loss := t.Mean(t.Square(t.MatMul(x, w)))
//	dw := t.Grad(loss, w)[0]
//	norm := t.Sum(t.Square(dw))
//	ddw := t.Grad(norm, w)[0]
//	t.Reset() // for the next batch
//
// All values are matrices of float64, row by row. A vector is a matrix of one row
// or column, a number one of both. Where shapes do not fit an operation panics,
// since that is a mistake in the program.
//
// A tape is single-threaded and has no state but its own: the same program gives
// the same bits. After a few Resets it has all the memory it needs, and nothing
// allocates any more.
package tape

import "fmt"

// Var is a value on a tape. It holds until the tape's next Reset.
type Var struct{ i int32 }

// node is one operation that was done.
type node struct {
	rows, cols int
	val        []float64
	in         [3]Var
	vjp        vjp // nil: nothing flows back
	k, l       float64
	index      []int
	mask       []bool
}

// vjp adds to the gradients of y's operands what the gradient g of y gives them
// (a vector-Jacobian product), in operations of the tape.
type vjp func(t *Tape, y, g Var)

// Tape holds the operations that were done since the last Reset.
type Tape struct {
	nodes []node // nodes[0] stands for none
	arena arena
	grads []Var  // of nodes, during Grad
	wants []bool // nodes that depend on what Grad differentiates by
	gemm  gemm
}

// New returns an empty tape.
func New() *Tape { return &Tape{nodes: make([]node, 1)} }

// Reset forgets all operations and uses their memory again.
func (t *Tape) Reset() {
	t.nodes = t.nodes[:1]
	t.arena.reset()
}

// Input puts a matrix on the tape without copying it: data must not change before
// Reset.
func (t *Tape) Input(rows, cols int, data []float64) Var {
	if rows < 1 || cols < 1 || len(data) != rows*cols {
		panic(fmt.Sprintf("tape: %d numbers for a matrix of %d×%d", len(data), rows, cols))
	}
	t.nodes = append(t.nodes, node{rows: rows, cols: cols, val: data})
	return Var{int32(len(t.nodes) - 1)}
}

// Zeros puts a matrix of zeros on the tape, whose Value may be written to before
// it is used.
func (t *Tape) Zeros(rows, cols int) Var {
	v := t.Input(rows, cols, t.arena.take(rows*cols))
	clear(t.val(v))
	return v
}

// Number puts a number on the tape.
func (t *Tape) Number(x float64) Var {
	v := t.Zeros(1, 1)
	t.val(v)[0] = x
	return v
}

// Value returns the numbers of a value, row by row; they hold until Reset.
func (t *Tape) Value(v Var) []float64 { return t.val(v) }

// Scalar returns the number that a 1×1 value is.
func (t *Tape) Scalar(v Var) float64 {
	n := t.at(v)
	if n.rows != 1 || n.cols != 1 {
		panic(fmt.Sprintf("tape: a matrix of %d×%d is no number", n.rows, n.cols))
	}
	return n.val[0]
}

// Dims returns a value's rows and columns.
func (t *Tape) Dims(v Var) (rows, cols int) {
	n := t.at(v)
	return n.rows, n.cols
}

// Grad returns the gradients of the sum of y's elements by each of xs, each of
// the shape of its x.
func (t *Tape) Grad(y Var, xs ...Var) []Var { return t.AppendGrad(nil, y, xs) }

// AppendGrad appends what Grad returns to dst.
func (t *Tape) AppendGrad(dst []Var, y Var, xs []Var) []Var {
	n := int(y.i) + 1
	t.wants = resized(t.wants, n)
	t.grads = resized(t.grads, n)
	for _, x := range xs {
		if x.i <= y.i {
			t.wants[x.i] = true
		}
	}
	for i := 1; i < n; i++ {
		for _, in := range t.nodes[i].in {
			t.wants[i] = t.wants[i] || t.wants[in.i]
		}
	}
	rows, cols := t.Dims(y)
	t.grads[y.i] = t.full(rows, cols, 1)
	for i := n - 1; i > 0; i-- {
		if t.wants[i] && t.grads[i] != (Var{}) && t.nodes[i].vjp != nil {
			t.nodes[i].vjp(t, Var{int32(i)}, t.grads[i])
		}
	}
	for _, x := range xs {
		if x.i <= y.i && t.grads[x.i] != (Var{}) {
			dst = append(dst, t.grads[x.i])
		} else {
			dst = append(dst, t.Zeros(t.Dims(x)))
		}
	}
	return dst
}

// flows reports whether the gradient of an operand is wanted; vjps ask before
// they compute it.
func (t *Tape) flows(x Var) bool { return t.wants[x.i] }

// add adds to the gradient of an operand.
func (t *Tape) add(x, g Var) {
	if t.grads[x.i] == (Var{}) {
		t.grads[x.i] = g
	} else {
		t.grads[x.i] = t.Add(t.grads[x.i], g)
	}
}

// put writes an operation down and returns the memory of its value, which holds
// anything.
func (t *Tape) put(rows, cols int, back vjp, in ...Var) (Var, []float64) {
	n := node{rows: rows, cols: cols, val: t.arena.take(rows * cols), vjp: back}
	copy(n.in[:], in)
	t.nodes = append(t.nodes, n)
	return Var{int32(len(t.nodes) - 1)}, n.val
}

func (t *Tape) full(rows, cols int, x float64) Var {
	v := t.Input(rows, cols, t.arena.take(rows*cols))
	val := t.val(v)
	for i := range val {
		val[i] = x
	}
	return v
}

func (t *Tape) at(v Var) *node {
	if v.i <= 0 || int(v.i) >= len(t.nodes) {
		panic("tape: a value that is not on this tape, or was before Reset")
	}
	return &t.nodes[v.i]
}

func (t *Tape) val(v Var) []float64 { return t.at(v).val }

// resized returns s with n zero elements.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, 2*n)
	}
	s = s[:n]
	clear(s)
	return s
}

// arena hands out memory that is given back all at once.
type arena struct {
	chunks [][]float64
	chunk  int // being used
	used   int // of it
}

const chunkLen = 1 << 15

// take returns n numbers that hold anything.
func (a *arena) take(n int) []float64 {
	for a.chunk < len(a.chunks) && a.used+n > len(a.chunks[a.chunk]) {
		a.chunk++
		a.used = 0
	}
	if a.chunk == len(a.chunks) {
		a.chunks = append(a.chunks, make([]float64, max(n, chunkLen)))
	}
	a.used += n
	return a.chunks[a.chunk][a.used-n : a.used : a.used]
}

func (a *arena) reset() { a.chunk, a.used = 0, 0 }
