package sim

import "math"

// key is a task and what belongs to it. Keys are in the order of their tasks, that
// is, of arrival.
type key uint64

func newKey(task, with int32) key { return key(task)<<32 | key(with) }

func (k key) task() int32 { return int32(k >> 32) }
func (k key) with() int32 { return int32(k & math.MaxUint32) }

// keys are a binary heap, the oldest task first.
type keys []key

func (h *keys) push(k key) {
	i := len(*h)
	*h = append(*h, k)
	list := *h
	for i > 0 && k < list[(i-1)/2] {
		list[i] = list[(i-1)/2]
		i = (i - 1) / 2
	}
	list[i] = k
}

// pop takes out the oldest; there is one.
func (h *keys) pop() key {
	list := *h
	top, last := list[0], list[len(list)-1]
	if list = list[:len(list)-1]; len(list) > 0 {
		list.put(last)
	}
	*h = list
	return top
}

// swap takes out the oldest and puts in a key that is younger.
func (h keys) swap(k key) key {
	top := h[0]
	h.put(k)
	return top
}

// put puts a key in the place of the oldest.
func (h keys) put(k key) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if k < h[child] {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = k
}

// popYoungest takes out the youngest by looking at all; there is one.
func (h *keys) popYoungest() key {
	list := *h
	at := 0
	for i, k := range list {
		if k > list[at] {
			at = i
		}
	}
	k := list[at]
	last := list[len(list)-1]
	list = list[:len(list)-1]
	if at < len(list) { // the last may be older than those above its new place
		for at > 0 && last < list[(at-1)/2] {
			list[at] = list[(at-1)/2]
			at = (at - 1) / 2
		}
		list[at] = last // below it nothing is older: the youngest had nothing below
	}
	*h = list
	return k
}
