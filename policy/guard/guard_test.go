package guard_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"farmhand/policy"
	"farmhand/policy/guard"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// scene is all that one decision of the guard depends on.
type scene struct {
	set        guard.Settings
	obs        policy.Observation
	wish, rule policy.Decision
	st         guard.State
}

// quiet is a farm of five between one and ten, with all data and a full bucket.
func quiet() scene {
	return scene{
		obs: policy.Observation{
			Version: policy.ObservationVersion, Farm: "w", At: noon, Age: 1,
			Interval: 2, Deadline: 10, Target: 0.95, Slots: 1, Min: 1, Max: 10,
			Desired: 5, Ready: 5, Draining: policy.Unknown,
			Waiting: 3, Running: 5, OldestWait: 1,
			Long: policy.Window{Length: 120, Covered: 120},
		},
		wish: policy.Decision{Replicas: 5},
		rule: policy.Decision{Replicas: 5},
		st:   guard.State{Version: guard.StateVersion, At: noon.Add(-2 * time.Second), Day: noon.Truncate(24 * time.Hour)},
	}
}

func (s *scene) apply() (guard.Outcome, guard.State) {
	return s.set.Apply(&s.obs, s.wish, s.rule, s.st)
}

// Each limit binds, is named, and the outcome is another once what it stands on
// is taken away.
func TestLimitsBind(t *testing.T) {
	hours := func(h float64) float64 { return h * 3600 }
	for _, tt := range []struct {
		name    string
		set     func(*scene)
		limit   string
		want    int
		unset   func(*scene)
		without int
	}{
		{
			name:  "a negative wish",
			set:   func(s *scene) { s.wish.Replicas = math.MinInt },
			limit: guard.LimitWish, want: 5,
			unset: func(s *scene) { s.wish.Replicas = 0 }, without: 1,
		},
		{
			name:  "an absurd wish",
			set:   func(s *scene) { s.wish.Replicas = math.MaxInt32 + 1 },
			limit: guard.LimitWish, want: 5,
			unset: func(s *scene) { s.wish.Replicas = math.MaxInt32 }, without: 10,
		},
		{
			name:  "old signals, down",
			set:   func(s *scene) { s.wish.Replicas, s.obs.Age = 2, 6.5 },
			limit: guard.LimitStale, want: 5,
			unset: func(s *scene) { s.obs.Age = 6 }, without: 2,
		},
		{
			name:  "unknown gauges, up",
			set:   func(s *scene) { s.wish.Replicas, s.obs.Waiting = 8, policy.Unknown },
			limit: guard.LimitStale, want: 5,
			unset: func(s *scene) { s.obs.Waiting = 0 }, without: 8,
		},
		{
			name:  "old signals, above max",
			set:   func(s *scene) { s.wish.Replicas, s.obs.Desired, s.obs.Age = 8, 12, policy.Unknown },
			limit: guard.LimitStale, want: 12,
			unset: func(s *scene) { s.obs.Age = 0 }, without: 8,
		},
		{
			name:  "learned, with overdue tasks",
			set:   func(s *scene) { s.set.Learned, s.wish.Replicas, s.rule.Replicas, s.obs.Overdue = true, 3, 7, 1 },
			limit: guard.LimitRule, want: 7,
			unset: func(s *scene) { s.obs.Overdue = 0 }, without: 3,
		},
		{
			name:  "learned, with a task past half its deadline",
			set:   func(s *scene) { s.set.Learned, s.wish.Replicas, s.rule.Replicas, s.obs.OldestWait = true, 3, 7, 5.1 },
			limit: guard.LimitRule, want: 7,
			unset: func(s *scene) { s.obs.OldestWait = 5 }, without: 3,
		},
		{
			name: "learned, with nobody knowing what is overdue",
			set: func(s *scene) {
				s.set.Learned, s.wish.Replicas, s.rule.Replicas, s.obs.Overdue = true, 3, 7, policy.Unknown
			},
			limit: guard.LimitRule, want: 7,
			unset: func(s *scene) { s.set.Learned = false }, without: 3,
		},
		{
			name: "learned, with nobody knowing how long tasks wait",
			set: func(s *scene) {
				s.set.Learned, s.wish.Replicas, s.rule.Replicas, s.obs.OldestWait = true, 3, 7, policy.Unknown
			},
			limit: guard.LimitRule, want: 7,
			unset: func(s *scene) { s.obs.OldestWait = 0 }, without: 3,
		},
		{
			name: "learned, while the rule would hold",
			set: func(s *scene) {
				s.set.Learned, s.wish.Replicas, s.rule, s.obs.Overdue = true, 3, policy.Decision{Replicas: 9, Hold: true}, 1
			},
			limit: guard.LimitRule, want: 5,
			unset: func(s *scene) { s.rule = policy.Decision{Replicas: math.MaxInt} }, without: 3,
		},
		{
			name:  "not one long window of data",
			set:   func(s *scene) { s.wish.Replicas, s.obs.Long.Covered = 2, 117 },
			limit: guard.LimitWindow, want: 5,
			unset: func(s *scene) { s.obs.Long.Covered = 118 }, without: 2,
		},
		{
			name:  "not one long run of observations",
			set:   func(s *scene) { s.wish.Replicas, s.obs.Long.Covered, s.st.Steady = 2, 0, 117 },
			limit: guard.LimitWindow, want: 5,
			unset: func(s *scene) { s.st.Steady = 118 }, without: 2,
		},
		{
			name:  "above max",
			set:   func(s *scene) { s.wish.Replicas = 11 },
			limit: guard.LimitMax, want: 10,
			unset: func(s *scene) { s.obs.Max = 0 }, without: 11,
		},
		{
			name:  "above the ceiling",
			set:   func(s *scene) { s.wish.Replicas, s.obs.Max = 20_000, 0 },
			limit: guard.LimitMax, want: guard.Ceiling,
			unset: func(s *scene) { s.obs.Max = 30_000 }, without: 20_000,
		},
		{
			name:  "a lowered max, without data",
			set:   func(s *scene) { s.obs.Max, s.obs.Long.Covered = 4, 0 },
			limit: guard.LimitMax, want: 4,
			unset: func(s *scene) { s.obs.Max = 5 }, without: 5,
		},
		{
			name:  "a budget used up, up",
			set:   func(s *scene) { s.set.Budget, s.st.Used, s.wish.Replicas, s.obs.Desired = 10, hours(10), 8, 1 },
			limit: guard.LimitBudget, want: 1,
			unset: func(s *scene) { s.set.Budget = 11 }, without: 8,
		},
		{
			name:  "a budget used up, in a crisis, without data",
			set:   func(s *scene) { s.set.Budget, s.st.Used, s.obs.Overdue, s.obs.Long.Covered = 10, hours(10), 9, 0 },
			limit: guard.LimitBudget, want: 1,
			unset: func(s *scene) { s.set.Budget = 0 }, without: 5,
		},
		{
			name: "a budget used up, at zero with work",
			set: func(s *scene) {
				s.set.Budget, s.st.Used, s.obs.Min, s.obs.Desired = 10, hours(10), 0, 0
			},
			limit: guard.LimitBudget, want: 0,
			unset: func(s *scene) { s.st.Used = hours(9) }, without: 5,
		},
		{
			name:  "below min",
			set:   func(s *scene) { s.wish.Replicas, s.obs.Min = 2, 3 },
			limit: guard.LimitMin, want: 3,
			unset: func(s *scene) { s.obs.Min = 2 }, without: 2,
		},
		{
			name: "below min, with old signals, no budget and no token",
			set: func(s *scene) {
				s.obs.Desired, s.obs.Min, s.obs.Age, s.st.Spent = 0, 3, policy.Unknown, 10
				s.set.Budget, s.st.Used = 1, hours(2)
			},
			limit: guard.LimitMin, want: 3,
			unset: func(s *scene) { s.obs.Min = 0 }, without: 0,
		},
		{
			name:  "a min above max",
			set:   func(s *scene) { s.wish.Replicas, s.obs.Min, s.obs.Max = 2, 8, 4 },
			limit: guard.LimitMin, want: 4,
			unset: func(s *scene) { s.obs.Min = 0 }, without: 2,
		},
		{
			name:  "no token, up",
			set:   func(s *scene) { s.wish.Replicas, s.st.Spent = 8, 10 },
			limit: guard.LimitActions, want: 5,
			unset: func(s *scene) { s.st.Spent = 9 }, without: 8,
		},
		{
			name:  "no token, down",
			set:   func(s *scene) { s.wish.Replicas, s.st.Spent = 2, 9.5 },
			limit: guard.LimitActions, want: 5,
			unset: func(s *scene) { s.set.Burst = 11 }, without: 2,
		},
		{
			name: "no token, from zero without work",
			set: func(s *scene) {
				s.obs.Min, s.obs.Desired, s.obs.Waiting, s.st.Spent = 0, 0, 0, 10
			},
			limit: guard.LimitActions, want: 0,
			unset: func(s *scene) { s.obs.Waiting = 1 }, without: 5,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := quiet()
			tt.set(&s)
			out, _ := s.apply()
			if out.Replicas != tt.want || !out.Bound(tt.limit) {
				t.Errorf("got %+v: want %d bound by %s", out, tt.want, tt.limit)
			}
			for _, l := range out.Limits {
				if l.Reason == "" || l.From == l.To {
					t.Errorf("%+v explains nothing", l)
				}
			}
			tt.unset(&s)
			if out, _ = s.apply(); out.Replicas != tt.without || out.Bound(tt.limit) {
				t.Errorf("without it: got %+v: want %d, not bound by %s", out, tt.without, tt.limit)
			}
		})
	}
}

