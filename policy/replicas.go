package policy

import "fmt"

// Every autoscaler can be given a least and a most of replicas of its own, and whoever
// tunes one does: that a farm never falls below eight, or never wants more than nine,
// is often all that there is to gain. Within the farm's min and max.
var (
	floorParam = Param{Name: "floor", Doc: "least replicas", Default: 0, Min: 0, Max: most, Integer: true, Search: Range{1, 256, true, true}}
	capParam   = Param{Name: "cap", Doc: "most replicas; wins over floor", Default: most, Min: 0, Max: most, Integer: true, Search: Range{1, 256, true, true}}
)

// limits are these two.
type limits struct{ floor, cap int }

func newLimits(p Params) limits { return limits{int(p.Get("floor")), int(p.Get("cap"))} }

// bounds are the least and the most replicas that the law may ask for.
func (l limits) bounds(o *Observation) (lo, hi int) {
	if hi = o.Max; hi <= 0 {
		hi = most
	}
	hi = min(hi, l.cap)
	return min(max(l.floor, o.Min, 0), hi), hi
}

// clamp brings a count between them.
func (l limits) clamp(o *Observation, n int) int {
	lo, hi := l.bounds(o)
	return min(max(n, lo), hi)
}

// bounded says that a wish was brought to n, if it was.
func bounded(wish, n int) string {
	if wish == n {
		return ""
	}
	return fmt.Sprintf("; bounded to %d", n)
}
