package telemetry_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"farmhand/skeleton/signal"
	"farmhand/telemetry"
)

func hist(xs ...float64) *signal.Hist {
	var h signal.Hist
	for _, x := range xs {
		h.Add(x)
	}
	return &h
}

func TestPeriodsComeOutAsTheyWentIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOf(rapid.Float64Range(0, 1e6)).Draw(t, "times")
		start := telemetry.PeriodOf(time.Unix(rapid.Int64Range(-1e9, 1e10).Draw(t, "at"), 0))
		p := telemetry.Period{Start: start, Service: *hist(xs...)}
		got, err := telemetry.DecodePeriod(telemetry.EncodePeriod(p))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, got); d != "" {
			t.Error(d)
		}
	})
}

func TestBadPeriodsAreErrors(t *testing.T) {
	b := telemetry.EncodePeriod(telemetry.Period{Start: began, Service: *hist(0.01, 0.02, 0.04)})
	for i := range b {
		if _, err := telemetry.DecodePeriod(b[:i]); !errors.Is(err, telemetry.ErrDamaged) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	if _, err := telemetry.DecodePeriod(append(b, 0)); !errors.Is(err, telemetry.ErrDamaged) {
		t.Errorf("a byte too many: %v", err)
	}
	b[0]++
	if _, err := telemetry.DecodePeriod(b); !errors.Is(err, telemetry.ErrVersion) {
		t.Errorf("another version: %v", err)
	}
}

func FuzzDecodePeriod(f *testing.F) {
	f.Add(telemetry.EncodePeriod(telemetry.Period{Start: began, Service: *hist(0.01, 0.02, 0.04, math.Inf(1))}))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := telemetry.DecodePeriod(b)
		if err != nil {
			return
		}
		again, err := telemetry.DecodePeriod(telemetry.EncodePeriod(p))
		if err != nil || !cmp.Equal(p, again) {
			t.Errorf("%+v, then %+v, %v", p, again, err)
		}
		p.Service.Merge(hist(1)) // what was decoded can be merged
	})
}

func TestPeriodsAreGathered(t *testing.T) {
	var g telemetry.Gather
	at := began.Add(299 * time.Second)
	g.Add("a", began, hist(1))
	g.Add("a", at, hist(2))
	g.Add("a", at.Add(time.Second), hist(4))
	g.Add("b", at, hist())
	if got := g.Take(at); len(got) != 0 {
		t.Errorf("nothing has ended yet: %+v", got)
	}
	first := telemetry.Period{Start: began, Service: *hist(1, 2)}
	if d := cmp.Diff(map[string][]telemetry.Period{"a": {first}}, g.Take(at.Add(time.Second))); d != "" {
		t.Error(d)
	}
	g.Add("a", began, &first.Service) // it could not be kept
	rest := []telemetry.Period{first, {Start: began.Add(telemetry.Span), Service: *hist(4)}}
	if d := cmp.Diff(map[string][]telemetry.Period{"a": rest}, g.TakeAll()); d != "" {
		t.Error(d)
	}
	if got := g.TakeAll(); len(got) != 0 {
		t.Errorf("taken twice: %+v", got)
	}
}

func TestPeriodsOfOneStartAreOne(t *testing.T) {
	p := func(minute int, xs ...float64) telemetry.Period {
		return telemetry.Period{Start: began.Add(time.Duration(minute) * time.Minute), Service: *hist(xs...)}
	}
	got := telemetry.Join([]telemetry.Period{p(5, 1), p(0, 2), p(5, 3)})
	if d := cmp.Diff([]telemetry.Period{p(0, 2), p(5, 1, 3)}, got); d != "" {
		t.Error(d)
	}
}
