package evaluate

import (
	"math/rand/v2"
	"testing"
)

// By hand: A is late 2 % at 100, B 6 % at 60; at 3 % a quarter of B makes 90.
func TestFrontByHand(t *testing.T) {
	front := Front{
		entry("b", []float64{0.06, 0.06}, []float64{60, 60}),
		entry("a", []float64{0.02, 0.02}, []float64{100, 100}),
		entry("worse", []float64{0.03, 0.03}, []float64{120, 120}), // than a in both
	}
	x := entry("x", []float64{0.03, 0.03}, []float64{80, 84})
	d := front.Compare(&x)
	near(t, "difference", d.Mean, 82-90, 1e-9)
	near(t, "cost of the family", front.Cost(&x), 90, 1e-9)
	near(t, "interval", d.Hi-d.Mean, 12.7062047*2, 1e-5) // of 80−90 and 84−90: s/√2 = 2

	// One seed is later and pays less: along the front that is no difference.
	along := entry("along", []float64{0.02, 0.04}, []float64{100, 80})
	if d := front.Compare(&along); !(d.Mean == 0 || d.Mean.Known() && d.Hi-d.Lo < 1e-9) {
		t.Errorf("along the front: %+v", d)
	}
	for name, late := range map[string]float64{"less late than all": 0.01, "later than all": 0.07} {
		x := entry(name, []float64{late, late}, []float64{1, 1})
		if d := front.Compare(&x); d.Mean.Known() {
			t.Errorf("%s: %+v", name, d)
		}
	}
	same := front[1]
	if d := front.Compare(&same); d.Mean != 0 || d.Lo != 0 {
		t.Errorf("a member against its family: %+v", d)
	}
	few := entry("few", []float64{0.03}, []float64{80})
	if d := front.Compare(&few); d.Mean != -10 || d.Lo.Known() {
		t.Errorf("on one of the seeds: %+v", d)
	}
	more := entry("more", []float64{0.03, 0.03, 0.03}, []float64{80, 80, 80})
	if d := front.Compare(&more); d.Mean.Known() {
		t.Error("compared on a seed that the family has not served")
	}
}

// The interval holds the truth as often as it says, though the share of the mixture
// is itself estimated.
func TestFrontCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const draws, seeds = 2000, 10
	held := 0
	for range draws {
		var late, cost [3][]float64
		for range seeds {
			luck := 0.004 * r.NormFloat64() // work that is harder for all
			for i, m := range []struct{ late, cost float64 }{{0.03, 80}, {0.02, 100}, {0.06, 60}} {
				own := 0.001 * r.NormFloat64()
				late[i] = append(late[i], m.late+luck+own)
				cost[i] = append(cost[i], m.cost+500*luck+r.NormFloat64())
			}
		}
		x := entry("x", late[0], cost[0])
		front := Front{entry("a", late[1], cost[1]), entry("b", late[2], cost[2])}
		if d := front.Compare(&x); d.Lo <= -10 && -10 <= d.Hi {
			held++
		}
	}
	if share := float64(held) / draws; share < 0.92 || share > 0.975 {
		t.Errorf("held in %.3f of the draws", share)
	}
}

func TestAgainst(t *testing.T) {
	a, b := entry("a", []float64{0.1, 0.1}, []float64{10, 20}), entry("b", []float64{0.1, 0.1}, []float64{8, 18})
	d := a.Against(&b, WorkerSeconds)
	near(t, "difference", d.Mean, 2, 0)
	near(t, "bounds", d.Hi-d.Lo, 0, 0)
}
