package dispatch_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/dispatch"
	"farmhand/skeleton/ledger"
)

// larder is a store of n tasks with bodies of so many bytes that Take does not
// deliver, which counts how often they are fetched.
func larder(n, size int) (s *store, fetched *int) {
	s = newStore(n, n, func(t *skeleton.Task) { t.Size = size })
	for _, r := range s.tasks {
		r.locator = "x"
	}
	fetched = new(int)
	s.body = func(l ledger.Lease) ([]byte, error) {
		*fetched++
		return make([]byte, l.Size), nil
	}
	return s, fetched
}

func budget(n int) func(c *dispatch.Config) { return func(c *dispatch.Config) { c.Bytes = n } }

// As many large bodies are held as the budget allows, and one that is larger than
// all of it is held alone.
func TestBytesBoundBodies(t *testing.T) {
	for name, c := range map[string]struct{ size, most int }{"small ones": {10, 3}, "as large as the budget": {35, 1}, "larger": {100, 1}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, fetched := larder(12, c.size)
				var mu sync.Mutex
				live, most := 0, 0
				d := start(t, s, func(ctx context.Context, _ skeleton.Task, body []byte) skeleton.Call {
					mu.Lock()
					live++
					most = max(most, live)
					mu.Unlock()
					defer func() {
						mu.Lock()
						live--
						mu.Unlock()
					}()
					if len(body) != c.size {
						t.Errorf("a body of %d bytes", len(body))
					}
					return work(ctx, time.Second)
				}, budget(35))
				after(time.Duration(12/c.most)*time.Second + time.Millisecond)
				if n := s.count(skeleton.Done); n != 12 || most != c.most || *fetched != 12 {
					t.Errorf("%d done, %d at once, %d fetched", n, most, *fetched)
				}
				stop(t, d)
			})
		})
	}
}

// Tasks that meet busy workers keep their bodies while these are in nobody's way:
// the oldest, which are offered first. Bodies are not fetched over and over.
func TestBytesOfParkedTasks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, fetched := larder(20, 10)
		var mu sync.Mutex
		open, order := false, []int(nil)
		d := start(t, s, func(_ context.Context, task skeleton.Task, _ []byte) skeleton.Call {
			mu.Lock()
			defer mu.Unlock()
			if !open {
				return full
			}
			order = append(order, task.Index)
			return okay
		}, budget(35))
		after(10 * time.Second)
		s.read(func() {
			if *fetched > 40 {
				t.Errorf("%d bodies fetched of 20 tasks while all workers are busy", *fetched)
			}
		})
		mu.Lock()
		open = true
		mu.Unlock()
		after(time.Second)
		if n := s.count(skeleton.Done); n != 20 || !slices.IsSorted(order) {
			t.Errorf("%d done, order %v", n, order)
		}
		stop(t, d)
	})
}

// Tasks that wait for room are given back at once when the dispatcher drains, and
// end with their job.
func TestBytesAndTheEnd(t *testing.T) {
	for name, cancel := range map[string]bool{"drain": false, "cancel": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, _ := larder(10, 10)
				d := start(t, s, takes(20*time.Second), budget(35))
				after(time.Second)
				if cancel {
					s.cancel()
				} else {
					d.Drain()
				}
				after(time.Millisecond)
				want := map[bool]int{false: 3, true: 0}[cancel]
				s.read(func() {
					if s.live() != want {
						t.Errorf("%d leases live on", s.live())
					}
				})
				stop(t, d)
				if n := s.count(skeleton.Done); n != want {
					t.Errorf("%d done", n)
				}
			})
		})
	}
}