// Nothing binds where a wish is within all limits, and to hold is no action.
func TestNothingBinds(t *testing.T) {
	for _, wish := range []policy.Decision{{Replicas: 5}, {Replicas: 4}, {Replicas: 9}, {Replicas: -1, Hold: true}} {
		s := quiet()
		s.wish = wish
		want := guard.Outcome{Replicas: wish.Replicas, Hold: wish.Replicas == 5}
		if wish.Hold {
			want = guard.Outcome{Replicas: 5, Hold: true}
		}
		out, st := s.apply()
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("wish %+v: %s", wish, diff)
		}
		if spent := st.Spent > 0; spent == want.Hold {
			t.Errorf("wish %+v: %g tokens spent", wish, st.Spent)
		}
	}
}

// Each limit takes what the one before has left, and says so.
func TestLimitsInOrder(t *testing.T) {
	s := quiet()
	s.set = guard.Settings{Learned: true}
	s.obs.Overdue, s.obs.Long.Covered, s.obs.Max, s.st.Spent = 2, 0, 4, 10
	s.wish.Replicas, s.rule.Replicas = 0, 3
	out, st := s.apply()
	want := guard.Outcome{Replicas: 4, Limits: []guard.Limit{
		{Name: guard.LimitRule, From: 0, To: 3, Reason: "2 tasks are overdue"},
		{Name: guard.LimitWindow, From: 3, To: 5, Reason: "2 s of data since the last gap"},
		{Name: guard.LimitMax, From: 5, To: 4, Reason: "4 is the most"},
	}}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	if st.Spent <= 10 {
		t.Errorf("the way back inside left no debt: %g spent", st.Spent)
	}
}

