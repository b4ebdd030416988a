package signal_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"farmhand/policy"
	"farmhand/skeleton"
	"farmhand/skeleton/signal"
)

// farm is a farm whose seconds are made by hand.
type farm struct {
	t     testing.TB
	s     *signal.Series
	now   time.Time
	count signal.Snapshot // as of now
	gone  []signal.Second // since the last reading
	o     policy.Observation
}

func newFarm(t testing.TB, interval time.Duration) *farm {
	f := &farm{t: t, s: signal.NewSeries(signal.State{}), now: epoch.Add(900 * time.Millisecond)}
	settings := skeleton.DefaultSettings()
	settings.Interval, settings.Deadline = interval, 500*time.Millisecond
	f.o = signal.NewObservation(skeleton.Farm{Name: "f", Settings: settings}, epoch)
	f.beat(signal.Tally{})
	return f
}

// beat lets a dispatcher bring what it has counted.
func (f *farm) beat(t signal.Tally) {
	f.count.At = f.now
	f.gone = append(f.gone, signal.Second{Unix: f.now.Unix(), Snapshot: f.count, Tally: t})
}

// silence lets time pass without a heartbeat.
func (f *farm) silence(d time.Duration) { f.now = f.now.Add(d) }

// second lets a second pass in which so many tasks arrive and are done, each
// after a service of s seconds.
func (f *farm) second(n int, s float64) {
	f.now = f.now.Add(time.Second)
	f.count.Submitted += n
	f.count.Done += n
	f.count.Timed += n
	f.beat(tally(n, s))
}

func (f *farm) seconds(k, n int, s float64) {
	for range k {
		f.second(n, s)
	}
}

func tally(n int, s float64) signal.Tally {
	t := signal.Tally{Starts: n}
	for range n {
		t.Service.Add(s)
		t.Wait.Add(s / 2)
		t.Sojourn.Add(1.5 * s)
	}
	return t
}

// observe reads and observes now. Whatever happened, the numbers are sound.
func (f *farm) observe() *policy.Observation {
	f.t.Helper()
	f.s.Add(&signal.Reading{Now: f.now, Seconds: f.gone})
	f.gone = f.gone[:0]
	f.o.At = f.now
	f.s.Observe(&f.o)
	sound(f.t, &f.o)
	return &f.o
}

type failer interface {
	Helper()
	Errorf(string, ...any)
}

// sound checks that an observation holds no nonsense.
func sound(t failer, o *policy.Observation) {
	t.Helper()
	if _, err := json.Marshal(o); err != nil {
		t.Errorf("not finite: %v", err)
	}
	for _, w := range []policy.Window{o.Last, o.Short, o.Long} {
		for _, x := range []float64{w.Arrivals, w.Starts, w.Done, w.Decided, w.Late, w.Failed, w.Lost, w.Busy, w.Covered} {
			if !(x >= 0) {
				t.Errorf("negative: %+v", w)
			}
		}
		if w.Covered > w.Length || w.Late > w.Decided {
			t.Errorf("contradicts itself: %+v", w)
		}
		for _, d := range []policy.Stats{w.Wait, w.Service, w.Sojourn} {
			if d.P50 > d.P95 || d.P95 > d.P99 || d.P99 > d.Max || d.N > 0 && d.Mean > d.Max*(1+1e-9) || d.SD < 0 {
				t.Errorf("contradicts itself: %+v", d)
			}
		}
	}
	for _, l := range append([]policy.Level{o.Level}, o.Past...) {
		if l.Rate < 0 || l.Age < 0 || l.Load < 0 || l.Sojourn < 0 {
			t.Errorf("level %+v", l)
		}
	}
	if len(o.Past) > policy.Levels {
		t.Errorf("%d levels", len(o.Past))
	}
}

func about(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: %g, want %g ± %g", what, got, want, within)
	}
}

func exactly(t *testing.T, what string, got, want float64) {
	t.Helper()
	about(t, what, got, want, 1e-6)
}

func unknown(t *testing.T, what string, m policy.Maybe) {
	t.Helper()
	if m.Known() {
		t.Errorf("%s: %g, want unknown", what, float64(m))
	}
}

// farmOf is the farm that f observes.
func farmOf(f *farm) skeleton.Farm {
	settings := skeleton.DefaultSettings()
	settings.Interval = time.Duration(f.o.Interval * float64(time.Second))
	settings.Deadline = 500 * time.Millisecond
	return skeleton.Farm{Name: "f", Settings: settings}
}
