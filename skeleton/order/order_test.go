package order_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"farmhand/skeleton/order"
)

var rule = order.Rule{AgeFactor: 10, NoDeadline: 60}

// naive is the order of service in its plainest form: every task by itself, a
// list that is searched from end to end.
type naive struct {
	tasks []single
	rings map[int][]string
}

type single struct {
	order.Entry[int]
	h order.Handle // of the entry it belongs to
}

func (s single) due() int64 {
	if s.Due == 0 {
		return math.MaxInt64
	}
	return s.Due
}

func (s single) age() int64 {
	if s.Due > s.Accepted {
		return s.Accepted + 10*(s.Due-s.Accepted)
	}
	return s.Accepted + 10*60
}

func byDue(a, b single) int {
	return cmp.Or(cmp.Compare(a.due(), b.due()), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Index, b.Index))
}

func byAge(a, b single) int {
	return cmp.Or(cmp.Compare(a.age(), b.age()), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Index, b.Index))
}

func (n *naive) push(e order.Entry[int], h order.Handle) {
	if !slices.Contains(n.rings[e.Class], e.Tenant) {
		n.rings[e.Class] = append(n.rings[e.Class], e.Tenant)
	}
	for i := range e.N {
		one := e
		one.Index, one.N = e.Index+i, 1
		n.tasks = append(n.tasks, single{one, h})
	}
}

// remove takes tasks out, and tenants without work off their rings.
func (n *naive) remove(gone func(single) bool) (count int) {
	before := len(n.tasks)
	n.tasks = slices.DeleteFunc(n.tasks, gone)
	for c := range n.rings {
		n.rings[c] = slices.DeleteFunc(n.rings[c], func(tenant string) bool {
			return !slices.ContainsFunc(n.tasks, func(t single) bool { return t.Class == c && t.Tenant == tenant })
		})
	}
	return before - len(n.tasks)
}

func (n *naive) take(now int64) single {
	next := slices.MinFunc(n.tasks, byAge)
	turn := next.age() > now
	if turn {
		c := slices.MinFunc(n.tasks, func(a, b single) int { return cmp.Compare(a.Class, b.Class) }).Class
		tenant := n.rings[c][0]
		mine := slices.DeleteFunc(slices.Clone(n.tasks), func(t single) bool { return t.Class != c || t.Tenant != tenant })
		next = slices.MinFunc(mine, byDue)
		n.rings[c] = append(n.rings[c][1:], tenant)
	}
	n.remove(func(t single) bool { return t.h == next.h && t.Index == next.Index })
	return next
}

// The queue serves every task when the naive one does.
func TestAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, n := order.New[int](rule), &naive{rings: map[int][]string{}}
		now, seq := int64(1000), int64(0)
		var out []single
		push := func(e order.Entry[int]) { n.push(e, q.Push(e)) }
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				seq++
				e := order.Entry[int]{Class: rapid.IntRange(0, 3).Draw(t, "class"), Tenant: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "tenant"),
					Accepted: now, Seq: seq, Index: rapid.IntRange(0, 3).Draw(t, "index"), N: rapid.IntRange(1, 9).Draw(t, "n"), Value: int(seq)}
				if rapid.Bool().Draw(t, "with due") {
					e.Due = now + int64(rapid.IntRange(-5, 40).Draw(t, "deadline"))
				}
				push(e)
			},
			"take": func(t *rapid.T) {
				for k := min(rapid.IntRange(1, 12).Draw(t, "n"), q.Len()); k > 0; {
					e, ok := q.Take(now, k)
					if !ok || e.N > k {
						t.Fatalf("%d tasks of %d: %+v %v", k, q.Len(), e, ok)
					}
					k -= e.N
					for i := range e.N {
						want := n.take(now)
						if e.Seq != want.Seq || e.Index+i != want.Index || e.Value != want.Value || e.Tenant != want.Tenant || e.Class != want.Class {
							t.Fatalf("took %d/%d of %+v, want %+v", e.Index, i, e, want.Entry)
						}
						out = append(out, want)
					}
				}
			},
			"return": func(t *rapid.T) {
				if len(out) > 0 {
					i := rapid.IntRange(0, len(out)-1).Draw(t, "which")
					push(out[i].Entry)
					out = slices.Delete(out, i, i+1)
				}
			},
			"remove": func(t *rapid.T) {
				if len(n.tasks) > 0 {
					h := rapid.SampledFrom(n.tasks).Draw(t, "task").h
					if e, gone := q.Remove(h), n.remove(func(t single) bool { return t.h == h }); e.N != gone {
						t.Fatalf("removed %d tasks of %d", e.N, gone)
					}
				}
			},
			"wait": func(t *rapid.T) { now += int64(rapid.IntRange(1, 300).Draw(t, "for")) },
			"": func(t *rapid.T) {
				if err := q.Check(); err != nil || q.Len() != len(n.tasks) {
					t.Fatalf("%d tasks of %d: %v", q.Len(), len(n.tasks), err)
				}
			},
		})
	})
}

// Among many tenants, nobody is served twice before everybody was once.
func TestTurns(t *testing.T) {
	q := order.New[int](rule)
	const tenants, each = 10_000, 3
	for i := range tenants {
		q.Push(order.Entry[int]{Tenant: fmt.Sprint(i), Seq: int64(i), N: each, Value: i})
	}
	for k := range tenants * each {
		if e, ok := q.Take(0, 100); !ok || e.Value != k%tenants || e.N != 1 {
			t.Fatalf("turn %d: %+v", k, e)
		}
	}
	if _, ok := q.Take(0, 1); ok || q.Len() != 0 || q.Entries() != 0 || q.Tenants(0) != 0 {
		t.Error("something is left")
	}
}

// A queue that has its size allocates nothing.
func TestNoAllocation(t *testing.T) {
	q := order.New[int](rule)
	seq := int64(0)
	step := func() {
		for i := range 50 {
			seq++
			q.Push(order.Entry[int]{Class: i % 3, Tenant: "t", Due: seq + 100, Accepted: seq, Seq: seq, N: 2})
		}
		for left := 100; left > 0; {
			e, _ := q.Take(seq, left)
			left -= e.N
		}
	}
	step()
	if n := testing.AllocsPerRun(100, step); n > 0 {
		t.Errorf("%v allocations for 100 tasks", n)
	}
}

func BenchmarkQueue(b *testing.B) {
	for _, waiting := range []int{1, 1000, 1_000_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			q := order.New[int](rule)
			for i := range waiting {
				q.Push(order.Entry[int]{Class: i % 10, Tenant: fmt.Sprint(i % 100), Due: int64(i%977) + 1, Seq: int64(i), N: 1})
			}
			b.ReportAllocs()
			for b.Loop() {
				e, _ := q.Take(math.MinInt64, 1)
				q.Push(e)
			}
		})
	}
}
