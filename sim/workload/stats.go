package workload

import "fmt"

// Stats of a trace.
type Stats struct {
	Bin        float64 `json:"bin_s"`
	Bins       int     `json:"bins"`
	Hours      float64 `json:"hours"`
	Arrivals   float64 `json:"arrivals"`
	Rate       float64 `json:"rate_per_s"`
	PeakToMean float64 `json:"peak_to_mean"` // largest bin over mean bin
	IoD        float64 `json:"iod"`          // index of dispersion: variance over mean of the counts; 1 for Poisson
	IoDTrend   float64 `json:"iod_d"`        // the same without the trend, a centred mean over 61 bins
	AC1        float64 `json:"ac1"`          // correlation of neighbouring bins
	Zero       float64 `json:"zero"`         // share of empty bins
	Service    float64 `json:"svc_s"`        // mean service time of an arrival; 0: not recorded
	Load       float64 `json:"load"`         // rate × service: busy workers in the mean; 0: not recorded
}

// MaxBins that single tasks are counted in.
const MaxBins = 10_000_000

// trend is how many bins the centred mean takes; fewer at both ends.
const trend = 61

// Stats computes what is known of the trace. A trace of single tasks is counted in
// bins of so many seconds, at most MaxBins; one of counts has its own.
func (t *Trace) Stats(bin float64) (Stats, error) {
	counts := t.Counts
	if counts == nil {
		if last := t.At[len(t.At)-1]; !(last/bin < MaxBins) {
			return Stats{}, fmt.Errorf("tasks of %.4g s in bins of %g s are more than %d bins: want wider ones", last, bin, MaxBins)
		}
		counts = t.count(bin)
	} else {
		bin = t.Width
	}
	s := Stats{Bin: bin, Bins: len(counts), Hours: bin * float64(len(counts)) / 3600}
	peak, zero := 0.0, 0
	for _, n := range counts {
		s.Arrivals += n
		peak = max(peak, n)
		if n == 0 {
			zero++
		}
	}
	mean := s.Arrivals / float64(len(counts))
	s.Rate, s.PeakToMean, s.Zero = mean/bin, peak/mean, float64(zero)/float64(len(counts))
	v := variance(counts)
	s.IoD, s.IoDTrend = v/mean, variance(detrend(counts))/mean
	for i := 1; i < len(counts) && v > 0; i++ {
		s.AC1 += (counts[i-1] - mean) * (counts[i] - mean) / (v * float64(len(counts)))
	}
	s.Service = t.service()
	s.Load = s.Rate * s.Service
	return s, nil
}

// count puts single tasks into bins.
func (t *Trace) count(bin float64) []float64 {
	counts := make([]float64, int(t.At[len(t.At)-1]/bin)+1)
	for _, at := range t.At {
		counts[int(at/bin)]++
	}
	return counts
}

// service is the mean recorded service time of an arrival; 0 where there is none.
func (t *Trace) service() float64 {
	sum, n := 0.0, 0.0
	for _, x := range t.Durations {
		sum, n = sum+x, n+1
	}
	for i, x := range t.Service {
		if x > 0 {
			sum, n = sum+x*t.Counts[i], n+t.Counts[i]
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// detrend subtracts the centred mean.
func detrend(x []float64) []float64 {
	sums := make([]float64, len(x)+1)
	for i, v := range x {
		sums[i+1] = sums[i] + v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		lo, hi := max(0, i-trend/2), min(len(x), i+trend/2+1)
		y[i] = v - (sums[hi]-sums[lo])/float64(hi-lo)
	}
	return y
}

// variance of a whole population.
func variance(x []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(x))
}
