package gate

import (
	"testing"
	"time"

	"farmhand/internal/redistest"
	"farmhand/registry"
	"farmhand/registry/redisregistry"
	"farmhand/telemetry"
	"farmhand/telemetry/redistelemetry"
)

// From telemetry as a controller keeps it, poisoned on its way, to the champion that
// stays: a burst of garbage, a gap, a clock that jumps an hour ahead and back.
func TestPoisonedTelemetryInRedis(t *testing.T) {
	rdb := redistest.Client(t, redistest.Start(t))
	store, reg := redistelemetry.New(rdb, nil), redisregistry.New(rdb, redisregistry.Limits{})
	list := day(t)
	now, err := rdb.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range moved(list, now.Sub(list[len(list)-1].At)) {
		switch {
		case i > 600 && i < 900: // a gap of ten minutes
			continue
		case i > 1200 && i < 1300:
			row.Arrivals, row.ServiceMean, row.Waiting = 1e9, 1e9, 1e9
		case i > 1800 && i < 2100:
			row.At = row.At.Add(time.Hour)
		}
		if err := store.Append(t.Context(), map[string]telemetry.Row{"f": row}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config(t, least, twenty)
	version, err := reg.Import(t.Context(), cfg.Challenger, registry.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Rows(t.Context(), "f", now.Add(-Window), now.Add(2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	periods, err := store.Periods(t.Context(), "f", now.Add(-Window), now)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Traffic, cfg.Notes = Traffic(kept, periods, cfg.Scenarios[0].Farm)
	t.Log(len(kept), len(cfg.Traffic), cfg.Notes)
	v := verdict(t, ran(t, cfg))
	if done, err := Settle(t.Context(), reg, "f", version, v); done || err != nil || v.Outcome != registry.Rejected {
		t.Errorf("%s, champion %v, %v", v.Outcome, done, err)
	}
	if champion, _, err := reg.Champion(t.Context(), "f"); champion != "" || err != nil {
		t.Errorf("the champion is %q, %v", champion, err)
	}
}
