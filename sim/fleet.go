package sim

import (
	"math/rand/v2"

	"farmhand/sim/workload"
)

// phase is where a replica is in its life.
type phase uint8

const (
	unused   phase = iota
	starting       // for the first time, or after a crash
	ready
	draining // it finishes what it has, and takes nothing more
	ending   // it has finished
)

// replica is one instance of the worker.
type replica struct {
	phase   phase
	busy    int32  // slots
	place   int32  // in fleet.free[busy], none = it is not there
	turn    int32  // in fleet.ready
	number  int32  // how many were started before it; negative: it was there at the beginning
	crashes int32  // so far
	seq     uint32 // of its readiness, or its end
	crash   uint32 // of its next crash
}

// fleet is the replicas that there are, but those unused. Among the ready ones it
// picks the least busy, or any.
type fleet struct {
	list  []replica
	spare []int32   // unused
	ready []int32   // serving
	free  [][]int32 // free[b]: of those the ones with b busy slots, and another one free
	least int       // free[b] is empty for all b below

	slots      int32
	random     bool // any, also a full one
	starting   int
	restarting int // of starting, after a crash
	leaving    int // draining or ending
}

func (f *fleet) reset(slots int, b workload.Balance) {
	f.list, f.spare, f.ready = f.list[:0], f.spare[:0], f.ready[:0]
	for len(f.free) < slots {
		f.free = append(f.free, nil)
	}
	for b := range f.free {
		f.free[b] = f.free[b][:0]
	}
	f.slots, f.least, f.random = int32(slots), 0, b == workload.RandomReplica
	f.starting, f.restarting, f.leaving = 0, 0, 0
}

// add begins a replica, which is starting.
func (f *fleet) add(number int32) int32 {
	i := int32(len(f.list))
	if n := len(f.spare); n > 0 {
		i, f.spare = f.spare[n-1], f.spare[:n-1]
	} else {
		f.list = append(f.list, replica{})
	}
	f.list[i] = replica{phase: starting, place: none, number: number}
	f.starting++
	return i
}

// drop makes a replica unused.
func (f *fleet) drop(i int32) {
	f.list[i] = replica{}
	f.spare = append(f.spare, i)
}

// join makes a starting replica ready.
func (f *fleet) join(i int32) {
	r := &f.list[i]
	f.unstart(r)
	r.phase, r.turn = ready, int32(len(f.ready))
	f.ready = append(f.ready, i)
	f.offer(i)
}

// unstart takes a replica out of the count of the starting ones.
func (f *fleet) unstart(r *replica) {
	f.starting--
	if r.crashes > 0 {
		f.restarting--
	}
}

// quit takes a replica out of the ready ones.
func (f *fleet) quit(i int32) {
	r := &f.list[i]
	last := f.ready[len(f.ready)-1]
	f.ready[r.turn], f.list[last].turn = last, r.turn
	f.ready = f.ready[:len(f.ready)-1]
	f.withdraw(i)
}

// offer enters a ready replica among those that have a free slot.
func (f *fleet) offer(i int32) {
	r := &f.list[i]
	if f.random || r.busy >= f.slots {
		return
	}
	list := &f.free[r.busy]
	r.place = int32(len(*list))
	*list = append(*list, i)
	f.least = min(f.least, int(r.busy))
}

func (f *fleet) withdraw(i int32) {
	r := &f.list[i]
	if r.place == none {
		return
	}
	list := f.free[r.busy]
	last := list[len(list)-1]
	list[r.place], f.list[last].place = last, r.place
	f.free[r.busy] = list[:len(list)-1]
	r.place = none
}

// book takes a slot of the replica that the platform sends a task to: the least
// busy, or, where it does not look, any. It returns none where that has no free slot.
func (f *fleet) book(random *rand.Rand) int32 {
	if f.random {
		if len(f.ready) == 0 {
			return none
		}
		i := f.ready[random.IntN(len(f.ready))]
		if f.list[i].busy >= f.slots {
			return none
		}
		f.list[i].busy++
		return i
	}
	for ; f.least < int(f.slots); f.least++ {
		list := f.free[f.least]
		if n := len(list) - 1; n >= 0 {
			i := list[n]
			f.free[f.least] = list[:n]
			r := &f.list[i]
			r.busy++
			r.place = none
			f.offer(i)
			return i
		}
	}
	return none
}

// unbook frees a slot.
func (f *fleet) unbook(i int32) {
	r := &f.list[i]
	if r.phase != ready {
		r.busy--
		return
	}
	f.withdraw(i)
	r.busy--
	f.offer(i)
}

// youngest is the starting replica that was begun last, none where none starts.
func (f *fleet) youngest() int32 {
	found := int32(none)
	for i := range f.list {
		if f.list[i].phase == starting && (found == none || f.list[i].number > f.list[found].number) {
			found = int32(i)
		}
	}
	return found
}

// idlest is the ready replica with the fewest busy slots, of those the youngest.
func (f *fleet) idlest() int32 {
	found := f.ready[0]
	for _, i := range f.ready[1:] {
		r, best := &f.list[i], &f.list[found]
		if r.busy < best.busy || r.busy == best.busy && r.number > best.number {
			found = i
		}
	}
	return found
}
