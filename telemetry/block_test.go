package telemetry_test

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"farmhand/policy"
	"farmhand/telemetry"
	"farmhand/telemetry/internal/farmday"
)

var began = time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)

// diff tells rows apart; unknown is like unknown.
func diff(a, b []telemetry.Row) string {
	same := cmp.Comparer(func(a, b policy.Maybe) bool { return a == b || !a.Known() && !b.Known() })
	return cmp.Diff(a, b, same, cmpopts.EquateEmpty())
}

// played are n rows of a farm.
func played(k farmday.Kind, n int) []telemetry.Row {
	f := farmday.New(k, 1, began)
	rows := make([]telemetry.Row, n)
	for i := range rows {
		o := f.Next()
		rows[i] = telemetry.RowOf(o, o.Desired+i%3-1, o.Desired)
	}
	return rows
}

func encode(t testing.TB, rows []telemetry.Row) []byte {
	t.Helper()
	b, err := telemetry.Encode(rows)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRowsComeOutAsTheyWentIn(t *testing.T) {
	for _, n := range []int{0, 1, 2, 150} {
		rows := played(farmday.Web, n)
		got, err := telemetry.Decode(encode(t, rows))
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(rows, got); d != "" {
			t.Error(d)
		}
	}
}

// Whatever numbers an observation holds, its row survives.
func TestAnyObservationHasARow(t *testing.T) {
	number := rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 100), rapid.SampledFrom([]float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300}))
	rapid.Check(t, func(t *rapid.T) {
		var rows []telemetry.Row
		for range rapid.IntRange(1, 20).Draw(t, "rows") {
			x := func() float64 { return number.Draw(t, "x") }
			m := func() policy.Maybe { return policy.Maybe(x()) }
			n := func() int { return rapid.Int().Draw(t, "n") }
			o := policy.Observation{At: time.UnixMicro(rapid.Int64().Draw(t, "at")), Desired: n(), Ready: n(), Slots: n(), Deadline: x(),
				StartupLag: m(), Waiting: m(), Running: m(), Delayed: m(), OldestWait: m(), Overdue: m(), CPU: m(), Busy: m(),
				Last: policy.Window{Length: x(), Covered: x(), Arrivals: x(), Starts: x(), Done: x(), Decided: x(), Late: x(), Failed: x(), Lost: x(),
					Busy: x(), Service: policy.Stats{N: x(), Mean: x(), SD: x()}, Sojourn: policy.Stats{N: x(), P95: x()}}}
			rows = append(rows, telemetry.RowOf(&o, n(), n()))
		}
		b, err := telemetry.Encode(rows)
		if err != nil {
			t.Fatal(err)
		}
		got, err := telemetry.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(rows, got); d != "" {
			t.Error(d)
		}
	})
}

func TestUnknownStaysUnknown(t *testing.T) {
	o := policy.Observation{At: began, Waiting: policy.Unknown, Running: 3, OldestWait: 0}
	r := telemetry.RowOf(&o, 1, 2)
	for what, m := range map[string]policy.Maybe{"arrivals": r.Arrivals, "busy answers": r.BusyAnswers, "service": r.ServiceMean,
		"sd": r.ServiceSD, "sojourn": r.SojournP95, "waiting": r.Waiting} {
		if m.Known() {
			t.Errorf("%s of nothing measured: %v", what, m)
		}
	}
	if r.Covered != 0 || r.Running != 3 || r.OldestWait != 0 || r.Wish != 1 || r.Final != 2 {
		t.Errorf("%+v", r)
	}
	o.Last = policy.Window{Length: 2, Covered: 2, Service: policy.Stats{N: 1, Mean: 0.04}}
	r = telemetry.RowOf(&o, 1, 2)
	if r.Arrivals != 0 || r.ServiceMean != 0.04 || r.ServiceSD.Known() || r.SojournP95.Known() {
		t.Errorf("%+v", r)
	}
}

func TestBadBlocksAreErrors(t *testing.T) {
	b := encode(t, played(farmday.Web, 20))
	other := bytes.Clone(b)
	other[len(other)/2] ^= 1
	for what, b := range map[string][]byte{"empty": nil, "cut off": b[:len(b)-3], "changed": other} {
		if _, err := telemetry.Decode(b); !errors.Is(err, telemetry.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := telemetry.Encode(make([]telemetry.Row, telemetry.MostRows+1)); err == nil {
		t.Error("a block without bound")
	}
}

func FuzzDecode(f *testing.F) {
	for _, n := range []int{0, 1, 150} {
		f.Add(encode(f, played(farmday.Web, n)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		rows, err := telemetry.Decode(b)
		if err != nil {
			return
		}
		again, err := telemetry.Decode(encode(t, rows))
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(rows, again); d != "" {
			t.Error(d)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	rows := played(farmday.Web, 150)
	b.ReportAllocs()
	for b.Loop() {
		encode(b, rows)
	}
}

func BenchmarkDecode(b *testing.B) {
	block := encode(b, played(farmday.Web, 150))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := telemetry.Decode(block); err != nil {
			b.Fatal(err)
		}
	}
}
