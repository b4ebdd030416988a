package guard_test

import (
	"fmt"
	"time"

	"farmhand/policy"
	"farmhand/policy/guard"
)

func ExampleSettings_Apply() {
	obs := policy.Observation{
		At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Age: 1, Interval: 2,
		Min: 1, Max: 10, Desired: 4, Waiting: 300, Running: 4,
	}
	wish := policy.Decision{Replicas: 64, Reason: "300 tasks wait"}

	settings := guard.Settings{Budget: 100}
	out, state := settings.Apply(&obs, wish, wish, guard.State{})

	// The state is saved; then, as this is no hold, the platform is asked for 10.
	fmt.Println(out.Replicas, out.Hold, state.Spent)
	for _, l := range out.Limits {
		fmt.Printf("%s: %d → %d, %s\n", l.Name, l.From, l.To, l.Reason)
	}
	// Output:
	// 10 false 1
	// max: 64 → 10, 10 is the most
}
