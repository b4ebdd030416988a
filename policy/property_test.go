package policy_test

import (
	"encoding/json"
	"maps"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"farmhand/policy"
	"farmhand/policy/guard"
)

// Whatever a farm goes through, every law with any parameters that calibration may try
// wishes for something finite, always the same, with or without saying why; what the
// guard makes of it lies within the farm's bounds, and the memory can be stored.
func TestAnyFarm(t *testing.T) {
	for _, law := range policy.Laws() {
		t.Run(law.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { live(t, law.Name) })
		})
	}
}

func live(t *rapid.T, law string) {
	p := tuned(t, law)
	limits, state := guard.Settings{}, guard.State{}
	m := policy.Memory{}
	o := newborn(t)
	for range rapid.IntRange(1, 40).Draw(t, "decisions") {
		pass(t, &o)
		again, memory := restored(t, o, m)
		d := p.Decide(&o, m)
		if d2 := p.Decide(&again, memory); d2 != d || !maps.Equal(m, memory) {
			t.Fatalf("%s: %+v, replayed %+v", p.Name(), d, d2)
		}
		if d.Replicas < 0 || d.Replicas > 1_000_000 || d.Reason == "" {
			t.Fatalf("%s: %+v", p.Name(), d)
		}
		for key, x := range m {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("%s remembers %s = %g", p.Name(), key, x)
			}
		}
		if o.Stale() && !d.Hold && law != "static" {
			t.Fatalf("%s does not hold on stale signals: %+v", p.Name(), d)
		}
		var out guard.Outcome
		out, state = limits.Apply(&o, d, d, state)
		if !out.Hold && (out.Replicas < o.Min || out.Replicas > o.Max) {
			t.Fatalf("%s: %+v of %+v", p.Name(), out, d)
		}
		o.Desired = out.Replicas
	}
}

// tuned draws parameters as calibration does.
func tuned(t *rapid.T, law string) policy.Policy {
	free, err := policy.Tunables(law)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float64, len(free))
	for i, f := range free {
		values[i] = rapid.Float64Range(f.Min, f.Max).Draw(t, f.Name)
	}
	spec, err := policy.Tune(law, values)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newborn is a farm of any kind that nothing is known of.
func newborn(t *rapid.T) policy.Observation {
	o := policy.Observation{
		Version: policy.ObservationVersion, Farm: "any", At: time.Unix(1_800_000_000, 0).UTC(),
		Interval: rapid.Float64Range(1, 60).Draw(t, "interval"),
		Deadline: rapid.SampledFrom([]float64{0, 0.01, 0.15, 3, 3600}).Draw(t, "deadline"),
		Target:   rapid.Float64Range(0, 1).Draw(t, "target"), Timeout: 55,
		Slots: rapid.IntRange(1, 50).Draw(t, "slots"),
		Min:   rapid.IntRange(0, 3).Draw(t, "min"),
		Max:   rapid.IntRange(3, 300).Draw(t, "max"),
	}
	o.Desired = rapid.IntRange(0, 400).Draw(t, "desired")
	for _, x := range []*policy.Maybe{&o.Draining, &o.CPU, &o.Memory, &o.Busy, &o.NextDue, &o.RunningAge, &o.PeakLoad} {
		*x = policy.Unknown
	}
	return o
}

// pass lets time go by, and all that is measured be anything.
func pass(t *rapid.T, o *policy.Observation) {
	o.At = o.At.Add(time.Duration(rapid.SampledFrom([]float64{1, 1, 1, 1.02, 0.98, 3, 100, -2}).Draw(t, "steps") * o.Interval * float64(time.Second)))
	maybe := func(name string, hi float64) policy.Maybe {
		if rapid.IntRange(0, 15).Draw(t, name+" known") == 0 {
			return policy.Unknown
		}
		return policy.Maybe(math.Floor(hi * math.Pow(rapid.Float64Range(0, 1).Draw(t, name), 3)))
	}
	o.Age = maybe("age", 2)
	o.Waiting, o.Running, o.OldestWait = maybe("waiting", 1e4), maybe("running", 1e3), maybe("oldest", 100)
	o.StartupLag = maybe("lag", 60)
	o.Service = maybe("service", 1e4) / 1000
	o.Ready = rapid.IntRange(0, o.Desired+1).Draw(t, "ready")
	o.Starting = max(0, o.Desired-o.Ready)
	short, long := policy.Windows(o.Interval)
	for i, w := range []*policy.Window{&o.Last, &o.Short, &o.Long} {
		length := []float64{o.Interval, short, long}[i]
		n := float64(maybe("arrivals", 1e3*length).Or(0))
		*w = policy.Window{Length: length, Covered: length * float64(rapid.IntRange(0, 2).Draw(t, "covered")) / 2}
		if w.Covered > 0 {
			mean := o.Service.Or(0)
			w.Arrivals, w.Starts, w.Done, w.Decided = n, n, n, n
			w.Service = policy.Stats{N: n, Mean: mean, SD: mean / 2, Max: 3 * mean}
			w.Sojourn = w.Service
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "change") == 0 {
		o.Past = append([]policy.Level{o.Level}, o.Past...)[:min(len(o.Past)+1, policy.Levels)]
		o.Level = policy.Level{Rate: float64(maybe("rate", 1e4).Or(0))}
	}
	o.Level.Age += o.Interval
}

// restored is what a receipt would give back.
func restored(t *rapid.T, o policy.Observation, m policy.Memory) (o2 policy.Observation, m2 policy.Memory) {
	stored, err := json.Marshal([]any{o, m})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stored, &[]any{&o2, &m2}); err != nil {
		t.Fatal(err)
	}
	return o2, m2
}

// Reasons are all that a quiet caller goes without.
func TestQuietWishesTheSame(t *testing.T) {
	for _, law := range policy.Laws() {
		t.Run(law.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p, o := tuned(t, law.Name), newborn(t)
				m, m2 := policy.Memory{}, policy.Memory{}
				for range rapid.IntRange(1, 10).Draw(t, "decisions") {
					pass(t, &o)
					d := p.Decide(&o, m)
					quiet := o
					quiet.Quiet = true
					d2 := p.Decide(&quiet, m2)
					if !d2.Hold && d2.Reason != "" {
						t.Fatalf("%s says %q", p.Name(), d2.Reason)
					}
					if d.Replicas != d2.Replicas || d.Hold != d2.Hold || !maps.Equal(m, m2) {
						t.Fatalf("%s: %+v, quiet %+v", p.Name(), d, d2)
					}
					o.Desired = min(max(d.Replicas, o.Min), o.Max)
				}
			})
		})
	}
}
