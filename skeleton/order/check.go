package order

import "errors"

// Check looks over the whole queue and says what does not fit: for tests and
// audits.
func (q *Queue[V]) Check() error {
	tasks, entries := 0, 0
	for c := range q.classes {
		cl := &q.classes[c]
		lines := 0
		for l := cl.head; l != nil; {
			if len(l.heap) == 0 || l.class != c || cl.lines[l.tenant] != l {
				return errors.New("the ring holds a tenant without work")
			}
			if err := q.checkHeap(l.heap, byDue); err != nil {
				return err
			}
			for _, n := range l.heap {
				it := &q.items[n.h]
				if it.line != l || it.Tenant != l.tenant || it.Class != c {
					return errors.New("an entry stands in another tenant's line")
				}
				tasks += it.N
			}
			entries += len(l.heap)
			if lines++; l.next.prev != l || lines > len(cl.lines) {
				return errors.New("the ring is broken")
			}
			if l = l.next; l == cl.head {
				break
			}
		}
		if lines != len(cl.lines) {
			return errors.New("a tenant with work is not in the ring")
		}
	}
	if tasks != q.tasks || entries != len(q.age) || len(q.free)+entries+1 != len(q.items) {
		return errors.New("the count of tasks or entries is wrong")
	}
	return q.checkHeap(q.age, byAge)
}

func (q *Queue[V]) checkHeap(list []node, which int) error {
	for i := range list {
		n := &list[i]
		it := &q.items[n.h]
		if int(it.pos[which]) != i || n.seq != it.Seq || n.index != it.Index || it.N <= 0 {
			return errors.New("a heap and its entries differ")
		}
		if i > 0 && n.before(&list[(i-1)/arity]) {
			return errors.New("a heap is out of order")
		}
	}
	return nil
}
