package workload

import (
	"math"
	"math/rand/v2"
)

// The published benchmark of a task farm on OpenFaaS (Li et al., arXiv 2602.06555,
// and its authors' repository): 1,140 tasks in four phases of a minute, generated
// window by window. Its generator does two things otherwise than it says, and the
// published figures were made so:
//
//   - flat: the oscillation of phases three and four is never applied;
//   - compressed: a window in which nothing was drawn takes no time, and any other
//     takes the sum of its gaps, so that quiet phases are shorter and denser.

// Phases draws a fixed number of tasks per phase: a Poisson number per window,
// with mean remaining tasks / remaining windows, at most what remains; the last
// window has the rest. Repaired, the mean of a window follows its phase's
// oscillation, a window takes its time, and its tasks lie anywhere in it.
type Phases struct {
	Phases     []Phase
	Window     float64 // s
	Flat       bool
	Compressed bool
	Shuffled   bool // the phases come in any order
}

// Phase is a number of tasks over a time, at the relative rate
// 1 + Amplitude sin(2π Cycles t/Seconds).
type Phase struct {
	Tasks     int
	Seconds   float64
	Amplitude float64
	Cycles    float64
}

// Draw the instants.
func (p Phases) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []Change) {
	own := split(r)
	order := make([]int, len(p.Phases))
	for i := range order {
		order[i] = i
	}
	if p.Shuffled {
		order = own.Perm(len(order))
	}
	var changes []Change
	start := 0.0
	for _, i := range order {
		var until float64
		from := len(at)
		at, until = p.phase(r, p.Phases[i], start, at)
		changes = append(changes, p.changes(p.Phases[i], start, until)...)
		start = until
		for j := from; j < len(at); j++ {
			if at[j] >= horizon {
				return at[:j], before(changes, horizon)
			}
		}
	}
	return at, before(append(changes, Change{start, 0}), horizon)
}

// phase appends the tasks of one phase and says when it is over.
func (p Phases) phase(r *rand.Rand, f Phase, start float64, at []float64) ([]float64, float64) {
	windows := max(1, int(math.Round(f.Seconds/p.Window)))
	weights, sum := make([]float64, windows), 0.0
	for k := range weights {
		weights[k] = p.weight(f, (float64(k)+0.5)/float64(windows))
		sum += weights[k]
	}
	t, left := start, f.Tasks
	for k, w := range weights {
		n := left
		if k < windows-1 {
			n = min(left, poisson(r, float64(left)*w/sum))
		}
		left -= n
		sum -= w
		if p.Compressed {
			for range n {
				t += r.ExpFloat64() * p.Window / float64(n)
				at = append(at, t)
			}
			continue
		}
		at = uniform(r, n, t, p.Window, at)
		t = start + float64(k+1)*p.Window
	}
	return at, t
}

// weight is the relative rate at a share of a phase.
func (p Phases) weight(f Phase, share float64) float64 {
	if p.Flat {
		return 1
	}
	return 1 + f.Amplitude*math.Sin(2*math.Pi*f.Cycles*share)
}

// changes of the rate in a phase that lasted from start to until: one where it is
// flat, else one per stretch of the grid.
func (p Phases) changes(f Phase, start, until float64) []Change {
	length := until - start
	if length <= 0 {
		return nil
	}
	rate := float64(f.Tasks) / length
	if p.Flat || f.Amplitude == 0 {
		return []Change{{start, rate}}
	}
	var all []Change
	for i := 0; float64(i)*grid < length; i++ {
		t := float64(i) * grid
		all = append(all, Change{start + t, rate * p.weight(f, min(1, (t+grid/2)/length))})
	}
	return all
}

// before keeps the changes before the horizon.
func before(changes []Change, horizon float64) []Change {
	for i, c := range changes {
		if c.At >= horizon {
			return changes[:i]
		}
	}
	return changes
}

func (p Phases) String() string {
	var items list
	for _, f := range p.Phases {
		items = append(items, pairs("tasks", f.Tasks, "seconds", f.Seconds, "amplitude", f.Amplitude, "cycles", f.Cycles))
	}
	return flow("phases", "of", items, "window", p.Window,
		"flat", p.Flat, "compressed", p.Compressed, "shuffled", p.Shuffled)
}

// poisson draws a number by counting unit-rate arrivals: for small means.
func poisson(r *rand.Rand, mean float64) int {
	n := 0
	for t := r.ExpFloat64(); t < mean; t += r.ExpFloat64() {
		n++
	}
	return n
}

// PaperImage is the benchmark's service time: that of an image whose side was
// chosen for a time from Gamma(4, 0.375 s), between 512 and 4,096 pixels, rounded
// down to whole ones. A side of s pixels takes a s² + b.
type PaperImage struct{}

const (
	imageA     = 1.7099013205346125e-07 // s per square pixel, as fitted by its authors
	imageB     = 0.0016654777540409116  // s
	imageLeast = 512
	imageMost  = 4096
)

var imageGamma = Gamma{Shape: 4, Scale: 0.375}

func imageTime(side float64) float64 { return imageA*side*side + imageB }

// Draw from the law.
func (PaperImage) Draw(r *rand.Rand) float64 {
	x := min(max(imageGamma.Draw(r), imageTime(imageLeast)), imageTime(imageMost))
	side := math.Floor(math.Sqrt((x - imageB) / imageA))
	return imageTime(min(max(side, imageLeast), imageMost))
}

var imageMean = func() float64 {
	mean, last := 0.0, 0.0
	for side := float64(imageLeast); side < imageMost; side++ {
		p := imageCDF(imageTime(side + 1))
		mean, last = mean+imageTime(side)*(p-last), p
	}
	return mean + imageTime(imageMost)*(1-last)
}()

// imageCDF is the distribution function of Gamma(4, scale), an Erlang law.
func imageCDF(x float64) float64 {
	x /= imageGamma.Scale
	return 1 - math.Exp(-x)*(1+x+x*x/2+x*x*x/6)
}

// Mean of the law: the sum over all sides.
func (PaperImage) Mean() float64 { return imageMean }

func (PaperImage) String() string { return flow("paper-image") }
