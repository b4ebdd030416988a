package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What is planned happens in the order of its time, and at one instant in the order
// in which it was planned.
func TestAgendaIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a agenda
		a.reset()
		var planned []event // what is left, in order
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if next := a.next(); len(planned) > 0 && *next != planned[0] || len(planned) == 0 && next.id != nothing {
				t.Fatalf("next is %+v of %+v", *next, planned)
			}
			if len(planned) > 0 && rapid.IntRange(0, 2).Draw(t, "take") > 0 {
				a.take()
				planned = planned[1:]
				continue
			}
			at, id := float64(rapid.IntRange(0, 5).Draw(t, "at")), uint32(rapid.IntRange(0, 9).Draw(t, "id"))
			e := event{at, a.plan(at, id), id}
			i, _ := slices.BinarySearchFunc(planned, at, func(p event, at float64) int {
				if p.at <= at {
					return -1
				}
				return 1
			})
			planned = slices.Insert(planned, i, e)
		}
	})
}

// keys give back the oldest first, and the youngest where that is asked for.
func TestKeysAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h keys
		var want []key
		for i := range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 4).Draw(t, "what"); {
			case what == 0 && len(h) > 0:
				if k := h.pop(); k != want[0] {
					t.Fatalf("the oldest is %d, want %d", k.task(), want[0].task())
				}
				want = want[1:]
			case what == 1 && len(h) > 0:
				if k := h.popYoungest(); k != want[len(want)-1] {
					t.Fatalf("the youngest is %d, want %d", k.task(), want[len(want)-1].task())
				}
				want = want[:len(want)-1]
			case what == 2 && len(h) > 0:
				k := newKey(int32(2000+i), int32(i))
				if got := h.swap(k); got != want[0] {
					t.Fatalf("the oldest is %d, want %d", got.task(), want[0].task())
				}
				want = append(want[1:], k)
				slices.Sort(want)
			default:
				k := newKey(int32(rapid.IntRange(0, 1000).Draw(t, "task")), int32(i))
				h.push(k)
				want = append(want, k)
				slices.Sort(want)
			}
		}
		if k := newKey(7, 9); k.task() != 7 || k.with() != 9 {
			t.Fatal("a key forgets")
		}
	})
}
