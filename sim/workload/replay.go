package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Replay plays a trace of counts again.
type Replay struct {
	trace   *Trace
	p       ReplayOptions
	rates   []float64 // per bin that is played, tasks per second
	service float64   // mean recorded service time, weighted by arrivals; 0 = none
}

// ReplayOptions say how a trace of counts is played.
type ReplayOptions struct {
	From  int     // bins left out at the beginning
	Bins  int     // bins played; 0: all that are left
	Bin   float64 // seconds that a bin is played as; 0: its own width
	Scale float64 // times the counts; 0: as they are, or as Mean says
	Mean  float64 // rate over the bins played, in place of Scale; 0: as Scale says
	Even  bool    // a bin's tasks are evenly spaced; else Poisson at the bin's rate
}

// NewReplay checks the options against the trace.
func NewReplay(t *Trace, o ReplayOptions) (*Replay, error) {
	if t.Counts == nil {
		return nil, fmt.Errorf("%s has a line per task: want counts per bin for from, bins, bin, scale, mean and spacing", t.Name)
	}
	if o.From < 0 || o.From >= len(t.Counts) {
		return nil, fmt.Errorf("from %d: want 0 to %d, the trace's bins but the last", o.From, len(t.Counts)-1)
	}
	left := len(t.Counts) - o.From
	if o.Bins < 0 || o.Bins > left {
		return nil, fmt.Errorf("bins %d: want at most %d, as many as there are", o.Bins, left)
	}
	if o.Scale != 0 && o.Mean != 0 {
		return nil, fmt.Errorf("scale and mean: want one of them")
	}
	if o.Bins == 0 {
		o.Bins = left
	}
	if o.Bin == 0 {
		o.Bin = t.Width
	}
	p := &Replay{trace: t, p: o}
	counts := t.Counts[o.From : o.From+o.Bins]
	sum, work, known := 0.0, 0.0, 0.0
	for i, n := range counts {
		sum += n
		if t.Service != nil && t.Service[o.From+i] > 0 {
			known, work = known+n, work+n*t.Service[o.From+i]
		}
	}
	if sum == 0 {
		return nil, fmt.Errorf("bins %d to %d are empty: want some with arrivals", o.From, o.From+o.Bins-1)
	}
	if known > 0 {
		p.service = work / known
	}
	scale := o.Scale
	switch {
	case o.Mean != 0:
		scale = o.Mean * o.Bin * float64(o.Bins) / sum
	case scale == 0:
		scale = 1
	}
	p.rates = make([]float64, len(counts))
	for i, n := range counts {
		p.rates[i] = scale * n / o.Bin
	}
	return p, nil
}

// Length is how long the trace plays, in seconds.
func (p *Replay) Length() float64 { return p.p.Bin * float64(len(p.rates)) }

// Draw the instants. Nothing arrives after the trace's end.
func (p *Replay) Draw(r *rand.Rand, horizon float64, at []float64) ([]float64, []Change) {
	var steps []Change
	for i, rate := range p.rates {
		t := float64(i) * p.p.Bin
		if t >= horizon {
			break
		}
		if i == 0 || rate != p.rates[i-1] {
			steps = append(steps, Change{t, rate})
		}
	}
	if t := p.Length(); t < horizon {
		steps = append(steps, Change{t, 0})
	}
	if p.p.Even {
		return p.even(horizon, at), steps
	}
	return stepwise(r, steps, horizon, at)
}

// even spaces the tasks of each bin; the fractions that scaling leaves of a count
// are carried into the next bin.
func (p *Replay) even(horizon float64, at []float64) []float64 {
	carry := 0.0
	for i, rate := range p.rates {
		exact := rate*p.p.Bin + carry
		n := math.Floor(exact + 1e-9)
		carry = exact - n
		for k := 0.0; k < n; k++ {
			t := (float64(i) + (k+0.5)/n) * p.p.Bin
			if t >= horizon {
				return at
			}
			at = append(at, t)
		}
	}
	return at
}

func (p *Replay) String() string {
	spacing := "poisson"
	if p.p.Even {
		spacing = "even"
	}
	fields := []any{"from", p.p.From, "bins", p.p.Bins, "bin", p.p.Bin, "spacing", spacing}
	switch {
	case p.p.Mean != 0:
		fields = append(fields, "mean", p.p.Mean)
	case p.p.Scale != 0:
		fields = append(fields, "scale", p.p.Scale)
	}
	return p.trace.flow(fields...)
}
