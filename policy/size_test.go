package policy

import (
	"math/rand/v2"
	"testing"
)

// What sizes of an observation share with the decision changes neither.
func TestSharedSizing(t *testing.T) {
	rule := make1(t, "staffing:band=0.2")
	r := rand.New(rand.NewPCG(1, 2))
	sized := 0
	for range 500 {
		o, m, n := wildObservation(r), Memory{}, Memory{}
		d, shared := rule.(Sizer).DecideAndSize(o, m)
		if want := rule.Decide(o, n); d != want {
			t.Fatalf("the decision is %+v: want %+v", d, want)
		}
		for _, load := range []float64{0, 0.8, 8.4, 90} {
			alone := Sizing{rule: rule.(staff), observed: o}
			want, is := alone.Size(load)
			if got, known := shared.Size(load); got != want || known != is {
				t.Fatalf("load %g: %d, %v: want %d, %v", load, got, known, want, is)
			}
			if is {
				sized++
			}
		}
	}
	if sized == 0 {
		t.Error("no observation could be sized")
	}
}
