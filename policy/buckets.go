package policy

import (
	"math"
	"strconv"
)

// buckets are sums by time, the newest so many, in Memory: the window that Knative
// averages its metrics over. Time is counted in buckets here: a whole number.
//
// The average is over the buckets from the first written to now, at most all: what
// was not written in between counts as nothing, and so does the time since the last
// write, but that takes its buckets out of the divisor too. Silence as long as the
// window empties it. The plain average is floored to six digits behind the point, as in
// Knative v0.42; the weighted one weighs a bucket by (1 − c)^age·c, with c = max(0.2, 1 −
// 0.0001^(1/n)) for n buckets.
type buckets struct {
	n                  int      // how many
	sums               []string // names in Memory, at least n
	first, last, total string
}

// bucketsOf names at most n buckets.
func bucketsOf(name string, n int) buckets {
	b := buckets{n: n, first: name + "first", last: name + "last", total: name + "total"}
	for i := range n {
		b.sums = append(b.sums, name+strconv.Itoa(i))
	}
	return b
}

// of is the newest n of them; from 1 to all.
func (b buckets) of(n float64) buckets {
	b.n = int(clip(math.Ceil(n-1e-9), 1, float64(len(b.sums))))
	return b
}

// key is the name of a bucket.
func (b *buckets) key(at float64) string {
	return b.sums[int64(clip(at, 0, 1e15))%int64(b.n)]
}

// add adds a value to the bucket of a time that is not before the last.
func (b *buckets) add(m Memory, at, value float64) {
	last, ok := m[b.last]
	switch {
	case !ok || at-last >= float64(b.n) || at < last:
		for _, key := range b.sums {
			delete(m, key)
		}
		m[b.first], m[b.total] = at, 0
	default:
		for t := last + 1; t <= at; t++ {
			key := b.key(t)
			m[b.total] -= m[key]
			m[key] = 0
		}
	}
	m[b.last] = at
	m[b.key(at)] += value
	m[b.total] += value
}

// empty reports whether nothing was written for longer than the window.
func (b *buckets) empty(m Memory, now float64) bool {
	last, ok := m[b.last]
	return !ok || now-last > float64(b.n)
}

// span is how many buckets count at a time, and how many of the newest are missing.
func (b *buckets) span(m Memory, now float64) (n, silent float64) {
	silent = max(0, now-m[b.last])
	return min(m[b.last]-m[b.first]+1, float64(b.n)-silent), silent
}

// average is the plain average.
func (b *buckets) average(m Memory, now float64) float64 {
	n, silent := b.span(m, now)
	if b.empty(m, now) || n <= 0 {
		return 0
	}
	total := m[b.total]
	for t := m[b.last] + 1; t <= m[b.last]+silent; t++ {
		total -= m[b.key(t)]
	}
	return math.Floor(total/n*1e6) / 1e6
}

// weighted is the exponentially weighted average.
func (b *buckets) weighted(m Memory, now float64) float64 {
	n, silent := b.span(m, now)
	if b.empty(m, now) || n <= 0 {
		return 0
	}
	c := max(0.2, 1-math.Pow(0.0001, 1/float64(b.n)))
	weight, sum := c*math.Pow(1-c, silent), 0.0
	for t := m[b.last]; t > m[b.last]-n; t-- {
		sum += m[b.key(t)] * weight
		weight *= 1 - c
	}
	return sum
}
