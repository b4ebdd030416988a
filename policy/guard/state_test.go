package guard_test

import (
	"math"
	"testing"
	"time"

	"farmhand/policy"
	"farmhand/policy/guard"
)

// walk is a farm that is decided for again and again and does as it is told.
type walk struct {
	scene
	out guard.Outcome
}

// after decides for the farm when its clock has moved by d.
func (w *walk) after(d time.Duration) guard.Outcome {
	w.obs.At = w.obs.At.Add(d)
	w.out, w.st = w.apply()
	w.obs.Desired = w.out.Replicas
	return w.out
}

func begin(set guard.Settings) *walk {
	w := &walk{scene: quiet()}
	w.set, w.st = set, guard.State{}
	w.after(0)
	return w
}

const tick = 2 * time.Second

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

// A farm seen for the first time has a full bucket and must gather its data.
func TestZeroState(t *testing.T) {
	w := begin(guard.Settings{Burst: 3})
	w.obs.Long.Covered, w.wish.Replicas = 0, 2
	for n := 0; w.after(tick).Hold; n++ {
		if !w.out.Bound(guard.LimitWindow) || n > 60 {
			t.Fatalf("after %d ticks: %+v", n, w.out)
		}
	}
	if w.st.Steady != 120 {
		t.Errorf("scaled down after %g s of data", w.st.Steady)
	}
	for _, wish := range []int{3, 4} {
		if w.wish.Replicas = wish; w.after(0).Hold {
			t.Fatalf("no token for %d: %+v", wish, w.out)
		}
	}
	if w.wish.Replicas = 5; !w.after(0).Bound(guard.LimitActions) {
		t.Fatalf("a fourth token out of three: %+v", w.out)
	}
	w.wish.Hold = true
	for range 3 {
		w.after(tick)
	}
	if w.wish.Hold = false; w.after(tick).Hold {
		t.Errorf("not taken although a token is back: %+v", w.out)
	}
}

// A state of another version is as good as none.
func TestStateOfAnotherVersion(t *testing.T) {
	s := quiet()
	s.st = guard.State{Version: guard.StateVersion + 1, Spent: 10, Used: 1e9}
	s.set.Budget, s.wish.Replicas = 1, 8
	if out, st := s.apply(); out.Replicas != 8 || st.Version != guard.StateVersion {
		t.Errorf("got %+v, %+v", out, st)
	}
}

func TestWhatEndsARunOfData(t *testing.T) {
	for _, tt := range []struct {
		name string
		step func(*walk)
		want float64
	}{
		{"a tick", func(w *walk) { w.after(tick) }, 202},
		{"a late tick", func(w *walk) { w.after(3 * tick) }, 206},
		{"a restart", func(w *walk) { w.after(4 * tick) }, 0},
		{"a stale tick", func(w *walk) { w.obs.Age = 60; w.after(tick) }, 0},
		{"a step ahead", func(w *walk) { w.after(30*time.Second + tick) }, 0},
		{"a step back", func(w *walk) { w.after(-30*time.Second + tick) }, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := begin(guard.Settings{})
			for range 100 {
				w.after(tick)
			}
			if tt.step(w); w.st.Steady != tt.want {
				t.Errorf("%g s of data: want %g", w.st.Steady, tt.want)
			}
			// The windows are kept elsewhere: where they are whole, nothing waits.
			w.obs.Age, w.wish.Replicas = 1, 2
			if w.after(tick); w.out.Replicas != 2 {
				t.Errorf("got %+v: want 2", w.out)
			}
		})
	}
}

// No step of the clock mints tokens, and the next one comes when it would have.
func TestStepsMintNoTokens(t *testing.T) {
	for _, step := range []time.Duration{0, 30 * time.Second, -30 * time.Second, 24 * time.Hour, -24 * time.Hour} {
		w := begin(guard.Settings{})
		w.st.Spent, w.wish.Replicas = 10, 8
		w.after(step + tick)
		if !w.out.Hold || w.st.Spent < 10-0.3 {
			t.Fatalf("a step of %v: %+v, %g spent", step, w.out, w.st.Spent)
		}
		n := 1
		for ; w.out.Hold && n < 10; n++ {
			w.after(tick)
		}
		if n > 5 { // 7.5 s, and the tick that a step back does not count
			t.Errorf("a step of %v: a token after %d ticks", step, n)
		}
	}
}

// An interval that nobody set does not keep the tokens for ever.
func TestTokensReturnWithoutAnInterval(t *testing.T) {
	for _, interval := range []float64{0, math.NaN()} {
		w := begin(guard.Settings{})
		w.obs.Interval, w.st.Spent, w.wish.Replicas = interval, 10, 8
		for n := 0; w.after(time.Second).Hold; n++ {
			if n > 8 {
				t.Fatalf("an interval of %g: %+v, %+v", interval, w.out, w.st)
			}
		}
	}
}

