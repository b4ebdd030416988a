package signal

import (
	"math"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
)

// Accuracy is the relative error of a quantile at most, between 10 µs and a day.
// What is shorter counts as 0; what is longer, as a day. Count, sum, sum of
// squares and maximum are exact.
const Accuracy = 0.02

const (
	shortest = 1e-5
	longest  = 1e5
)

// Bins is how many bins a histogram has at most: bin 0 is for what is shorter
// than 10 µs, the others grow by 4 % each.
const Bins = 577

var (
	scale, _ = mapping.NewLogarithmicMapping(Accuracy) // only an accuracy outside (0, 1) is an error
	base     = scale.Index(shortest) - 1
)

// middle returns the duration that stands for a bin.
func middle(bin int) float64 {
	if bin == 0 {
		return 0
	}
	return scale.Value(bin + base)
}

// The bin of a duration is looked up, since a logarithm takes ten times as long.
// The leading bits of a number, its exponent and the first fraction bits, name a
// cell at most 3 % wide, narrower than a bin: so it holds one border at most, and
// is in the bin on the one or on the other side of it.
const (
	cellShift = 52 - 5
	firstCell = 0x3ee4f8b588e368f1 >> cellShift // of shortest
	cells     = 0x40f86a0000000000>>cellShift - firstCell + 1
)

// cell says in which bin its durations are: those below the border, and one more
// from there on.
type cell struct {
	border float64
	bin    uint16
}

var cellTable = newCells()

func newCells() *[cells]cell {
	var t [cells]cell
	for i := range t {
		lo := math.Float64frombits(uint64(i+firstCell) << cellShift)
		hi := math.Nextafter(math.Float64frombits(uint64(i+firstCell+1)<<cellShift), 0)
		lo = max(lo, shortest)
		bin := scale.Index(lo) - base
		t[i] = cell{math.Inf(1), uint16(bin)}
		if scale.Index(hi)-base > bin {
			t[i].border = border(lo, hi, bin)
		}
	}
	return &t
}

// border is the first number between lo and hi that is beyond a bin.
func border(lo, hi float64, bin int) float64 {
	a, b := math.Float64bits(lo), math.Float64bits(hi) // positive numbers are in the order of their bits
	for a+1 < b {
		if m := a + (b-a)/2; scale.Index(math.Float64frombits(m))-base > bin {
			b = m
		} else {
			a = m
		}
	}
	return math.Float64frombits(b)
}

// binOf returns the bin of a duration.
func binOf(x float64) int {
	if x < shortest {
		return 0
	}
	x = min(x, longest)
	c := &cellTable[math.Float64bits(x)>>cellShift-firstCell]
	if x >= c.border {
		return int(c.bin) + 1
	}
	return int(c.bin)
}
