package signal_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"farmhand/policy"
)

// play runs a farm for so many seconds at a rate, observing every interval, and
// calls look with each observation.
func (f *farm) play(k int, rate func(i int) int, look func(i int, o *policy.Observation)) {
	f.t.Helper()
	every := int(f.o.Interval)
	for i := range k {
		f.second(rate(i), 0.04)
		if (i+1)%every == 0 {
			o := f.observe()
			if look != nil {
				look(i, o)
			}
		}
	}
}

func steady(n int) func(int) int { return func(int) int { return n } }

func poisson(rng *rand.Rand, mean float64) int {
	n := 0
	for x := rng.ExpFloat64(); x < mean; x += rng.ExpFloat64() {
		n++
	}
	return n
}

func TestLevelFollowsSteps(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.play(60, steady(20), nil)
	exactly(t, "rate", f.o.Level.Rate, 20)
	exactly(t, "age", f.o.Level.Age, 60)
	exactly(t, "load", f.o.Level.Load, 0.8)
	exactly(t, "sojourn", f.o.Level.Sojourn, 0.06)
	f.play(2, steady(200), nil)
	exactly(t, "rate after one interval", f.o.Level.Rate, 200)
	exactly(t, "age", f.o.Level.Age, 2)
	if len(f.o.Past) != 1 {
		t.Fatalf("%d past levels", len(f.o.Past))
	}
	exactly(t, "rate of the level before", f.o.Past[0].Rate, 20)
	exactly(t, "length of the level before", f.o.Past[0].Age, 60)
	for i := range 5 {
		f.play(30, steady(20+180*(i%2)), nil)
	}
	exactly(t, "rate", f.o.Level.Rate, 20)
	exactly(t, "age", f.o.Level.Age, 30)
	if len(f.o.Past) != policy.Levels {
		t.Fatalf("%d past levels", len(f.o.Past))
	}
	exactly(t, "newest first", f.o.Past[0].Rate, 200)
	exactly(t, "then the one before", f.o.Past[1].Rate, 20)
	exactly(t, "peak load", float64(f.o.PeakLoad), 200*0.04)
}

// A change in the middle of an interval: that interval is of both levels, and
// the rate is that of the new one as soon as there is another.
func TestLevelForgetsTheMixedInterval(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.play(61, steady(20), nil)
	f.second(200, 0.04)
	exactly(t, "mixed", f.observe().Level.Rate, 110)
	f.play(2, steady(200), nil)
	exactly(t, "then", f.o.Level.Rate, 200)
	exactly(t, "age", f.o.Level.Age, 4)
	if len(f.o.Past) != 1 {
		t.Errorf("%d past levels", len(f.o.Past))
	}
}

// The rule of the contract, at its edges: with μI = 36 the count has to leave by
// more than 4√37 = 24.3 and a factor of 1.5; with μI = 900 the factor decides.
func TestRuleOfChange(t *testing.T) {
	for _, c := range []struct {
		level, next int
		changes     bool
	}{{18, 30, false}, {18, 31, true}, {18, 6, false}, {18, 5, true}, {450, 675, false}, {450, 676, true}, {450, 300, false}, {450, 299, true},
		{0, 2, false}, {0, 3, true}} {
		f := newFarm(t, 2*time.Second)
		f.play(60, steady(c.level), nil)
		f.play(2, steady(c.next), nil)
		if got := len(f.o.Past) == 1; got != c.changes {
			t.Errorf("from %d to %d a second: changed %v", c.level, c.next, got)
		}
	}
}

// For two intervals after a change the level is only estimated.
func TestLevelSettles(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.play(60, steady(20), nil)
	f.play(2, steady(200), nil)
	f.play(4, steady(20), nil)
	if len(f.o.Past) != 1 {
		t.Errorf("%d past levels while it settles", len(f.o.Past))
	}
	exactly(t, "rate", f.o.Level.Rate, 20)
	f.play(2, steady(200), nil)
	if len(f.o.Past) != 2 {
		t.Errorf("%d past levels when it has settled", len(f.o.Past))
	}
}

func TestNoiseIsNoChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, mean := range []float64{0.5, 5, 100} {
		f := newFarm(t, 2*time.Second)
		f.play(3600, func(int) int { return poisson(rng, mean) }, nil)
		if len(f.o.Past) > 1 {
			t.Errorf("mean %g: %d changes in an hour of noise", mean, len(f.o.Past))
		}
		about(t, "rate", f.o.Level.Rate, mean, mean/5)
	}
}

// A ramp is followed in steps: the level is never off by more than the factor of
// the rule and what an interval brings.
func TestLevelFollowsRamps(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	rate := func(i int) int { return 20 + int(180*(1-math.Abs(float64(i%1800)/900-1))) }
	changes, old := 0, policy.Level{}
	f.play(3600, rate, func(i int, o *policy.Observation) {
		if o.Level.Age < old.Age {
			changes++
		}
		old = o.Level
		r := float64(rate(i))
		if off := math.Abs(r - o.Level.Rate); off > 2*math.Sqrt(2*o.Level.Rate+1)+1 && (o.Level.Rate > 1.6*r || r > 1.6*o.Level.Rate) {
			t.Errorf("second %d: level %g at a rate of %g", i, o.Level.Rate, r)
		}
	})
	if changes < 4 || changes > 40 {
		t.Errorf("%d changes", changes)
	}
}

// A change is looked for once per interval, however often it is observed, and
// never because of a silence.
func TestLevelLooksOncePerInterval(t *testing.T) {
	f := newFarm(t, 4*time.Second)
	f.play(60, steady(50), nil)
	for range 3 {
		f.second(200, 0.04)
		if o := f.observe(); len(o.Past) != 0 {
			t.Fatal("changed within the interval")
		}
	}
	f.second(200, 0.04)
	if o := f.observe(); len(o.Past) != 1 {
		t.Fatal("not changed after the interval")
	}
	f.play(40, steady(200), nil)
	for range 30 {
		f.silence(4 * time.Second)
		f.observe()
	}
	if len(f.o.Past) != 1 {
		t.Errorf("silence is a change: %+v", f.o.Past)
	}
	exactly(t, "rate", f.o.Level.Rate, 200)
	f.play(20, steady(200), nil)
	if len(f.o.Past) != 1 {
		t.Errorf("the end of silence is a change: %+v", f.o.Past)
	}
}

// The peak is that of 15 minutes and of the short window.
func TestPeakLoad(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.play(100, steady(50), nil)
	f.play(10, steady(150), nil)
	f.play(20, steady(50), nil)
	exactly(t, "peak", float64(f.o.PeakLoad), 150*0.04)
	f.play(890, steady(50), nil)
	if float64(f.o.PeakLoad) > 150*0.04-0.1 {
		t.Errorf("%g: the peak is forgotten too late", float64(f.o.PeakLoad))
	}
	f.play(20, steady(50), nil)
	exactly(t, "peak, later", float64(f.o.PeakLoad), 50*0.04)
}
