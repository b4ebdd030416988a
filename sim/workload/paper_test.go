package workload

import (
	"math"
	"slices"
	"testing"
)

// Whatever is drawn, the published benchmark has 1,140 tasks. As it was run, a
// window without tasks takes no time: phase one, of 60 windows with 1.5 tasks in
// the mean, lasts about 60 (1 − e^−1.5) = 46.6 s (44–48 s in its logs) and the
// whole run is shorter than four minutes; phases three and four are flat.
func TestPaperPhases(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, last float64 // when phase one and all are over, in the mean
		swing       float64 // of the counts in phase four with its four cycles
	}{
		{"paper-as-run", 46.6, 46.6 + 60*(1-math.Exp(-7.5)) + 2*60*(1-math.Exp(-5)), 0},
		{"paper-fixed", 60, 240, 0.7},
	} {
		s, err := Find(c.name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var first, last, swing []float64
		for seed := range uint64(300) {
			at, changes := s.Arrivals.Draw(Stream(seed, StreamArrivals), 1000, nil)
			if len(at) != 1140 || !slices.IsSorted(at) {
				t.Fatalf("%s: %d tasks", c.name, len(at))
			}
			over := changes[len(changes)-1]
			if over.Rate != 0 || at[1139] > over.At {
				t.Errorf("%s: the last change is %v, the last task at %g", c.name, over, at[1139])
			}
			i := slices.IndexFunc(changes, func(x Change) bool { return x.At > 0 })
			first, last = append(first, changes[i].At), append(last, over.At)
			// the projection on the wave: ∫ (1 + A sin) sin = A/2
			sum, from := 0.0, at[840]
			for _, x := range at[840:] {
				sum += 2 * math.Sin(2*math.Pi*4*(x-from)/(over.At-from)) / 300
			}
			swing = append(swing, sum)
		}
		// the number drawn is bound by what is left, which moves these means by less than a second
		if mean, half := interval(first); math.Abs(mean-c.first) > half+1 {
			t.Errorf("%s: phase one lasts %.1f ± %.1f s, want %.1f", c.name, mean, half, c.first)
		}
		if mean, half := interval(last); math.Abs(mean-c.last) > half+1 {
			t.Errorf("%s: all arrive within %.1f ± %.1f s, want %.1f", c.name, mean, half, c.last)
		}
		if mean, half := interval(swing); math.Abs(mean-c.swing) > half+0.02 {
			t.Errorf("%s: phase four swings by %.3f ± %.3f, want %.1f", c.name, mean, half, c.swing)
		}
	}
}

func TestPaperFixedKeepsItsPhases(t *testing.T) {
	s, err := Find("paper-fixed", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		var counts [4]int
		for _, x := range s.Draw(seed).At {
			counts[int(x/60)]++
		}
		if counts != [4]int{90, 450, 300, 300} {
			t.Errorf("phases of %v tasks", counts)
		}
	}
	mixed, err := Find("paper-fixed:shuffled", Options{})
	if err != nil {
		t.Fatal(err)
	}
	orders := map[[4]int]int{}
	for seed := range uint64(200) {
		var counts [4]int
		for _, x := range mixed.Draw(seed).At {
			counts[int(x/60)]++
		}
		orders[counts]++
	}
	if len(orders) != 12 { // of 90, 450, 300, 300
		t.Errorf("orders %v", orders)
	}
}

// A task is due after twice its own service time.
func TestPaperDeadlines(t *testing.T) {
	s, err := Find("paper-as-run", Options{})
	if err != nil {
		t.Fatal(err)
	}
	tasks := s.Draw(1)
	for i, x := range tasks.Service {
		if tasks.Deadline[i] != 2*x {
			t.Fatalf("task %d of %g s is due after %g s", i, x, tasks.Deadline[i])
		}
	}
	if up := s.Platform.Startup.Mean(); math.Abs(up-7.07) > 1e-9 {
		t.Errorf("starts take %g s", up)
	}
}
