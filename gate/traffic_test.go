package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"farmhand/policy"
	"farmhand/registry"
	"farmhand/telemetry"
)

// day is telemetry that was measured, of two and a half hours.
func day(t testing.TB) []telemetry.Row { return rows(t, burst(t), 5*1800+60, "staffing") }

func TestTraffic(t *testing.T) {
	farm := burst(t).Farm
	list, notes := Traffic(day(t), nil, farm)
	if len(list) < enough || len(list) > stretches {
		t.Fatalf("%d stretches, %v", len(list), notes)
	}
	for _, p := range list {
		tasks := 0.0
		for _, b := range p.Bins {
			tasks += b.Arrivals
		}
		if s := p.Seconds(); s < 1700 || s > 1800 || tasks < 100_000 || math.Abs(p.Service.Mean()-0.04) > 0.002 || p.Farm.Target != farm.Target {
			t.Errorf("a stretch of %g s with %g tasks of %g s", s, tasks, p.Service.Mean())
		}
	}
	if list, notes := Traffic(nil, nil, farm); list != nil || len(notes) != 1 || !strings.Contains(notes[0], "unseen seeds alone") {
		t.Errorf("of nothing: %v, %v", list, notes)
	}
}

// poisons are what can be wrong with telemetry. What they leave is little or nothing.
func poisons(t testing.TB) map[string][]telemetry.Row {
	good := day(t)
	change := func(every int, edit func(r *telemetry.Row)) []telemetry.Row {
		list := slices.Clone(good)
		for i := range list {
			if i%every == 0 {
				edit(&list[i])
			}
		}
		return list
	}
	idle := change(1, func(r *telemetry.Row) { r.Arrivals, r.Done, r.Decided, r.Late = 0, 0, 0, 0 })
	trickle := change(1, func(r *telemetry.Row) { // consistent, and false: a task a second, each of a millisecond
		r.Arrivals, r.Done, r.Decided, r.Late, r.ServiceMean, r.ServiceSD = 2, 2, 2, 0, 0.001, 0
		r.Waiting, r.Running = 0, 0
	})
	return map[string][]telemetry.Row{
		"garbage burst":   change(3, func(r *telemetry.Row) { r.Arrivals, r.ServiceMean = 1e12, 1e9 }),
		"negative counts": change(3, func(r *telemetry.Row) { r.Arrivals, r.Waiting = -1e9, -5 }),
		"not numbers":     change(2, func(r *telemetry.Row) { r.Arrivals = policy.Maybe(math.Inf(1)); r.Done = policy.Unknown }),
		"lost arrivals":   change(2, func(r *telemetry.Row) { r.Arrivals = 0 }),
		"idle":            idle,
		"trickle":         trickle,
		"huge slots":      change(1, func(r *telemetry.Row) { r.Slots = 5000 }),
		"endless start":   change(1, func(r *telemetry.Row) { r.StartupLag = policy.Maybe(math.Inf(1)) }),
		"endless spread":  change(1, func(r *telemetry.Row) { r.ServiceSD = 1e200 }),
		"a gap":           slices.Concat(good[:300], good[2000:2400]),
		"clock jumps":     slices.Concat(moved(good[:900], 40*24*time.Hour), moved(good[900:1800], -40*24*time.Hour), good[1800:]),
		"time stands":     change(1, func(r *telemetry.Row) { r.At = good[0].At }),
	}
}

// Whatever telemetry says, a policy that the unseen seeds reject is not promoted, and
// nothing breaks.
func TestPoisonedTelemetryPromotesNothing(t *testing.T) {
	for name, list := range poisons(t) {
		t.Run(name, func(t *testing.T) {
			cfg := config(t, least, twenty)
			cfg.Seeds = cfg.Seeds[:3]
			cfg.Traffic, cfg.Notes = Traffic(list, nil, cfg.Scenarios[0].Farm)
			t.Log(len(cfg.Traffic), cfg.Notes)
			if v := verdict(t, ran(t, cfg)); v.Outcome != registry.Rejected {
				t.Errorf("%s", v.Outcome)
			}
		})
	}
}

// What cannot be is left out, and said.
func TestPoisonIsLeftOut(t *testing.T) {
	for name, want := range map[string]string{
		"garbage burst": "cannot be", "negative counts": "cannot be", "huge slots": "cannot be", "endless start": "cannot be", "endless spread": "cannot be", "lost arrivals": "do not add up", "idle": "fewer than 500 tasks",
		"a gap": "unseen seeds alone", "time stands": "shorter than",
	} {
		list, notes := Traffic(poisons(t)[name], nil, burst(t).Farm)
		if text := fmt.Sprint(notes); !strings.Contains(text, want) {
			t.Errorf("%s: %d stretches, %s: want %q", name, len(list), text, want)
		}
		for _, p := range list {
			for _, b := range p.Bins {
				if b.Seconds > 20 || b.Arrivals > 1e6 {
					t.Fatalf("%s: a bin of %g s with %g tasks", name, b.Seconds, b.Arrivals)
				}
			}
		}
	}
}

// Traffic that a policy serves badly stands in its way, though it wins the seeds.
func TestTrafficCanReject(t *testing.T) {
	cfg := config(t, asPeak, twenty)
	s := *burst(t)
	s.Farm.Target = 0.99
	cfg.Limits = DefaultLimits()
	cfg.Limits.TrafficLate = 0
	cfg.Traffic = traffic(t, rows(t, &s, 4*1800+60, "static:n=30"), s.Farm)
	v := verdict(t, ran(t, cfg))
	if v.Outcome != registry.Rejected || v.Checks[0].Outcome != registry.Promoted || v.Checks[2].Work != trafficOfFarm {
		t.Errorf("%s: %+v", v.Outcome, v.Checks)
	}
}
