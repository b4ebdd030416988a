package jobapi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A store that does not answer holds nobody for long: one asks, the others say
// what was known, and a failure is remembered for some seconds.
func TestDurabilityDoesNotHoldAnybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, dead := 0, false
		d := durability{now: time.Now, read: func(ctx context.Context) (string, error) {
			asked++
			if dead {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "disk", nil
		}}
		all := func() (answers map[string]int, took time.Duration) {
			answers = map[string]int{}
			begin := time.Now()
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					v := d.get(t.Context())
					mu.Lock()
					defer mu.Unlock()
					answers[v]++
				})
			}
			wg.Wait()
			return answers, time.Since(begin)
		}
		if got, took := all(); got["disk"] != 10 || asked != 1 || took != 0 {
			t.Errorf("%v after %s, asked %d times", got, took, asked)
		}
		dead = true
		time.Sleep(9 * time.Second) // of the bubble's clock
		if got, _ := all(); got["disk"] != 10 || asked != 1 {
			t.Errorf("%v, asked %d times", got, asked)
		}
		time.Sleep(time.Second)
		if got, took := all(); got["disk"] != 9 || got["unknown"] != 1 || asked != 2 || took != durabilityTime {
			t.Errorf("%v after %s, asked %d times", got, took, asked)
		}
		if got, took := all(); got["unknown"] != 10 || asked != 2 || took != 0 {
			t.Errorf("%v after %s, asked %d times", got, took, asked)
		}
		dead = false
		time.Sleep(durabilityFails)
		if got, _ := all(); got["disk"]+got["unknown"] != 10 || asked != 3 || d.get(t.Context()) != "disk" {
			t.Errorf("%v, asked %d times", got, asked)
		}
	})
}

// Who comes first waits, but not longer than the store may take; one that gave
// up takes nothing away from the others.
func TestDurabilityAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := durability{now: time.Now, read: func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", errors.New("away")
		}}
		gone, cancel := context.WithCancel(t.Context())
		var first, second string
		var wg sync.WaitGroup
		wg.Go(func() { first = d.get(gone) })
		synctest.Wait()
		wg.Go(func() { second = d.get(t.Context()) })
		synctest.Wait()
		cancel()
		begin := time.Now()
		wg.Wait()
		if first != "unknown" || second != "unknown" || time.Since(begin) != durabilityTime {
			t.Errorf("%q, %q after %s", first, second, time.Since(begin))
		}
	})
}