func TestAlarmBeforeTheBudgetEnds(t *testing.T) {
	for _, tt := range []struct {
		used, budget float64
		want         bool
	}{{7.9, 10, false}, {8, 10, true}, {12, 10, true}, {12, 0, false}} {
		s := quiet()
		s.set.Budget, s.st.Used = tt.budget, tt.used*3600
		if out, _ := s.apply(); out.Alarm != tt.want {
			t.Errorf("%g of %g used: alarm %v", tt.used, tt.budget, out.Alarm)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := (guard.Settings{Budget: 10, ActionsPerHour: 60, Burst: 1}).Validate(); err != nil {
		t.Error(err)
	}
	bad := guard.Settings{Budget: math.NaN(), ActionsPerHour: math.Inf(1), Burst: -1}
	for _, word := range []string{"budget", "actions per hour", "burst"} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not name the %s", err, word)
		}
	}
}

// Tasks that wait for no worker at all get one, though no signal tells of them; an
// exhausted budget forbids even that.
func TestWakesOnStaleSignals(t *testing.T) {
	obs := policy.Observation{Version: policy.ObservationVersion, At: time.Unix(1_800_000_000, 0).UTC(), Age: policy.Unknown, Interval: 2, Slots: 1, Max: 5,
		Waiting: 3, Running: policy.Unknown}
	hold := policy.Hold(&obs, "the signals are missing")
	if out, _ := (guard.Settings{}).Apply(&obs, hold, hold, guard.State{}); out.Replicas != 1 || !out.Bound(guard.LimitStale) {
		t.Errorf("%+v", out)
	}
	obs.Waiting = 0
	if out, _ := (guard.Settings{}).Apply(&obs, hold, hold, guard.State{}); out.Replicas != 0 || !out.Hold {
		t.Errorf("nothing waits: %+v", out)
	}
	obs.Waiting, obs.Desired = 3, 2
	if out, _ := (guard.Settings{}).Apply(&obs, hold, hold, guard.State{}); out.Replicas != 2 || !out.Hold {
		t.Errorf("workers are there: %+v", out)
	}
}
