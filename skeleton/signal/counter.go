package signal

import "math"

// Counter counts what a Tally holds, in a few nanoseconds a task: for a simulator,
// which sees millions of tasks a second. It belongs to one goroutine; a Recorder
// is what dispatchers share. The zero value has counted nothing.
type Counter struct {
	Starts, Busy, Failed, Lost int

	wait, service, sojourn tally
}

// tally is a histogram with all of its bins.
type tally struct {
	n                 int
	sum, squares, max float64
	lo, hi            int // bins outside are empty
	bins              dense
}

// Done counts a task whose result was accepted; times as those of Tally.
func (c *Counter) Done(wait, service, sojourn float64) {
	c.wait.add(wait)
	c.service.add(service)
	c.sojourn.add(sojourn)
}

func (t *tally) add(x float64) {
	if !(x > 0) {
		x = 0
	}
	x = min(x, math.MaxInt32)
	if t.n == 0 {
		t.lo, t.hi = Bins, -1
	}
	t.n++
	t.sum += x
	t.squares += x * x
	t.max = max(t.max, x)
	bin := binOf(x)
	t.bins[bin]++
	t.lo, t.hi = min(t.lo, bin), max(t.hi, bin)
}

// Drain makes t what was counted since the last call, in the memory that its
// histograms have.
func (c *Counter) Drain(t *Tally) {
	t.Starts, t.Busy, t.Failed, t.Lost = c.Starts, c.Busy, c.Failed, c.Lost
	c.Starts, c.Busy, c.Failed, c.Lost = 0, 0, 0, 0
	c.wait.drain(&t.Wait)
	c.service.drain(&t.Service)
	c.sojourn.drain(&t.Sojourn)
}

func (t *tally) drain(h *Hist) {
	*h = Hist{N: t.n, Sum: t.sum, Squares: t.squares, Max: t.max, Bins: h.Bins[:0]}
	if t.n == 0 {
		return
	}
	for i := t.lo; i <= t.hi; i++ {
		if n := t.bins[i]; n > 0 {
			h.Bins = append(h.Bins, Bin{uint16(i), n})
			t.bins[i] = 0
		}
	}
	t.n, t.sum, t.squares, t.max = 0, 0, 0, 0
}
