package order

// class is a ring of the tenants that have waiting work.
type class struct {
	lines map[string]*line
	head  *line // whose turn it is; nil = nobody waits
}

// line is the queue of one tenant in one class, a member of the class's ring
// while it is not empty.
type line struct {
	class      int
	tenant     string
	heap       []node
	prev, next *line
}

// keepSpare bounds the memory of lines that are kept to be used again.
const keepSpare = 1 << 10

// line finds the line of a tenant, or lets a new one join the ring at the tail.
func (q *Queue[V]) line(c int, tenant string) *line {
	for len(q.classes) <= c {
		q.classes = append(q.classes, class{lines: map[string]*line{}})
	}
	cl := &q.classes[c]
	if l := cl.lines[tenant]; l != nil {
		return l
	}
	var l *line
	if n := len(q.spare); n > 0 {
		l = q.spare[n-1]
		q.spare = q.spare[:n-1]
	} else {
		l = &line{}
	}
	l.class, l.tenant = c, tenant
	cl.lines[tenant] = l
	if cl.head == nil {
		cl.head, l.prev, l.next = l, l, l
		return l
	}
	l.next, l.prev = cl.head, cl.head.prev
	l.prev.next, l.next.prev = l, l
	return l
}

// retire takes an empty line out of its ring.
func (q *Queue[V]) retire(l *line) {
	cl := &q.classes[l.class]
	delete(cl.lines, l.tenant)
	switch {
	case l.next == l:
		cl.head = nil
	case cl.head == l:
		cl.head = l.next
	}
	l.prev.next, l.next.prev = l.next, l.prev
	l.prev, l.next, l.tenant = nil, nil, ""
	if len(q.spare) < keepSpare {
		q.spare = append(q.spare, l)
	}
}
