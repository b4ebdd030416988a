package bench

import (
	"container/heap"

	"farmhand/sim/workload"
)

// heapFarm is the plain farm as one writes it first: events in a container/heap,
// servers that are counted, tasks that wait in a slice. It is what the simulator is
// compared with.
type heapFarm struct {
	tasks      *workload.Tasks
	deadline   float64
	free       int
	waiting    []int
	events     heapEvents
	done, late int
	wait       float64
}

type heapEvent struct {
	at      float64
	task    int
	arrival bool
}

// heapEvents implements heap.Interface. What leaves comes before what arrives.
type heapEvents []*heapEvent

func (h heapEvents) Len() int { return len(h) }
func (h heapEvents) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && !h[i].arrival && h[j].arrival
}
func (h heapEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heapEvents) Push(x any)   { *h = append(*h, x.(*heapEvent)) }
func (h *heapEvents) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}

// runHeapFarm plays the tasks on so many servers.
func runHeapFarm(tasks *workload.Tasks, servers int, deadline float64) heapFarm {
	f := heapFarm{tasks: tasks, deadline: deadline, free: servers}
	if len(tasks.At) > 0 {
		heap.Push(&f.events, &heapEvent{at: tasks.At[0], arrival: true})
	}
	for f.events.Len() > 0 {
		e := heap.Pop(&f.events).(*heapEvent)
		if e.at > tasks.Horizon {
			break
		}
		if e.arrival {
			f.waiting = append(f.waiting, e.task)
			if next := e.task + 1; next < len(tasks.At) {
				heap.Push(&f.events, &heapEvent{at: tasks.At[next], task: next, arrival: true})
			}
		} else {
			f.free++
			f.done++
			if e.at > tasks.At[e.task]+f.deadline {
				f.late++
			}
		}
		for f.free > 0 && len(f.waiting) > 0 {
			task := f.waiting[0]
			f.waiting = f.waiting[1:]
			f.free--
			f.wait += e.at - tasks.At[task]
			heap.Push(&f.events, &heapEvent{at: e.at + tasks.Service[task], task: task})
		}
	}
	return f
}
