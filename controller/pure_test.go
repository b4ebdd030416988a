package controller_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"farmhand/controller"
	"farmhand/policy"
	"farmhand/policy/guard"
)

func demands(t *rapid.T) (list []controller.Demand) {
	for i := range rapid.IntRange(0, 8).Draw(t, "farms") {
		list = append(list, controller.Demand{
			Farm: fmt.Sprint("f", i),
			Want: rapid.OneOf(rapid.IntRange(-2, 30), rapid.Just(math.MaxInt32)).Draw(t, "want"),
			Min:  rapid.IntRange(-1, 12).Draw(t, "min"),
		})
	}
	return list
}

// However much is wanted: no more than there is, all of it if it is needed, for
// each its minimum first, and of the rest its share to within one replica.
func TestAllot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list, there := demands(t), rapid.IntRange(0, 60).Draw(t, "capacity")
		before := slices.Clone(list)
		got := controller.Capacity(there).Allot(list)
		if !slices.Equal(list, before) || len(got) != len(list) {
			t.Fatalf("%v for %v, which was %v", got, list, before)
		}
		var sum, want, least int
		for i, d := range list {
			if got[i] < 0 || got[i] > max(0, d.Want) {
				t.Fatalf("%+v gets %d", d, got[i])
			}
			sum += got[i]
			want += max(0, d.Want)
			least += max(0, min(d.Want, d.Min))
		}
		if there == 0 {
			there = math.MaxInt
		}
		if sum != min(want, there) {
			t.Fatalf("%d of %d are given, %d are wanted", sum, there, want)
		}
		for i, d := range list {
			base, above, room, all := max(0, min(d.Want, d.Min)), 0, there-least, want-least
			if above = max(0, d.Want) - base; room < 0 { // not even the minima fit
				base, above, room, all = 0, base, there, least
			}
			share := float64(base)
			if all > 0 {
				share += float64(above) * min(1, float64(room)/float64(all))
			}
			if math.Abs(float64(got[i])-share) >= 1 {
				t.Fatalf("%+v gets %d, its share is %g", d, got[i], share)
			}
		}
		// The order of the farms changes nothing.
		order := rand.New(rand.NewPCG(1, 2)).Perm(len(list))
		shuffled := make([]controller.Demand, len(list))
		for i, j := range order {
			shuffled[i] = list[j]
		}
		again := controller.Capacity(there % math.MaxInt).Allot(shuffled)
		for i, j := range order {
			if again[i] != got[j] {
				t.Fatalf("%+v gets %d, or %d in another order", list[j], got[j], again[i])
			}
		}
	})
}

func maybe(t *rapid.T, label string, hi float64) policy.Maybe {
	if rapid.IntRange(0, 5).Draw(t, label+" unknown") == 0 {
		return policy.Unknown
	}
	return policy.Maybe(rapid.Float64Range(0, hi).Draw(t, label))
}

// inputs are those of any decision.
func inputs(t *rapid.T) controller.Inputs {
	count := func(label string) int { return rapid.IntRange(0, 30).Draw(t, label) }
	amount := func(label string) float64 { return rapid.Float64Range(0, 500).Draw(t, label) }
	window := func(length float64) policy.Window {
		s := policy.Stats{N: amount("n"), Mean: amount("mean"), SD: amount("sd")}
		return policy.Window{Length: length, Covered: rapid.Float64Range(0, length).Draw(t, "covered"), Arrivals: amount("arrivals"), Service: s, Sojourn: s}
	}
	memory := func() policy.Memory {
		m := policy.Memory{}
		for _, key := range []string{"at0", "wish0", "stepped"} {
			if rapid.Bool().Draw(t, key) {
				m[key] = amount(key) + 1e9
			}
		}
		return m
	}
	at := time.Unix(1_000_000_000, 0).Add(time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "at"))).UTC()
	specs := []string{"static:n=7", "staffing", "staffing:down=5", "threshold", "reactive-average", "reactive-maximum", "no such law"}
	return controller.Inputs{
		Observation: policy.Observation{Version: policy.ObservationVersion, Farm: "f", At: at, Age: maybe(t, "age", 10), Interval: 2, Deadline: amount("deadline"), Target: 0.95,
			Slots: 1 + count("slots"), Min: count("min"), Max: count("max"), Desired: count("desired"), Ready: count("ready"),
			Waiting: maybe(t, "waiting", 500), Running: maybe(t, "running", 30), OldestWait: maybe(t, "oldest", 60), Overdue: maybe(t, "overdue", 3), Service: maybe(t, "service", 5),
			StartupLag: maybe(t, "lag", 9), NextDue: maybe(t, "due", 9), Busy: maybe(t, "busy", 1), CPU: policy.Unknown, Last: window(2), Short: window(10), Long: window(120),
			Level: policy.Level{Rate: amount("rate"), Age: amount("age of the level")}},
		Mode:     rapid.SampledFrom([]controller.Mode{controller.Act, controller.Shadow, controller.DryRun, controller.Paused}).Draw(t, "mode"),
		Policy:   rapid.SampledFrom(specs).Draw(t, "policy"),
		Fallback: rapid.SampledFrom(specs).Draw(t, "fallback"),
		Memory:   controller.Memories{Policy: memory(), Rule: memory()},
		Guard:    guard.Settings{Budget: rapid.SampledFrom([]float64{0, 10}).Draw(t, "budget"), Learned: rapid.Bool().Draw(t, "learned")},
		State:    guard.State{Version: 1, At: at.Add(-2 * time.Second), Steady: amount("steady"), Spent: rapid.Float64Range(0, 20).Draw(t, "spent"), Day: at.Truncate(24 * time.Hour), Used: 1e3 * amount("used")},
		Busy:     rapid.IntRange(0, 5).Draw(t, "busy call") == 0,
	}
}

