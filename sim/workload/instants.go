package workload

import (
	"math"
	"math/rand/v2"
	"sort"
)

// Instants are tasks that arrive when they arrived, or are told to.
type Instants struct {
	At    []float64 // ascending
	Speed float64   // the clock runs so many times as fast; 0: 1
	trace *Trace    // nil: told
}

// Draw the instants. The changes are the counts of each stretch of the grid.
func (p *Instants) Draw(_ *rand.Rand, horizon float64, at []float64) ([]float64, []Change) {
	speed := p.speed()
	n := sort.Search(len(p.At), func(i int) bool { return p.At[i]/speed >= horizon })
	changes := make([]Change, int(math.Ceil(min(horizon, p.Length()+grid)/grid)))
	for i := range changes {
		changes[i].At = float64(i) * grid
	}
	for _, t := range p.At[:n] {
		at = append(at, t/speed)
		changes[int(t/speed/grid)].Rate += 1 / grid
	}
	return at, changes
}

// Length is when the last task arrives.
func (p *Instants) Length() float64 { return p.At[len(p.At)-1] / p.speed() }

func (p *Instants) speed() float64 {
	if p.Speed == 0 {
		return 1
	}
	return p.Speed
}

func (p *Instants) String() string {
	if p.trace == nil {
		return flow("instants", "at", p.At, "speed", p.speed())
	}
	return p.trace.flow("speed", p.speed())
}
