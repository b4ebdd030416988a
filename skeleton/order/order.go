// Package order is the order in which a farm serves waiting tasks. The live
// ledger and the simulator share it.
//
//   - What has waited AgeFactor times its own deadline comes first, whatever its
//     class: the earliest such instant first.
//   - Then classes, strictly: class 0 before class 1.
//   - Inside a class the tenants that have waiting work take turns, one task a
//     turn. A tenant whose queue was empty joins at the tail of the ring.
//   - Inside a tenant by due (none: last), then by arrival, then by index.
//
// A queue holds runs of tasks rather than tasks, so that a job of a million
// equal tasks is one entry. It has no clock: times are numbers of the caller's
// unit and now is an argument. It is deterministic, and allocates only to grow.
package order

import "math"

// Entry is a run of waiting tasks that differ only in their index.
type Entry[V any] struct {
	Class    int
	Tenant   string
	Due      int64 // 0 = none
	Accepted int64
	Seq      int64 // arrival: entries accepted later have a larger one
	Index    int   // of the first task, among those of the same Seq
	N        int   // tasks left
	Value    V     // the caller's
}

// Handle names an entry in its queue until the entry is used up or removed. The
// zero Handle names none.
type Handle int32

// Rule is what Queue needs to know of ageing.
type Rule struct {
	AgeFactor  int64 // how many deadlines make a task old
	NoDeadline int64 // the deadline of what has no due
}

// Queue holds waiting entries. Make one with New; it is not safe for concurrent
// use.
type Queue[V any] struct {
	rule    Rule
	items   []item[V] // by Handle; items[0] stands for none
	free    []Handle
	age     []node // heap of all entries by ageing instant
	classes []class
	spare   []*line // empty lines to use again
	tasks   int
}

type item[V any] struct {
	Entry[V]
	line *line
	pos  [2]int32 // in the heap of its line, in the heap by age
}

// Places of an item.
const (
	byDue = iota
	byAge
)

// New returns an empty queue.
func New[V any](r Rule) *Queue[V] {
	return &Queue[V]{rule: r, items: make([]item[V], 1)}
}

// Len returns the number of waiting tasks.
func (q *Queue[V]) Len() int { return q.tasks }

// Entries returns the number of entries.
func (q *Queue[V]) Entries() int { return len(q.age) }

// Tenants returns how many tenants of a class have waiting work.
func (q *Queue[V]) Tenants(class int) int {
	if class < 0 || class >= len(q.classes) {
		return 0
	}
	return len(q.classes[class].lines)
}

// Ageing returns the instant from which an entry is served before all classes.
func (r Rule) Ageing(accepted, due int64) int64 {
	deadline := due - accepted
	if due == 0 || deadline <= 0 {
		deadline = r.NoDeadline
	}
	return accepted + r.AgeFactor*deadline
}

// Push makes an entry wait. An entry that was taken and returns with its old
// Due, Seq and Index stands at its old place again. It panics on an entry
// without tasks and on a negative class.
func (q *Queue[V]) Push(e Entry[V]) Handle {
	if e.N <= 0 || e.Class < 0 {
		panic("order: an entry needs tasks and a class from 0")
	}
	h := q.alloc()
	l := q.line(e.Class, e.Tenant)
	it := &q.items[h]
	it.Entry, it.line = e, l
	due := e.Due
	if due == 0 {
		due = math.MaxInt64
	}
	q.insert(&l.heap, byDue, node{due, e.Seq, e.Index, h})
	q.insert(&q.age, byAge, node{q.rule.Ageing(e.Accepted, e.Due), e.Seq, e.Index, h})
	q.tasks += e.N
	return h
}

// Take serves up to n tasks, all of one entry: it returns that entry with Index
// at the first of them and N telling how many. It reports false if nothing
// waits. Calling it until n tasks are served gives them in the order of service.
func (q *Queue[V]) Take(now int64, n int) (e Entry[V], ok bool) {
	if n <= 0 || q.tasks == 0 {
		return e, false
	}
	if top := q.age[0]; top.key <= now {
		return q.serve(top.h, n), true // without turning the ring
	}
	for c := range q.classes {
		l := q.classes[c].head
		if l == nil {
			continue
		}
		if l.next != l {
			n = 1
			q.classes[c].head = l.next
		}
		return q.serve(l.heap[0].h, n), true
	}
	panic("order: a waiting task in no class")
}

// serve takes up to n tasks off an entry: the first of its line, or the one that
// has aged the most.
func (q *Queue[V]) serve(h Handle, n int) Entry[V] {
	it := &q.items[h]
	n = min(n, it.N)
	e := it.Entry
	e.N = n
	q.tasks -= n
	it.N -= n
	it.Index += n
	if it.N == 0 {
		q.drop(h)
		return e
	}
	// Nothing else of this Seq can stand between the old index and the new one:
	// what came back has a smaller index than what never left.
	it.line.heap[it.pos[byDue]].index = it.Index
	q.age[it.pos[byAge]].index = it.Index
	return e
}

// Entry returns a waiting entry as it is now.
func (q *Queue[V]) Entry(h Handle) Entry[V] { return q.items[h].Entry }

// Remove takes an entry out of the queue and returns what was left of it.
func (q *Queue[V]) Remove(h Handle) Entry[V] {
	e := q.items[h].Entry
	q.tasks -= e.N
	q.drop(h)
	return e
}

// All calls fn with every waiting entry, in no particular order, until fn
// returns false.
func (q *Queue[V]) All(fn func(Handle, Entry[V]) bool) {
	for _, n := range q.age {
		if !fn(n.h, q.items[n.h].Entry) {
			return
		}
	}
}

func (q *Queue[V]) alloc() Handle {
	if n := len(q.free); n > 0 {
		h := q.free[n-1]
		q.free = q.free[:n-1]
		return h
	}
	q.items = append(q.items, item[V]{})
	return Handle(len(q.items) - 1)
}

func (q *Queue[V]) drop(h Handle) {
	it := &q.items[h]
	l := it.line
	q.delete(&l.heap, byDue, int(it.pos[byDue]))
	q.delete(&q.age, byAge, int(it.pos[byAge]))
	if len(l.heap) == 0 {
		q.retire(l)
	}
	*it = item[V]{}
	q.free = append(q.free, h)
}