// The same inputs give the same verdict, bit for bit, also after they went through
// a receipt, and are not touched. What is not done is not paid; whatever is done
// follows the wish of who decides.
func TestDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs(t)
		at := in.Observation.At
		raw, err := json.Marshal(controller.Receipt{Inputs: in, Verdict: controller.Decide(in)})
		if err != nil {
			t.Fatal(err)
		}
		v := controller.Decide(in)
		var kept controller.Receipt
		if err := json.Unmarshal(raw, &kept); err != nil {
			t.Fatal(err)
		}
		if err := kept.Replay(); err != nil {
			t.Fatal(err)
		}
		if again := controller.Decide(kept.Inputs); !reflect.DeepEqual(again, v) {
			t.Fatalf("%+v, then %+v", v, again)
		}
		if v.Outcome.Replicas < in.Observation.Desired && in.Observation.Stale() {
			t.Fatalf("scaled down in the dark: %+v", v.Outcome)
		}
		quiet := in.Mode == controller.Paused || in.Mode == controller.DryRun || in.Busy
		if v.Next.At != at || v.Next.Used < in.State.Used && at.Sub(v.Next.Day) > 2*time.Second {
			t.Fatalf("the guard forgot: %+v after %+v", v.Next, in.State)
		}
		if quiet && v.Next.Spent > in.State.Spent {
			t.Fatalf("%g tokens were spent, then %g, for nothing", in.State.Spent, v.Next.Spent)
		}
		if in.Mode == controller.Paused && (!v.Wish.Hold || !reflect.DeepEqual(v.After, in.Memory)) {
			t.Fatalf("decided in a pause: %+v", v)
		}
		if in.Policy == "no such law" && !quiet && v.Wish.Replicas != v.Rule.Replicas {
			t.Fatalf("wish %+v of no law, rule %+v", v.Wish, v.Rule)
		}
	})
}

// A receipt that was tampered with does not replay (P81).
func TestReplayTells(t *testing.T) {
	in := controller.Inputs{Mode: controller.Act, Policy: "static:n=3", Fallback: "static:n=2", Observation: policy.Observation{Interval: 2, Age: 1, Desired: 3, Max: 9, Long: policy.Window{Covered: 120}}}
	for what, spoil := range map[string]func(*controller.Receipt){
		"wish":    func(r *controller.Receipt) { r.Wish.Replicas++ },
		"rule":    func(r *controller.Receipt) { r.Rule.Reason += "." },
		"outcome": func(r *controller.Receipt) { r.Outcome.Hold = !r.Outcome.Hold },
		"inputs":  func(r *controller.Receipt) { r.Policy = "static:n=4" },
	} {
		r := controller.Receipt{Inputs: in, Verdict: controller.Decide(in)}
		if err := r.Replay(); err != nil {
			t.Fatal(err)
		}
		if spoil(&r); r.Replay() == nil {
			t.Errorf("another %s went unnoticed", what)
		}
	}
}
