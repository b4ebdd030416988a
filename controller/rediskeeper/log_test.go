package rediskeeper_test

import (
	"fmt"
	"testing"

	"farmhand/controller"
	"farmhand/controller/rediskeeper"
)

// The newest receipts of each farm are kept, and come newest first.
func TestLog(t *testing.T) {
	both(t, func(b *bench) {
		log := rediskeeper.Log{Store: b.keep}
		const n, most = 2100, 2000
		var entries []controller.Entry
		for i := range n {
			entries = append(entries, controller.Entry{Farm: "f", Data: fmt.Append(nil, "f", i)})
		}
		entries = append(entries, controller.Entry{Farm: "g", Data: []byte("g")})
		if err := log.Append(b.Context(), entries); err != nil {
			b.Fatal(err)
		}
		if err := log.Append(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		for farm, want := range map[string][]string{"f": {"f2099", "f2098", "f2097"}, "g": {"g"}, "h": nil} {
			list, err := log.Tail(b.Context(), farm, 3)
			if err != nil || len(list) != len(want) {
				b.Fatalf("%s: %s, %v", farm, list, err)
			}
			for i, raw := range list {
				b.is(farm, string(raw), want[i])
			}
		}
		if list, err := log.Tail(b.Context(), "f", n); err != nil || len(list) != most || string(list[most-1]) != "f100" {
			b.Errorf("%d are kept, %v", len(list), err)
		}
	})
}
