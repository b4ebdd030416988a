package order

// node is an entry in a heap, with the key it is sorted by.
type node struct {
	key   int64 // due or ageing instant
	seq   int64
	index int
	h     Handle
}

func (a *node) before(b *node) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	if a.seq != b.seq {
		return a.seq < b.seq
	}
	return a.index < b.index
}

// arity of the heaps: four children share cache lines, which makes a large heap
// faster than two would.
const arity = 4

// insert adds a node to a heap whose places the items remember in pos[which].
func (q *Queue[V]) insert(heap *[]node, which int, n node) {
	*heap = append(*heap, n)
	q.up(*heap, which, len(*heap)-1)
}

// delete takes out the node at place i.
func (q *Queue[V]) delete(heap *[]node, which, i int) {
	list := *heap
	last := len(list) - 1
	n := list[last]
	*heap = list[:last]
	if i == last {
		return
	}
	list[i] = n
	q.items[n.h].pos[which] = int32(i)
	if !q.down(list[:last], which, i) {
		q.up(list[:last], which, i)
	}
}

func (q *Queue[V]) up(list []node, which, i int) {
	n := list[i]
	for i > 0 {
		parent := (i - 1) / arity
		if !n.before(&list[parent]) {
			break
		}
		list[i] = list[parent]
		q.items[list[i].h].pos[which] = int32(i)
		i = parent
	}
	list[i] = n
	q.items[n.h].pos[which] = int32(i)
}

// down reports whether the node moved.
func (q *Queue[V]) down(list []node, which, i int) bool {
	n, from := list[i], i
	for {
		first := arity*i + 1
		if first >= len(list) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(list)); c++ {
			if list[c].before(&list[least]) {
				least = c
			}
		}
		if !list[least].before(&n) {
			break
		}
		list[i] = list[least]
		q.items[list[i].h].pos[which] = int32(i)
		i = least
	}
	list[i] = n
	q.items[n.h].pos[which] = int32(i)
	return i != from
}
