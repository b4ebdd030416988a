package sim

import (
	"math"
	"math/rand/v2"

	"farmhand/sim/workload"
)

// draws are the sources of randomness. What one policy does shall leave what the
// others meet as it is: start-ups are drawn in their order, and whether an attempt
// fails or how long a replica lives is a function of what it is, not of when.
type draws struct {
	startup  *rand.Rand
	platform *rand.Rand
	faults   *rand.Rand // back-off, victims, restarts
	balance  *rand.Rand
	salt     uint64

	uniform, jitter func() float64 // of faults and balance
}

func (d *draws) reset(seed uint64) {
	*d = draws{
		startup:  workload.Stream(seed, workload.StreamStartup),
		platform: workload.Stream(seed, workload.StreamPlatform),
		faults:   workload.Stream(seed, workload.StreamFaults),
		balance:  workload.Stream(seed, workload.StreamBalance),
	}
	d.salt = d.faults.Uint64()
	d.uniform, d.jitter = d.faults.Float64, d.balance.Float64
}

// chance is a number from [0, 1) that belongs to a pair, whatever was drawn
// before: the pair, scrambled by the finalizer of SplitMix64 (Steele, Lea and
// Flood, 2014).
func (d *draws) chance(i, j uint64) float64 {
	x := d.salt + i*0x9e3779b97f4a7c15 + j*0xd1b54a32d192ed03
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// draw is a time by a law; none, where there is no law.
func draw(l workload.Law, r *rand.Rand) float64 {
	if l == nil {
		return 0
	}
	if x := l.Draw(r); x > 0 { // neither negative nor NaN
		return x
	}
	return 0
}

// life is how long a replica lives that crashes at a rate, in its n-th life.
func (d *draws) life(number int32, n int32, rate float64) float64 {
	return -math.Log1p(-d.chance(uint64(uint32(number))|1<<40, uint64(n))) / rate
}
