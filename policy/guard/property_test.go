package guard_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"farmhand/policy"
	"farmhand/policy/guard"
)

func maybe(t *rapid.T, label string, hi float64) policy.Maybe {
	if rapid.IntRange(0, 4).Draw(t, label+" unknown") == 0 {
		return policy.Unknown
	}
	return policy.Maybe(rapid.Float64Range(0, hi).Draw(t, label))
}

func decision(t *rapid.T, label string) policy.Decision {
	n := rapid.OneOf(rapid.IntRange(0, 20), rapid.Int(), rapid.Just(math.MinInt)).Draw(t, label)
	return policy.Decision{Replicas: n, Hold: rapid.IntRange(0, 9).Draw(t, label+" holds") == 0}
}

// anything is any scene at all, sensible or not.
func anything(t *rapid.T) scene {
	s := quiet()
	s.set = guard.Settings{
		Budget:         rapid.SampledFrom([]float64{0, 1, 24}).Draw(t, "budget"),
		Learned:        rapid.Bool().Draw(t, "learned"),
		ActionsPerHour: rapid.SampledFrom([]float64{0, 60, 7200}).Draw(t, "actions"),
		Burst:          rapid.IntRange(0, 12).Draw(t, "burst"),
	}
	s.obs.Interval = rapid.SampledFrom([]float64{0, 1, 2, 60}).Draw(t, "interval")
	s.obs.Deadline = rapid.Float64Range(0, 20).Draw(t, "deadline")
	s.obs.Min = rapid.IntRange(-1, 8).Draw(t, "min")
	s.obs.Max = rapid.IntRange(-1, 16).Draw(t, "max")
	s.obs.Desired = rapid.IntRange(-1, 20).Draw(t, "desired")
	s.obs.Age = maybe(t, "age", 10)
	s.obs.Waiting = maybe(t, "waiting", 9)
	s.obs.Running = maybe(t, "running", 9)
	s.obs.Overdue = maybe(t, "overdue", 1)
	s.obs.OldestWait = maybe(t, "oldest wait", 20)
	s.obs.Draining = maybe(t, "draining", 3)
	s.obs.Long.Covered = rapid.Float64Range(0, 120).Draw(t, "covered")
	s.obs.At = noon.Add(time.Duration(rapid.Int64Range(-2e14, 2e14).Draw(t, "at")))
	s.st.Version = rapid.IntRange(0, 2).Draw(t, "version")
	s.st.Steady = rapid.Float64Range(0, 1000).Draw(t, "steady")
	s.st.Spent = rapid.Float64Range(0, 20).Draw(t, "spent")
	s.st.Used = rapid.Float64Range(0, 1e5).Draw(t, "used")
	s.wish, s.rule = decision(t, "wish"), decision(t, "rule")
	return s
}

// On stale signals nothing is scaled down, and up to min only, or to one where tasks
// wait for none. What is done leads
// into the bounds; the limits tell the whole way from the wish to the outcome.
func TestAnyDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anything(t)
		out, st := s.apply()

		hi := s.obs.Max
		if hi <= 0 {
			hi = guard.Ceiling
		}
		lo, count := min(max(0, s.obs.Min), hi), max(0, s.obs.Desired)
		switch {
		case s.obs.Stale() && out.Replicas != max(count, lo) && !(count == 0 && s.obs.Waiting > 0 && out.Replicas == max(1, lo)):
			t.Fatalf("on stale signals: %+v", out)
		case !s.obs.Stale() && (out.Replicas < lo || out.Replicas > hi):
			t.Fatalf("outside %d…%d: %+v", lo, hi, out)
		case !out.Hold && (out.Replicas < lo || out.Replicas > hi):
			t.Fatalf("led outside %d…%d: %+v", lo, hi, out)
		case out.Hold != (out.Replicas == count):
			t.Fatalf("%+v from %d", out, count)
		case st.Spent < 0 || st.Used < 0 || st.Steady < 0:
			t.Fatalf("state %+v", st)
		case s.st.Version == st.Version && st.Day == s.st.Day && st.Used < s.st.Used:
			t.Fatalf("state %+v", st)
		}

		at := s.wish.Replicas
		if s.wish.Hold {
			at = count
		}
		for _, l := range out.Limits {
			if l.From != at || l.To == at {
				t.Fatalf("%+v does not lead on from %d", l, at)
			}
			at = l.To
		}
		if at != out.Replicas {
			t.Fatalf("the limits lead to %d: %+v", at, out)
		}
	})
}

