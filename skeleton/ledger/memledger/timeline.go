package memledger

import (
	"cmp"
	"slices"
)

// moment is something due at an instant. Ties go by seq, then index.
type moment[T any] struct {
	at, seq int64
	index   int32
	v       T
}

func (m moment[T]) compare(o moment[T]) int {
	return cmp.Or(cmp.Compare(m.at, o.at), cmp.Compare(m.seq, o.seq), cmp.Compare(m.index, o.index))
}

// timeline is a heap of moments. What is no longer true stays in it until its
// time; the reader checks.
type timeline[T any] struct{ list []moment[T] }

func (tl *timeline[T]) push(m moment[T]) {
	tl.list = append(tl.list, m)
	i := len(tl.list) - 1
	for i > 0 && tl.list[i].compare(tl.list[(i-1)/2]) < 0 {
		tl.list[i], tl.list[(i-1)/2] = tl.list[(i-1)/2], tl.list[i]
		i = (i - 1) / 2
	}
}

func (tl *timeline[T]) first() (m moment[T], ok bool) {
	if len(tl.list) == 0 {
		return m, false
	}
	return tl.list[0], true
}

func (tl *timeline[T]) pop() {
	last := len(tl.list) - 1
	tl.list[0] = tl.list[last]
	tl.list[last] = moment[T]{}
	tl.list = tl.list[:last]
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < last && tl.list[c].compare(tl.list[least]) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		tl.list[i], tl.list[least] = tl.list[least], tl.list[i]
		i = least
	}
}

// leases is the live leases by their end. A lease lasts equally long for all
// and time never goes back, so a list that is added to at its end is sorted.
// Renewed and settled leases leave stale members, which are skipped.
type leases struct {
	list  []moment[*task]
	start int // members before it are gone
}

func (t *task) holds(end int64) bool { return (t.state == leased || t.state == ghost) && t.at == end }

func (l *leases) add(end int64, t *task) {
	l.list = append(l.list, moment[*task]{at: end, seq: t.run.seq, index: t.index, v: t})
}

// trim forgets stale members: those at the front, and all of them when they are
// the most.
func (l *leases) trim(live int) {
	for l.start < len(l.list) && !l.list[l.start].v.holds(l.list[l.start].at) {
		l.list[l.start].v = nil
		l.start++
	}
	if l.start == len(l.list) {
		l.list, l.start = l.list[:0], 0
		return
	}
	if members := len(l.list) - l.start; l.start > len(l.list)/2+minTrim || members > 2*live+minTrim {
		kept := l.list[:0]
		for _, m := range l.list[l.start:] {
			if m.v.holds(m.at) {
				kept = append(kept, m)
			}
		}
		clear(l.list[len(kept):])
		l.list, l.start = kept, 0
	}
}

const minTrim = 4096

// over removes and returns up to limit leases that have ended, in the order of
// their ends, then of their tasks.
func (l *leases) over(now int64, limit int) []*task {
	from, n := l.start, 0
	for l.start < len(l.list) && l.list[l.start].at <= now && (n < limit || l.list[l.start].at == l.list[l.start-1].at) {
		if m := l.list[l.start]; m.v.holds(m.at) {
			n++
		}
		l.start++
	}
	ended := l.list[from:l.start]
	if len(ended) == 0 {
		return nil
	}
	slices.SortFunc(ended, moment[*task].compare)
	var tasks []*task
	for i, m := range ended {
		if len(tasks) == limit {
			l.start = from + i // the rest stays
			break
		}
		if m.v.holds(m.at) && (len(tasks) == 0 || tasks[len(tasks)-1] != m.v) {
			tasks = append(tasks, m.v)
		}
	}
	return tasks
}
