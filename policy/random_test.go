package policy

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// Whatever an observation and a memory hold, a decision is a sane count, the same
// each time, and leaves the observation alone and the memory storable.
func TestLawsBearAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	policies := specs(t)
	for range 600 {
		o := wildObservation(r)
		before := bits(reflect.ValueOf(*o))
		for _, p := range policies {
			m := Memory{}
			if r.IntN(2) == 0 {
				for _, key := range []string{"stepped", "at0", "wish0", "at1", "wish1", "at7", "wish7"} {
					m[key] = wild(r)
				}
			}
			again := maps.Clone(m)
			d := p.Decide(o, m)
			if d.Replicas < 0 || d.Replicas > most || d.Reason == "" {
				t.Fatalf("%s: %+v for %+v", p.Name(), d, o)
			}
			if !slices.Equal(bits(reflect.ValueOf(*o)), before) {
				t.Fatalf("%s changed the observation", p.Name())
			}
			if d2 := p.Decide(o, again); d2 != d {
				t.Fatalf("%s: %+v, then %+v", p.Name(), d, d2)
			}
			if _, ok := p.(fixed); !ok && o.Stale() && !d.Hold {
				t.Fatalf("%s did not hold on stale signals: %+v", p.Name(), d)
			}
		}
	}
}

// A memory that began empty stays small and finite.
func TestMemoryIsStorable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range specs(t) {
		m := Memory{}
		for range 500 {
			p.Decide(wildObservation(r), m)
			if len(m) > 8*roomiest {
				t.Fatalf("%s remembers %d numbers", p.Name(), len(m))
			}
			if _, err := json.Marshal(m); err != nil {
				t.Fatalf("%s: %v: %v", p.Name(), err, m)
			}
		}
	}
}

// A decision from a stored observation and memory is the decision itself.
func TestReplay(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, p := range specs(t) {
		m := Memory{}
		for i := range 200 {
			o := farm(steady(100*r.Float64()), queue(float64(r.IntN(50))), replicas(r.IntN(20)))
			o.At = o.At.Add(time.Duration(i) * 2 * time.Second)
			stored, err := json.Marshal([]any{o, m})
			if err != nil {
				t.Fatal(err)
			}
			var o2 Observation
			var m2 Memory
			if err := json.Unmarshal(stored, &[]any{&o2, &m2}); err != nil {
				t.Fatal(err)
			}
			d := p.Decide(o, m)
			if d2 := p.Decide(&o2, m2); d2 != d || !maps.Equal(m, m2) {
				t.Fatalf("%s: %+v, replayed %+v", p.Name(), d, d2)
			}
		}
	}
}

func TestVectorIsFiniteAndBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	names := VectorNames()
	lo, hi := VectorBounds()
	for range 10_000 {
		o := wildObservation(r)
		for i, x := range o.Vector() {
			if !(x >= lo[i] && x <= hi[i]) {
				t.Fatalf("%s = %g, want %g…%g", names[i], x, lo[i], hi[i])
			}
		}
	}
}

// Time has no unit: a farm ten times slower looks the same.
func TestVectorHasNoUnit(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	number := func() float64 {
		if r.IntN(8) == 0 {
			return math.NaN()
		}
		return 20 * r.Float64()
	}
	names := VectorNames()
	for range 1000 {
		o := &Observation{}
		fill(reflect.ValueOf(o).Elem(), r, number, func() int64 { return r.Int64N(30) })
		want := o.Vector()
		for i, x := range slower(o, 10).Vector() {
			near(t, names[i], x, want[i], 1e-9)
		}
	}
}

// slower is the observation of the same farm with all times k times as long.
func slower(o *Observation, k float64) *Observation {
	s := *o
	for _, x := range []*Maybe{&s.Age, &s.StartupLag, &s.OldestWait, &s.NextDue, &s.RunningAge, &s.Service} {
		*x *= Maybe(k)
	}
	for _, x := range []*float64{&s.Interval, &s.Deadline, &s.Timeout} {
		*x *= k
	}
	for _, w := range []*Window{&s.Last, &s.Short, &s.Long} {
		w.Length, w.Covered = w.Length*k, w.Covered*k
		for _, q := range []*Stats{&w.Wait, &w.Service, &w.Sojourn} {
			*q = Stats{q.N, q.Mean * k, q.SD * k, q.P50 * k, q.P95 * k, q.P99 * k, q.Max * k}
		}
	}
	s.Past = append([]Level{s.Level}, s.Past...)
	for i, l := range s.Past {
		s.Past[i] = Level{l.Rate / k, l.Age * k, l.Load, l.Sojourn * k}
	}
	s.Level, s.Past = s.Past[0], s.Past[1:]
	return &s
}

// Nothing that reads as an observation makes a law fail.
func FuzzDecide(f *testing.F) {
	for _, o := range []*Observation{farm(), farm(steady(20)), farm(steady(20), rise(200), queue(300))} {
		b, err := json.Marshal(o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var o Observation
		if json.Unmarshal(b, &o) != nil {
			return
		}
		for _, law := range Laws() {
			m := Memory{}
			if d := make1(t, law.Name).Decide(&o, m); d.Replicas < 0 || d.Replicas > most {
				t.Errorf("%s: %+v", law.Name, d)
			}
			if _, err := json.Marshal(m); err != nil {
				t.Error(err)
			}
		}
		o.Vector()
	})
}