// A learned policy never goes below the rule under pressure, save for what a user
// asked for and for want of tokens.
func TestNeverBelowTheRuleUnderPressure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anything(t)
		s.set.Learned, s.obs.Age, s.obs.Waiting, s.obs.Running, s.obs.Overdue = true, 0, 1, 1, 1
		s.rule = policy.Decision{Replicas: rapid.IntRange(0, 20).Draw(t, "the rule's")}
		out, _ := s.apply()
		if out.Replicas < s.rule.Replicas && !out.Bound(guard.LimitMax) && !out.Bound(guard.LimitBudget) && !out.Bound(guard.LimitActions) {
			t.Fatalf("below %d: %+v", s.rule.Replicas, out)
		}
	})
}

// stroll is a farm with a quota of 480 actions an hour under changing wishes and a
// clock that steps by up to 30 s, tick after tick of true time.
func stroll(t *rapid.T, set guard.Settings, each func(i int, w *walk, from int)) {
	w := begin(set)
	w.obs.Min = 0
	w.obs.Max = rapid.IntRange(1, 8).Draw(t, "max")
	wishes := rapid.SliceOfN(rapid.IntRange(0, 8), 1, 8).Draw(t, "wishes")
	steps := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 0, 30, -30}), 1, 8).Draw(t, "steps")
	stale := rapid.IntRange(2, 50).Draw(t, "stale")
	before := 0
	for i := range 400 {
		ahead := steps[i/7%len(steps)]
		w.wish.Replicas = wishes[i%len(wishes)]
		w.obs.Age = policy.Maybe(1)
		if set.Budget == 0 && i%stale == 1 {
			w.obs.Age = policy.Unknown
		}
		from := w.obs.Desired
		w.after(tick + time.Duration(ahead-before)*time.Second)
		before = ahead
		each(i, w, from)
	}
}

// In any window of true time there are no more actions than a burst and what the
// rate allows; one more where the last was a start from zero.
func TestActionsStayWithinTheQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := 0.0 // of a bucket that leaks in true time
		stroll(t, guard.Settings{}, func(i int, w *walk, from int) {
			level = max(0, level-480./3600*tick.Seconds())
			if w.out.Hold {
				return
			}
			level++
			most := 10 + 1e-9
			if from == 0 {
				most++
			}
			if level > most && from <= w.obs.Max {
				t.Fatalf("tick %d: %d → %d with %g in the bucket", i, from, w.out.Replicas, level)
			}
		})
	})
}

// The work of a day never exceeds its budget by more than one interval's.
func TestBudgetIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Float64Range(0.01, 0.5).Draw(t, "budget")
		used, most := 0.0, 0
		stroll(t, guard.Settings{Budget: budget}, func(i int, w *walk, from int) {
			used += float64(from) * tick.Seconds()
			most = max(most, from)
			if over := used - budget*3600; over > float64(most)*tick.Seconds()+1e-6 {
				t.Fatalf("tick %d: %g worker-seconds over the budget", i, over)
			}
		})
	})
}

// A receipt replays: from state and observation that went through JSON come the
// same outcome and the same state, bit for bit.
func TestReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live := anything(t)
		for range 5 {
			kept := live
			through(t, live.st, &kept.st)
			through(t, live.obs, &kept.obs)
			through(t, live.set, &kept.set)
			want, wantState := live.apply()
			got, gotState := kept.apply()
			if diff := cmp.Diff(want, got); diff != "" || gotState != wantState {
				t.Fatalf("replayed: %s%+v: want %+v", diff, gotState, wantState)
			}
			var out guard.Outcome
			if through(t, want, &out); !cmp.Equal(want, out) {
				t.Fatalf("%+v became %+v", want, out)
			}
			live.st, live.obs.Desired = wantState, want.Replicas
			live.obs.At = live.obs.At.Add(time.Duration(rapid.Int64Range(-4e10, 4e10).Draw(t, "elapsed")))
			live.wish = decision(t, "wish")
		}
	})
}

// through sends a value through JSON.
func through(t *rapid.T, from, to any) {
	b, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}
