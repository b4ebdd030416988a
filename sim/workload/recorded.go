package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Recorded is the service time that a trace says: of each task, or of each bin in
// the mean, around which it is lognormal, or constant where cv is 0. A bin without
// any has the mean of the trace.
type Recorded struct {
	cv, scale float64
	durations []float64
	mean      float64
	bins      []LogNormal // per bin played, each of bin seconds
	bin       float64
	rates     []float64 // of the bins, and the highest
	peak      float64
	text      string
}

// NewRecorded makes the law for a replay or instants. A mean other than 0 scales
// all times to it.
func NewRecorded(a Arrivals, cv, mean float64) (*Recorded, error) {
	l := &Recorded{cv: cv, scale: 1}
	switch a := a.(type) {
	case *Replay:
		if a.service == 0 {
			return nil, fmt.Errorf("%s has no service times in the bins played: want a column mean_service_s, or another law", a.trace.Name)
		}
		l.mean, l.bin, l.rates, l.peak = a.service, a.p.Bin, a.rates, slices.Max(a.rates)
		for i := range a.rates {
			m := a.trace.Service[a.p.From+i]
			if m == 0 {
				m = a.service
			}
			l.bins = append(l.bins, LogNormalOf(m, cv))
		}
	case *Instants:
		if a.trace == nil || a.trace.Durations == nil {
			return nil, fmt.Errorf("no durations are recorded with the arrivals: want a column duration, or another law")
		}
		if cv != 0 {
			return nil, fmt.Errorf("cv %g: want 0, each task has its own duration", cv)
		}
		l.durations = a.trace.Durations
		for _, x := range l.durations {
			l.mean += x / float64(len(l.durations))
		}
	default:
		return nil, fmt.Errorf("the arrivals are no trace; want {trace: …}, or another law")
	}
	fields := []any{"cv", cv}
	if mean != 0 {
		l.scale, l.mean = mean/l.mean, mean
		fields = append(fields, "mean", mean)
	}
	l.text = flow("recorded", fields...)
	return l, nil
}

// DrawAt returns the service time of task i, which arrives at the instant at.
func (l *Recorded) DrawAt(r *rand.Rand, i int, at float64) float64 {
	if l.durations != nil {
		return l.scale * l.durations[i]
	}
	b := l.bins[min(int(at/l.bin), len(l.bins)-1)]
	if l.cv == 0 {
		return l.scale * math.Exp(b.Mu)
	}
	return l.scale * b.Draw(r)
}

// Draw returns the service time of any task.
func (l *Recorded) Draw(r *rand.Rand) float64 {
	if l.durations != nil {
		return l.DrawAt(r, r.IntN(len(l.durations)), 0)
	}
	for {
		i := r.IntN(len(l.bins))
		if r.Float64()*l.peak < l.rates[i] {
			return l.DrawAt(r, 0, (float64(i)+0.5)*l.bin)
		}
	}
}

// Mean over all tasks.
func (l *Recorded) Mean() float64 { return l.mean }

func (l *Recorded) String() string { return l.text }
