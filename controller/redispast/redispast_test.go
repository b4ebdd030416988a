package redispast_test

import (
	"fmt"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/controller/redispast"
	"farmhand/internal/redistest"
	"farmhand/policy"
	"farmhand/skeleton/signal"
	"farmhand/telemetry/redistelemetry"
)

// What is appended comes back newest first, and telemetry is made of it: a row
// of each decision, and the service times, once the log is closed.
func TestPast(t *testing.T) {
	rdb := redistest.Client(t, redistest.Start(t))
	past := redispast.New(rdb, nil)
	begin := time.Now().Add(-time.Minute).UTC()
	for i := range 30 {
		var entries []controller.Entry
		for _, farm := range []string{"f", "g"} {
			r := &controller.Receipt{Farm: farm, Replicas: i}
			r.Observation.At = begin.Add(time.Duration(i) * 2 * time.Second)
			r.Wish = policy.Decision{Replicas: i + 1}
			e := controller.Entry{Farm: farm, At: r.Observation.At, Data: fmt.Append(nil, farm, i), Receipt: r}
			e.Service.Add(0.25)
			entries = append(entries, e)
		}
		if err := past.Append(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
	}
	if err := past.Append(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if err := past.Close(t.Context()); err != nil {
		t.Error(err)
	}
	list, err := past.Tail(t.Context(), "g", 25)
	if err != nil || len(list) != 25 || string(list[0]) != "g29" || string(list[24]) != "g5" {
		t.Errorf("%d receipts, %v", len(list), err)
	}
	store := redistelemetry.New(rdb, nil)
	rows, err := store.Rows(t.Context(), "f", time.Time{}, time.Time{})
	if err != nil || len(rows) != 30 || rows[29].Wish != 30 || rows[29].Final != 29 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	periods, err := store.Periods(t.Context(), "f", time.Time{}, time.Time{})
	total := signal.Hist{}
	for _, p := range periods {
		total.Merge(&p.Service)
	}
	if err != nil || total.N != 30 || total.Max != 0.25 {
		t.Errorf("%d service times in %d periods, %v", total.N, len(periods), err)
	}
}
