package fit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"farmhand/evaluate"
	"farmhand/sim/workload"
)

// blockSeconds is the length of a block: some bursts, and several times as long as
// anything that a policy remembers but the peak of 15 minutes.
const blockSeconds = 600

// blocks are arrivals that are like measured ones: stretches of about blockSeconds
// that begin anywhere in what was measured, one after the other (the moving block
// bootstrap; Künsch, Annals of Statistics 17, 1989). In each bin arrive as many as
// were measured there, at random instants.
type blocks struct {
	stretches [][]evaluate.Bin
	seconds   float64 // of all
	text      string
}

func newBlocks(list []*evaluate.Past) *blocks {
	b := &blocks{seconds: seconds(list)}
	h := sha256.New()
	for _, p := range list {
		b.stretches = append(b.stretches, p.Bins)
		for _, bin := range p.Bins {
			_ = binary.Write(h, binary.LittleEndian, []float64{bin.Seconds, bin.Arrivals}) // a hash takes all
		}
	}
	b.text = fmt.Sprintf("{blocks: {measured: %.0f, sha256: %q}}", b.seconds, hex.EncodeToString(h.Sum(nil)))
	return b
}

// String tells the arrivals apart by what was measured; no scenario file has them.
func (b *blocks) String() string { return b.text }

// Draw implements workload.Arrivals.
func (b *blocks) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []workload.Change) {
	var changes []workload.Change
	for now := 0.0; now < horizon; {
		bins, i := b.begin(r)
		for end := now + blockSeconds; i < len(bins) && now < min(end, horizon); i++ {
			from := len(at)
			for range whole(bins[i].Arrivals, r) {
				if t := now + bins[i].Seconds*r.Float64(); t < horizon {
					at = append(at, t)
				}
			}
			slices.Sort(at[from:])
			changes = append(changes, workload.Change{At: now, Rate: bins[i].Arrivals / bins[i].Seconds})
			now += bins[i].Seconds
		}
	}
	return at, changes
}

// begin a block at an instant that is drawn evenly of all that was measured.
func (b *blocks) begin(r *rand.Rand) (bins []evaluate.Bin, i int) {
	at := b.seconds * r.Float64()
	for _, bins = range b.stretches {
		for i = range bins {
			if at -= bins[i].Seconds; at < 0 {
				return bins, i
			}
		}
	}
	return bins, i // what rounding left over
}

// whole is x, or the number above it as often as makes x the mean.
func whole(x float64, r *rand.Rand) int {
	n := math.Floor(x)
	if r.Float64() < x-n {
		n++
	}
	return int(n)
}

// mixture draws from the laws of stretches, from each as often as it had tasks.
type mixture struct {
	laws []workload.Law
	upTo []float64 // share of the tasks, summed up
	mean float64
	text string
}

func newMixture(list []*evaluate.Past) workload.Law {
	m := &mixture{}
	all, sum := tasks(list), 0.0
	h := sha256.New()
	for _, p := range list {
		share := tasks([]*evaluate.Past{p}) / all
		sum += share
		m.laws, m.upTo, m.mean = append(m.laws, p.Service), append(m.upTo, sum), m.mean+share*p.Service.Mean()
		fmt.Fprintf(h, "%v %s\n", share, p.Service)
	}
	m.text = fmt.Sprintf("{mixture: {mean: %g, sha256: %q}}", m.mean, hex.EncodeToString(h.Sum(nil)))
	return m
}

// Draw implements workload.Law.
func (m *mixture) Draw(r *rand.Rand) float64 {
	i, _ := slices.BinarySearch(m.upTo, r.Float64())
	return m.laws[min(i, len(m.laws)-1)].Draw(r)
}

// Mean implements workload.Law.
func (m *mixture) Mean() float64 { return m.mean }

// String tells laws apart by what was measured; no scenario file has them.
func (m *mixture) String() string { return m.text }
