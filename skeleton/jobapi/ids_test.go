package jobapi

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

// Ids are of the API's clock, and grow even where that goes back.
func TestIDs(t *testing.T) {
	now := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	start := now
	ids := newIDs(func() time.Time { return now })
	last := ""
	for i := range 3000 {
		if i%1000 == 999 {
			now = now.Add(-time.Hour)
		}
		id, err := ids.next("echo")
		if farm, ok := splitJob(id); err != nil || !ok || farm != "echo" || id <= last {
			t.Fatalf("%q after %q, %v", id, last, err)
		}
		last = id
	}
	if u := ulid.MustParse(last[len("echo~"):]); !ulid.Time(u.Time()).Equal(start) {
		t.Errorf("%s is of %s", last, ulid.Time(u.Time()))
	}
}
