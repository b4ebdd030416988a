package policy

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestRate(t *testing.T) {
	count := func(last, short, long float64) func(*Observation) {
		return func(o *Observation) { o.Last.Arrivals, o.Short.Arrivals, o.Long.Arrivals = last, short, long }
	}
	patient := func(o *Observation) { o.Deadline = 0 }
	for _, c := range []struct {
		name string
		o    *Observation
		want Maybe
	}{
		{"steady", farm(steady(20)), 20},
		{"a common excess, 50 for 40: (50 − 14.1)/2 < 20", farm(steady(20), count(50, 210, 2410)), 20},
		{"a jump, 400 for 40: (400 − 2·20)/2", farm(steady(20), count(400, 560, 2760)), 180},
		{"a declared jump: the level is two seconds old", farm(steady(20), rise(200)), 200},
		{"a declared fall: the short window reaches back", farm(steady(200), rise(20)), 20},
		{"12 s after a fall: the short window holds the interval of both", farm(steady(20), count(40, 400, 2400), func(o *Observation) { o.Level.Age = 12 }), 20},
		{"noise: 940 for 1000 is within 2·√1000", farm(steady(100), count(200, 940, 12000)), 100},
		{"a drift: 700 for 1000 is not", farm(steady(100), count(140, 700, 11000)), 70},
		{"no level yet", farm(steady(20), func(o *Observation) { o.Level = Level{} }), 20},
		{"the long window alone", farm(func(o *Observation) { o.Long.Covered, o.Long.Arrivals = 100, 300 }), 3},
		{"the last interval alone", farm(func(o *Observation) { o.Last.Covered, o.Last.Arrivals = 2, 8 }), 4},
		{"quiet, whatever the level says", farm(steady(20), count(0, 0, 0)), 0},
		{"nothing known", farm(), Unknown},
		{"patient, steady", farm(steady(20), patient), 20},
		{"patient, a job that waits is no stream", farm(steady(0), patient, count(1000, 1000, 1000), queue(1000)), 0},
		{"patient, 600 of it taken in 120 s", farm(steady(0), patient, count(100, 200, 1000), func(o *Observation) { o.Long.Starts = 600 }), 5},
		{"patient, taken and over", farm(steady(5), patient, count(0, 0, 1000)), 0},
		{"patient, tried again and again", farm(steady(20), patient, func(o *Observation) { o.Long.Starts = 9000 }), 20},
		{"patient, a stream with more waiting than arrived in 120 s", farm(steady(20), patient, queue(5000)), 20},
		{"a deadline of a short window and a lead time is patience", farm(steady(0), count(1000, 1000, 1000), func(o *Observation) { o.Deadline = 12.75 }), 0},
		{"a shorter one is none: (1000 − 2·√1000)/2", farm(steady(0), count(1000, 1000, 1000), func(o *Observation) { o.Deadline = 12.7 }), Maybe(500 - math.Sqrt(1000))},
	} {
		got := rate(c.o)
		if got.Known() != c.want.Known() || got.Known() && got != c.want {
			t.Errorf("%s: rate %g, want %g", c.name, got, c.want)
		}
	}
}

// peak against a memory that keeps everything.
func TestPeak(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, kinds := range []int{stairs, 1000} {
		m, past := Memory{}, []mark{}
		for i := range 2000 {
			now, wish := float64(2*i), float64(r.IntN(kinds))
			past = append(past, mark{now, wish})
			want, most := 0.0, 0.0
			for _, s := range past {
				most = max(most, s.value)
				if s.at >= now-60 {
					want = max(want, s.value)
				}
			}
			got := steadyWishes.peak(m, now, 60, wish)
			if got < want || got > most || kinds == stairs && got != want {
				t.Fatalf("peak %g, want %g", got, want)
			}
		}
	}
}

func TestPeakEdges(t *testing.T) {
	m := Memory{}
	near(t, "first", steadyWishes.peak(m, 100, 60, 9), 9, 0)
	near(t, "lower", steadyWishes.peak(m, 130, 60, 4), 9, 0)
	near(t, "at the end of the span", steadyWishes.peak(m, 160, 60, 2), 9, 0)
	near(t, "after it", steadyWishes.peak(m, 161, 60, 2), 4, 0)
	near(t, "higher at once", steadyWishes.peak(m, 162, 60, 30), 30, 0)
	near(t, "one wish left", float64(len(m)), 2, 0)
	near(t, "the clock went back", steadyWishes.peak(m, 50, 60, 1), 1, 0)
	near(t, "no span", steadyWishes.peak(Memory{"at0": 49, "wish0": 7}, 50, 0, 1), 1, 0)
}
