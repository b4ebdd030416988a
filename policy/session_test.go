package policy

import (
	"strings"
	"testing"
	"time"
)

// look is one decision of a session: when it is made, of what, and what it should be.
// Reason is a part of the reason that is wanted.
type look struct {
	at       float64 // seconds
	replicas int     // there, all ready
	change   func(*Observation)
	want     int
	reason   string
}

// session shows a law a farm from time to time.
func session(t *testing.T, name, spec string, looks []look) {
	t.Helper()
	p, m := make1(t, spec), Memory{}
	for _, l := range looks {
		o := farm(steady(20), replicas(l.replicas), l.change)
		o.At = o.At.Add(time.Duration(l.at * float64(time.Second)))
		if d := p.Decide(o, m); d.Replicas != l.want || d.Hold || !strings.Contains(d.Reason, l.reason) {
			t.Errorf("%s, %g s: %+v, want %d for %q", name, l.at, d, l.want, l.reason)
		}
	}
}

// there puts tasks into the farm.
func there(waiting, running float64) func(*Observation) {
	return func(o *Observation) { o.Waiting, o.Running = Maybe(waiting), Maybe(running) }
}

// at work makes slots busy in the mean over the short window.
func atWork(slots float64) func(*Observation) {
	return func(o *Observation) { o.Short.Service = Stats{N: slots * o.Short.Covered / 0.04, Mean: 0.04} }
}

// all makes several changes.
func all(change ...func(*Observation)) func(*Observation) {
	return func(o *Observation) {
		for _, f := range change {
			f(o)
		}
	}
}

func TestDue(t *testing.T) {
	m := Memory{}
	var got []float64
	for at := 0.0; at < 62; at += 2 {
		if due(m, "k", at, 15) {
			got = append(got, at)
		}
	}
	// The beat is 0, 15, 30, 45, 60.
	if want := []float64{0, 16, 30, 46, 60}; len(got) != len(want) || got[1] != 16 || got[2] != 30 || got[3] != 46 || got[4] != 60 {
		t.Errorf("%v, want %v", got, want)
	}
	for _, c := range []struct {
		at   float64
		want bool
	}{{200, true}, {214, false}, {215, true}, {100, true}, {114, false}} {
		if got := due(m, "k", c.at, 15); got != c.want {
			t.Errorf("at %g: %v", c.at, got)
		}
	}
}

func TestWorking(t *testing.T) {
	for name, c := range map[string]struct {
		o    *Observation
		want float64
	}{
		"100/s of 40 ms":           {farm(steady(100)), 4},
		"nothing measured":         {farm(there(3, 2)), 2},
		"services beyond a window": {farm(steady(100), there(0, 7), func(o *Observation) { o.Short.Service = Stats{N: 1, Mean: 600} }), 7},
	} {
		near(t, name, working(c.o), c.want, 1e-12)
	}
}
