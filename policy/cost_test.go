package policy

import (
	"testing"
	"time"
)

// course is a farm whose load rises and falls, as a simulator shows it: quietly, an
// observation every 2 s.
func course() []*Observation {
	var list []*Observation
	add := func(n int, change ...func(*Observation)) {
		for range n {
			o := farm(change...)
			o.Quiet, o.At = true, o.At.Add(time.Duration(2*len(list))*time.Second)
			list = append(list, o)
		}
	}
	add(30, steady(20), replicas(3))
	add(5, steady(20), rise(200), queue(100))
	add(20, steady(200), replicas(12))
	add(30, steady(20), rise(0), replicas(12))
	return list
}

// play shows a policy the course, again and again as time goes on.
func play(p Policy, list []*Observation, m Memory) func() {
	i := 0
	return func() {
		o := list[i%len(list)]
		p.Decide(o, m)
		o.At = o.At.Add(time.Duration(2*len(list)) * time.Second)
		i++
	}
}

// A simulator asks millions of times, so a decision that need not be explained makes no
// garbage.
func TestQuietDecisionsAllocateNothing(t *testing.T) {
	for _, law := range Laws() {
		step := play(make1(t, law.Name), course(), Memory{})
		for range 2000 { // until the memory has its size
			step()
		}
		if n := testing.AllocsPerRun(1000, step); n > 0 {
			t.Errorf("%s: %g allocations", law.Name, n)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, law := range Laws() {
		b.Run(law.Name, func(b *testing.B) {
			step := play(make1(b, law.Name), course(), Memory{})
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}
