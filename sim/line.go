package sim

import (
	"math"
	"slices"
	"strconv"

	"farmhand/sim/workload"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/order"
)

// line holds the tasks that wait. Where they differ in nothing that the order of
// service looks at, they are served as they arrived: the waiting ones are a range of
// the tasks, and a few that came back, which are all older. Else they stand in the
// queue of the live ledger.
type line struct {
	n    int
	head int  // first task of the range, which ends with what has arrived
	came keys // tasks that came back

	queue  *order.Queue[int32] // nil: none is needed
	spare  *order.Queue[int32] // empty, of an earlier run
	tasks  *workload.Tasks
	tenant []string
}

func (l *line) reset(t *workload.Tasks, ordered bool) {
	if l.queue != nil {
		l.spare = l.queue
		for l.spare.Len() > 0 {
			l.spare.Take(0, 1)
		}
	}
	l.n, l.head, l.came, l.queue, l.tasks = 0, 0, l.came[:0], nil, t
	if !ordered {
		return
	}
	if l.spare == nil {
		l.spare = order.New[int32](order.Rule{AgeFactor: ledger.AgeFactor, NoDeadline: ledger.NoDeadline.Nanoseconds()})
	}
	l.queue = l.spare
	tenants := 1
	if len(t.Tenant) > 0 {
		tenants += int(slices.Max(t.Tenant))
	}
	for i := len(l.tenant); i < tenants; i++ {
		l.tenant = append(l.tenant, strconv.Itoa(i))
	}
}

// nanos are the time of the queue.
func nanos(x float64) int64 { return int64(x * 1e9) }

// put lets a task wait that has arrived, or came back.
func (s *Sim) put(task int32, again bool) {
	l := &s.line
	l.n++
	if l.queue == nil {
		if again {
			l.came.push(newKey(task, 0))
		}
		return
	}
	e := order.Entry[int32]{Tenant: l.tenant[0], Accepted: nanos(s.at[task]), Seq: int64(task), N: 1, Value: task}
	if l.tasks.Class != nil {
		e.Class = int(l.tasks.Class[task])
	}
	if l.tasks.Tenant != nil {
		e.Tenant = l.tenant[l.tasks.Tenant[task]]
	}
	if due := s.due(task); !math.IsInf(due, 1) {
		e.Due = nanos(due)
	}
	l.queue.Push(e)
}

// pull is the task that is served next; there is one.
func (s *Sim) pull() int32 {
	l := &s.line
	l.n--
	switch {
	case l.queue != nil:
		e, _ := l.queue.Take(nanos(s.now), 1)
		return e.Value
	case len(l.came) > 0:
		return l.came.pop().task()
	}
	l.head++
	return int32(l.head - 1)
}

// waiting looks at the waiting tasks.
type waiting struct {
	oldest  float64 // arrival
	due     float64 // the first; +Inf: none has one
	overdue int
}

func (s *Sim) lookAtLine() waiting {
	l := &s.line
	w := waiting{oldest: s.now, due: math.Inf(1)}
	if l.n == 0 {
		return w
	}
	look := func(task int32) {
		due := s.due(task)
		w.oldest, w.due = min(w.oldest, s.at[task]), min(w.due, due)
		if due < s.now {
			w.overdue++
		}
	}
	if l.queue != nil || s.deadline != nil {
		l.all(s.arrived, look)
		return w
	}
	for _, k := range l.came {
		look(k.task())
	}
	if rest := s.at[l.head:s.arrived]; len(rest) > 0 { // due in the order in which they came
		w.oldest, w.due = min(w.oldest, rest[0]), min(w.due, rest[0]+s.patience)
		over, _ := slices.BinarySearchFunc(rest, s.now, func(at, now float64) int {
			if at+s.patience < now {
				return -1
			}
			return 1
		})
		w.overdue += over
	}
	return w
}

// all calls fn with every waiting task, in no particular order; arrived is how many
// have arrived.
func (l *line) all(arrived int, fn func(task int32)) {
	if l.queue != nil {
		l.queue.All(func(_ order.Handle, e order.Entry[int32]) bool { fn(e.Value); return true })
		return
	}
	for _, k := range l.came {
		fn(k.task())
	}
	for i := l.head; i < arrived; i++ {
		fn(int32(i))
	}
}
