package dispatch

import (
	"container/heap"
	"sync"
	"time"

	"farmhand/skeleton"
)

// turn is what a task in the waiting room gets.
type turn int

const (
	offer    turn = iota // try the workers again
	giveBack             // the window shrank: back to the queue
)

// waitingRoom is where tasks wait that met busy workers. Each brings a timer of
// 2 to 20 ms, but a timer lets the oldest task out, not the one that brought it:
// no task keeps hitting busy workers while younger ones pass (P69).
type waitingRoom struct {
	uniform func() float64

	mu      sync.Mutex
	waiting seats // guarded by mu
}

// seat is a task's place in the room.
type seat struct {
	a     *attempt
	out   chan turn
	index int
}

// wait returns the task's turn; also when the attempt's context ends.
func (w *waitingRoom) wait(a *attempt) turn {
	s := &seat{a: a, out: make(chan turn, 1)}
	w.mu.Lock()
	heap.Push(&w.waiting, s)
	w.mu.Unlock()
	time.AfterFunc(skeleton.BusyWait(w.uniform), w.release)
	select {
	case t := <-s.out:
		return t
	case <-a.ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		if s.index >= 0 {
			heap.Remove(&w.waiting, s.index)
		}
		return offer
	}
}

// release lets the oldest task out.
func (w *waitingRoom) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 {
		heap.Pop(&w.waiting).(*seat).out <- offer
	}
}

// releaseAll lets everybody out.
func (w *waitingRoom) releaseAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) > 0 {
		heap.Pop(&w.waiting).(*seat).out <- offer
	}
}

// evict sends up to n of the youngest tasks back to the queue.
func (w *waitingRoom) evict(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; n > 0 && len(w.waiting) > 0; n-- {
		youngest := w.waiting[0]
		for _, s := range w.waiting {
			if older(youngest, s) {
				youngest = s
			}
		}
		heap.Remove(&w.waiting, youngest.index)
		youngest.out <- giveBack
	}
}

// older reports whether x was accepted before y; ties go by place in the queue.
func older(x, y *seat) bool {
	if c := x.a.lease.Accepted.Compare(y.a.lease.Accepted); c != 0 {
		return c < 0
	}
	return x.a.lease.Ref < y.a.lease.Ref
}

// seats is a heap, oldest first.
type seats []*seat

func (s seats) Len() int           { return len(s) }
func (s seats) Less(i, j int) bool { return older(s[i], s[j]) }
func (s seats) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push implements heap.Interface.
func (s *seats) Push(x any) {
	seat := x.(*seat)
	seat.index = len(*s)
	*s = append(*s, seat)
}

// Pop implements heap.Interface.
func (s *seats) Pop() any {
	old := *s
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	last.index = -1
	return last
}
