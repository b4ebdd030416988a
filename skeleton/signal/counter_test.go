package signal

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// A looked-up bin is the logarithm's.
func TestBinsAreThoseOfTheMapping(t *testing.T) {
	slow := func(x float64) int {
		if x < shortest {
			return 0
		}
		return scale.Index(min(x, longest)) - base
	}
	check := func(t interface{ Errorf(string, ...any) }, x float64) {
		if got, want := binOf(x), slow(x); got != want {
			t.Errorf("bin of %g: %d, want %d", x, got, want)
		}
	}
	for bin := range Bins + 1 {
		x := scale.LowerBound(bin + base)
		for range 8 {
			x = math.Nextafter(x, 0)
		}
		for range 16 {
			check(t, x)
			x = math.Nextafter(x, math.Inf(1))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, math.Exp(rapid.Float64Range(math.Log(shortest/10), math.Log(longest*10)).Draw(t, "log")))
	})
}

// A Counter drains to the tally that counting one by one makes.
func TestCounterIsATally(t *testing.T) {
	var c Counter
	var got Tally // its memory is used again
	rapid.Check(t, func(t *rapid.T) {
		want := Tally{Starts: rapid.IntRange(0, 9).Draw(t, "starts"), Failed: 1}
		c.Starts, c.Failed = want.Starts, want.Failed
		for _, x := range rapid.SliceOfN(rapid.Float64(), 0, 50).Draw(t, "durations") {
			c.Done(x, x/2, 2*x)
			want.Wait.Add(x)
			want.Service.Add(x / 2)
			want.Sojourn.Add(2 * x)
		}
		c.Drain(&got)
		for i, h := range got.hists() {
			if w := want.hists()[i]; h.N != w.N || h.Sum != w.Sum || h.Squares != w.Squares || h.Max != w.Max || len(h.Bins)+len(w.Bins) > 0 && !reflect.DeepEqual(h.Bins, w.Bins) {
				t.Errorf("%+v, want %+v", *h, *w)
			}
		}
		if got.Starts != want.Starts || got.Failed != 1 || c.Starts+c.Failed != 0 {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