// What always passes leaves a debt, and never one too deep to be worked off.
func TestDebt(t *testing.T) {
	w := begin(guard.Settings{})
	for range 100 { // somebody else sets the count below min every tick
		w.obs.Desired = 0
		if w.after(tick); w.out.Replicas != 5 {
			t.Fatalf("not put back: %+v", w.out)
		}
	}
	if w.st.Spent > 20 {
		t.Fatalf("%g spent: want a debt of one bucket at most", w.st.Spent)
	}
	w.wish.Replicas = 8
	n := 0
	for ; n < 100 && w.after(tick).Hold; n++ {
	}
	if wait := time.Duration(n) * tick; wait < 70*time.Second || wait > 84*time.Second {
		t.Errorf("an ordinary action after %v: want 82.5 s", wait)
	}
}

func TestBudgetIsCharged(t *testing.T) {
	hour := func(h int) time.Duration { return time.Duration(h) * time.Hour }
	for _, tt := range []struct {
		name  string
		steps []time.Duration
		drain policy.Maybe
		want  float64 // worker-seconds, of five
	}{
		{"ticks", []time.Duration{tick, tick}, policy.Unknown, 20},
		{"ticks with two that drain", []time.Duration{tick, tick}, 2, 28},
		{"a controller that was down", []time.Duration{hour(1)}, policy.Unknown, 5 * 3600},
		{"30 s ahead and back", []time.Duration{30*time.Second + tick, -30*time.Second + tick}, policy.Unknown, 5 * (32 + 2)},
		{"30 s back and ahead", []time.Duration{-30*time.Second + tick, 30*time.Second + tick}, policy.Unknown, 5 * (2 + 32)},
		{"over midnight", []time.Duration{hour(11), hour(2)}, policy.Unknown, 5 * 3600},
		{"over two midnights", []time.Duration{hour(40)}, policy.Unknown, 5 * 4 * 3600},
		{"over midnight and back a little", []time.Duration{hour(12) + 5*time.Second, -30 * time.Second, tick}, policy.Unknown, 5 * (5 + 2 + 2)},
		{"and over it again", []time.Duration{hour(12) + 5*time.Second, -30 * time.Second, 30 * time.Second}, policy.Unknown, 5 * (5 + 2 + 30)},
		{"a day back", []time.Duration{hour(1), -hour(24), tick}, policy.Unknown, 5 * (3600 + 2 + 2)},
		{"a day back and over midnight", []time.Duration{hour(1), -hour(24), hour(12)}, policy.Unknown, 5 * 3600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := begin(guard.Settings{})
			w.obs.Draining = tt.drain
			for _, d := range tt.steps {
				w.after(d)
			}
			if !near(w.st.Used, tt.want) {
				t.Errorf("%g worker-seconds since %v: want %g", w.st.Used, w.st.Day, tt.want)
			}
		})
	}
}

// A farm whose budget is used up drains to min, says why, and works again the
// next day.
func TestBudgetReturnsAtMidnight(t *testing.T) {
	w := begin(guard.Settings{Budget: 10})
	w.obs.Min = 0
	for w.obs.At.Before(noon.Add(12*time.Hour - tick)) {
		w.after(tick)
	}
	if w.out.Replicas != 0 || !w.out.Bound(guard.LimitBudget) || !w.out.Alarm || w.st.Hours() > 10.01 {
		t.Errorf("before midnight: %+v, %g h used", w.out, w.st.Hours())
	}
	if w.after(tick); w.out.Replicas != 5 || w.out.Alarm {
		t.Errorf("at midnight: %+v", w.out)
	}
}

// The clock in memory has more than the one in JSON; the guard looks at neither
// that nor the zone.
func TestOnlyTheWallClockCounts(t *testing.T) {
	s := quiet()
	s.obs.At = time.Now()
	_, live := s.apply()
	s.obs.At = s.obs.At.Round(0).In(time.FixedZone("far", 5*3600))
	if _, replayed := s.apply(); live != replayed {
		t.Errorf("%+v became %+v", live, replayed)
	}
}

// Where nothing is done time goes on as ever, and no token is spent, whatever asks for
// an action.
func TestPass(t *testing.T) {
	s := quiet()
	s.set, s.st.Spent, s.st.Steady, s.st.Used = guard.Settings{Budget: 1}, 5, 50, 7200 // a budget used up
	s.obs.Desired, s.obs.Min, s.obs.Max = 20, 8, 4
	_, acted := s.apply()
	passed := s.set.Pass(&s.obs, s.st)
	if !near(acted.Spent-passed.Spent, 1) || !near(passed.Spent, 5-2*480./3600) {
		t.Errorf("%g tokens spent, %g of an action", passed.Spent, acted.Spent)
	}
	if acted.Spent = passed.Spent; acted != passed {
		t.Errorf("%+v, want %+v", passed, acted)
	}
}
