package signal_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"farmhand/policy"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/signal"
)

// Observations are equal up to the order of sums; unknown equals unknown.
var (
	nearly = cmpopts.EquateApprox(1e-9, 1e-9)
	maybes = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() == reflect.TypeFor[policy.Maybe]() },
		cmp.Comparer(func(a, b policy.Maybe) bool {
			return a.Known() == b.Known() && math.Abs(a.Or(0)-b.Or(0)) <= 1e-9*max(1, math.Abs(a.Or(0)))
		}))
)

// history draws what happens to a farm in a few minutes, with everything that
// can go wrong: silence, late and double flushes, clocks that are set, counters
// that go back, counters that jump.
func history(t *rapid.T, f *farm, clockIsGood bool) (all []signal.Second) {
	for range rapid.IntRange(1, 150).Draw(t, "seconds") {
		step := time.Second
		switch event := rapid.IntRange(0, 30).Draw(t, "event"); {
		case event == 0:
			step = rapid.SampledFrom([]time.Duration{time.Microsecond, 5 * time.Second, 20 * time.Second, 1000 * time.Second}).Draw(t, "silence")
		case event == 1 && !clockIsGood:
			step = rapid.SampledFrom([]time.Duration{-30 * time.Second, 30 * time.Second, -time.Hour, -300 * time.Millisecond}).Draw(t, "clock")
		case event == 2 && !clockIsGood:
			f.count.Counts, f.count.Timed = ledger.Counts{Submitted: f.count.Submitted / 2}, 0
		case event < 8:
			step = time.Duration(rapid.IntRange(1, 1999).Draw(t, "ms")) * time.Millisecond
		}
		f.now = f.now.Add(step)
		n := rapid.IntRange(0, 20).Draw(t, "tasks")
		f.count.Submitted += n
		f.count.Done += n
		f.count.Timed += n / 2
		f.count.Late += n / 3
		f.beat(tally(n, rapid.Float64Range(0, 10).Draw(t, "service")))
		last := f.gone[len(f.gone)-1]
		if k := len(all); k > 0 && all[k-1].Unix == last.Unix { // the bucket grows
			last.Tally.Merge(&all[k-1].Tally)
			all = all[:k-1]
			f.gone[len(f.gone)-1] = last
		}
		all = append(all, last)
		if rapid.Bool().Draw(t, "observe") {
			f.observe()
		}
	}
	return all
}

// Observed at every step or only once at the end, the windows are the same.
func TestWindowsDoNotDependOnWhenTheyAreLookedAt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFarm(t, time.Duration(rapid.IntRange(1, 60).Draw(rt, "interval"))*time.Second)
		f.now = f.now.Add(time.Second)
		all := append(slices.Clone(f.gone), history(rt, f, true)...)
		got := *f.observe()
		fresh := signal.NewSeries(f.s.State()) // with the last service time
		fresh.Add(&signal.Reading{Now: f.now, Seconds: all})
		want := signal.NewObservation(farmOf(f), f.now)
		fresh.Observe(&want)
		ignore := cmpopts.IgnoreFields(policy.Observation{}, "Level", "Past")
		if d := cmp.Diff(want, got, ignore, nearly, maybes); d != "" {
			rt.Errorf("at once and in steps: %s", d)
		}
	})
}

// Whatever happens to clocks and counters, no count is negative and no number is
// NaN: observe checks it.
func TestNothingMakesNonsense(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFarm(t, 2*time.Second)
		history(rt, f, false)
		f.seconds(3, 1, 1)
		if o := f.observe(); t.Failed() {
			rt.Fatalf("%+v", o)
		}
	})
}

// A clock that goes back costs the windows, but not the level.
func TestClockGoesBack(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.play(60, steady(10), nil)
	f.now = f.now.Add(-30 * time.Second)
	o := f.observe()
	unknown(t, "age", o.Age)
	exactly(t, "covered", o.Long.Covered, 0)
	exactly(t, "rate of the level", o.Level.Rate, 10)
	if since := f.s.Since(); since != f.now.Unix()-1 {
		t.Errorf("since %d at %d", since, f.now.Unix())
	}
	f.play(20, steady(10), nil)
	exactly(t, "covered", f.o.Long.Covered, 19)
	exactly(t, "rate of the level", f.o.Level.Rate, 10)
	if len(f.o.Past) != 0 {
		t.Errorf("a set clock is a change: %+v", f.o.Past)
	}
}

// Redis restored from a backup: its counters go back, the farm goes on.
func TestCountersGoBack(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.seconds(30, 10, 0.1)
	f.observe()
	f.count.Counts = ledger.Counts{Submitted: 7}
	f.second(0, 0)
	f.second(10, 0.1)
	o := f.observe()
	exactly(t, "arrivals", o.Last.Arrivals, 10)
	exactly(t, "covered", o.Last.Covered, 1)
	exactly(t, "covered", o.Short.Covered, 9)
}

// A controller that starts again and reads the seconds again sees what it would
// have seen.
func TestStateSurvivesRestarts(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.play(100, steady(20), nil)
	f.s.Scaled(f.now, 1, 3)
	f.o.Desired, f.o.Ready = 3, 3
	f.play(50, steady(200), nil)
	f.s.Scaled(f.now, 3, 9)

	raw, err := json.Marshal(f.s.State())
	if err != nil {
		t.Fatal(err)
	}
	var state signal.State
	if err := json.Unmarshal(raw, &state); err != nil {
		t.Fatal(err)
	}
	twin := &farm{t: t, s: signal.NewSeries(state), now: f.now, count: f.count, o: signal.NewObservation(farmOf(f), f.now)}
	twin.o.Desired, twin.o.Ready = 3, 3
	if o := twin.observe(); o.Level.Rate != 200 || math.Abs(float64(o.Service)-0.04) > 1e-9 || len(o.Past) != 1 { // before anything was read again
		t.Errorf("%+v", o)
	}
	replay := newFarm(t, 2*time.Second)
	replay.seconds(100, 20, 0.04)
	replay.seconds(50, 200, 0.04)
	twin.gone = replay.gone
	for _, x := range []*farm{f, twin} {
		x.o.Ready = 5
		x.play(20, steady(200), nil)
	}
	if d := cmp.Diff(f.o, twin.o, nearly, maybes); d != "" {
		t.Error(d)
	}
	if f.o.StartupLag == twin.o.StartupLag && !f.o.StartupLag.Known() {
		t.Error("no start-up lag was measured")
	}
}

// A Series that was reset sees what a new one does.
func TestResetSeriesIsNew(t *testing.T) {
	play := func(f *farm) (list []string) {
		for i := range 400 {
			f.second(1+i/100*37%50, 0.01*float64(1+i%7))
			b, err := json.Marshal(f.observe())
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, string(b))
		}
		return list
	}
	used, fresh, again := newFarm(t, 2*time.Second), newFarm(t, 2*time.Second), newFarm(t, 2*time.Second)
	used.seconds(1200, 90, 0.2)
	used.observe()
	used.s.Reset(signal.State{})
	again.s = used.s
	if got, want := play(again), play(fresh); !slices.Equal(got, want) {
		t.Error("a reset Series sees other things than a new one")
	}
}
