package policy

import (
	"strings"
	"testing"
)

// The published farm: an interval of 8 s, tasks of 1.5 s, arrivals and sojourns as
// given.
func published(workers int, arrivals, mean, longest float64) *Observation {
	return farm(replicas(workers), func(o *Observation) {
		o.Interval, o.Deadline, o.Service = 8, 3, 1.5
		o.Last = Window{Length: 8, Covered: 8, Arrivals: arrivals}
		if mean > 0 {
			o.Last.Sojourn = Stats{N: arrivals, Mean: mean, Max: longest}
		}
		o.Short, o.Long = Window{Length: 24}, Window{Length: 160}
	})
}

func TestReactive(t *testing.T) {
	with := func(o *Observation, waiting, running Maybe) *Observation {
		o.Waiting, o.Running = waiting, running
		return o
	}
	for _, c := range []struct {
		name string
		spec string
		o    *Observation
		want int
	}{
		// S 3, H 8: need 30/8·3 + 7.5·3 = 33.75; busy 11/8·3/2 = 2.06; d = 33.75 − 9.94.
		{"overload", "reactive-average", with(published(12, 60, 3, 9), 30, 12), 13},
		// need 1.5·1.5 = 2.25; busy 1/8·1.5/2 = 0.09; d = 2.25 − 11.9.
		{"calm", "reactive-average", with(published(12, 12, 1.5, 2.5), 0, 2), 11},
		// need 2·1.5 = 3; busy 2/8·1.5/2 = 0.19; d = 3 − 2.81 = 0.19.
		{"in balance", "reactive-average", with(published(3, 16, 1.5, 1.5), 0, 3), 3},
		// The same with a safety of 1.2: d = 3.6 − 2.81 = 0.79.
		{"safety", "reactive-average:safety=1.2", with(published(3, 16, 1.5, 1.5), 0, 3), 4},
		// S 4: need 1.5·4 = 6; busy 1/8·4 = 0.5; d = 6 − 5.5 = 0.5, just enough.
		{"the longest", "reactive-maximum", with(published(6, 12, 1.5, 4), 0, 2), 7},
		// The mean, 1.5, at the same: need 2.25.
		{"the mean", "reactive-average", with(published(6, 12, 1.5, 4), 0, 2), 5},
		// S 20 beyond the horizon, so H 20: need 20/20·20 + 1·20 = 40.
		{"long sojourns", "reactive-average", with(published(39, 8, 20, 20), 20, 0), 40},
		// None collected: S is the service time; need max(1, 0).
		{"nothing to do", "reactive-average", with(published(1, 0, 0, 0), 0, 0), 1},
		{"nothing to do, two replicas", "reactive-maximum", with(published(2, 0, 0, 0), 0, 0), 1},
		// Interval 2 s: the window is the short one. S 0.1 at least, λ 20: need 2;
		// active 1, busy 0/8 = 0; d = 2 − 2.
		{"a fast farm", "reactive-average", with(farm(steady(20)), 0, 1), 2},
		// Horizon 2 s: the last interval, which brought 200/s: need 20.
		{"a short horizon", "reactive-average:horizon=2", with(farm(steady(20), rise(200)), 0, 1), 3},
		// Two slots: need 40/s·0.1/2 = 2 replicas.
		{"two slots", "reactive-average", with(farm(steady(40), func(o *Observation) { o.Slots = 2 }), 0, 2), 2},
	} {
		d := make1(t, c.spec).Decide(c.o, Memory{})
		if d.Replicas != c.want || d.Hold {
			t.Errorf("%s: %+v, want %d", c.name, d, c.want)
		}
	}
}

func TestReactiveReason(t *testing.T) {
	o := published(12, 60, 3, 9)
	o.Waiting, o.Running = 30, 12
	d := make1(t, "reactive-average").Decide(o, Memory{})
	if want := "need 33.8 and have 9.94 free, for 30 waiting and 7.5/s at 3 s each: up by 1"; d.Reason != want {
		t.Errorf("%s", d.Reason)
	}
	o.Last.Covered = 0
	if d := make1(t, "reactive-average").Decide(o, Memory{}); !d.Hold || !strings.Contains(d.Reason, "nothing is known") {
		t.Errorf("%+v", d)
	}
}
