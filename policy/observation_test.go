package policy

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What is stored comes back bit for bit, the unknown as the unknown.
func TestObservationRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	finite := func() float64 {
		for {
			if x := math.Float64frombits(r.Uint64()); !math.IsNaN(x) && !math.IsInf(x, 0) {
				return x
			}
		}
	}
	for range 300 {
		o := &Observation{Farm: "a.b"}
		fill(reflect.ValueOf(o).Elem(), r, finite, func() int64 { return int64(r.Uint64()) })
		if r.IntN(2) == 0 {
			for _, m := range []*Maybe{&o.Age, &o.Waiting, &o.NextDue, &o.Service, &o.Busy} {
				*m = Unknown
			}
		}
		first, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var back Observation
		if err := json.Unmarshal(first, &back); err != nil {
			t.Fatal(err)
		}
		if back.Farm != o.Farm || !slices.Equal(bits(reflect.ValueOf(back)), bits(reflect.ValueOf(*o))) {
			t.Fatalf("stored %s\nread %+v", first, back)
		}
		second, err := json.Marshal(back)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("stored again: %v %s", err, second)
		}
	}
}

func TestMaybe(t *testing.T) {
	b, err := json.Marshal([]Maybe{Unknown, Maybe(math.Inf(1)), 0, 1.5})
	if err != nil || string(b) != "[null,null,0,1.5]" {
		t.Errorf("%s, %v", b, err)
	}
	if Unknown.Known() || Maybe(math.Inf(-1)).Known() || !Maybe(0).Known() {
		t.Error("what is known is not")
	}
	near(t, "Or", Unknown.Or(7)+Maybe(1).Or(7), 8, 0)
	var m Maybe
	if err := json.Unmarshal([]byte(`"soon"`), &m); err == nil || !strings.Contains(err.Error(), "want a number or null") {
		t.Errorf("error %v", err)
	}
}

func TestStale(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Observation)
		want   bool
	}{
		{"fresh", func(*Observation) {}, false},
		{"never heard", func(o *Observation) { o.Age = Unknown }, true},
		{"three intervals", func(o *Observation) { o.Age = 6 }, false},
		{"more", func(o *Observation) { o.Age = 6.1 }, true},
		{"five seconds of a short interval", func(o *Observation) { o.Interval, o.Age = 1, 5 }, false},
		{"from the future", func(o *Observation) { o.Age = -1 }, true},
		{"no ledger", func(o *Observation) { o.Waiting, o.Running = Unknown, Unknown }, true},
	} {
		if got := farm(c.change).Stale(); got != c.want {
			t.Errorf("%s: stale = %v", c.name, got)
		}
	}
}

func TestWindow(t *testing.T) {
	w := Window{Length: 10, Covered: 8, Arrivals: 40, Decided: 20, Late: 1, Service: Stats{N: 40, Mean: 0.2, SD: 0.1}}
	near(t, "rate", float64(w.Rate()), 5, 0)
	near(t, "on time", float64(w.OnTime()), 0.95, 1e-15)
	near(t, "cv²", w.Service.CV2(), 0.25, 1e-15)
	o := farm(func(o *Observation) { o.Slots, o.Service = 2, 0.2 })
	near(t, "load", float64(o.Load(w)), 0.5, 1e-15)
	var none Window
	if none.Rate().Known() || none.OnTime().Known() || none.Service.CV2() != 0 || o.Load(none).Known() {
		t.Error("nothing was measured, and yet it is known")
	}
	for _, c := range [][3]float64{{1, 10, 120}, {2, 10, 120}, {8, 24, 160}, {60, 180, 900}} {
		short, long := Windows(c[0])
		near(t, "short window", short, c[1], 0)
		near(t, "long window", long, c[2], 0)
	}
}
