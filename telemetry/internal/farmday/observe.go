package farmday

import (
	"math"

	"farmhand/policy"
)

// observe puts together what a controller would know now.
func (f *Farm) observe() *policy.Observation {
	short, long := policy.Windows(Tick)
	o := &policy.Observation{
		Version: policy.ObservationVersion, Farm: "thumbnail", At: f.at.UTC(), Age: policy.Maybe(0.5 + f.round(0.4*f.rng.Float64())),
		Interval: Tick, Deadline: 3 * f.Service, Target: 0.95, Timeout: 55, Slots: 1, Min: 1, Max: 64,
		Desired: f.desired, Ready: f.ready, Starting: max(0, f.desired-f.ready),
		Draining: policy.Unknown, StartupLag: 0.7423918273,
		Waiting: policy.Maybe(f.queue), Running: policy.Maybe(f.running), Delayed: policy.Maybe(f.delayed),
		NextDue: policy.Unknown, RunningAge: policy.Maybe(f.round(f.Service * f.rng.Float64())),
		Last: f.window(Tick), Short: f.window(short), Long: f.window(long),
		CPU: policy.Unknown, Memory: policy.Unknown, Busy: policy.Unknown,
	}
	if f.queue > 0 {
		age := f.round(f.queue * f.Service / float64(f.ready) * (1 + 0.1*f.rng.NormFloat64()))
		o.OldestWait, o.NextDue = policy.Maybe(max(0, age)), policy.Maybe(o.Deadline-age)
		o.Overdue = policy.Maybe(math.Round(max(0, f.queue*(1-3*f.Service/max(1e-9, age)))))
	}
	if int(f.at.Sub(f.began).Hours())%2 == 0 { // the platform tells usage now and then not
		o.CPU = policy.Maybe(math.Round(1000*f.running*(0.8+0.05*f.rng.NormFloat64())) / 1000)
		o.Busy = policy.Maybe(f.running / float64(f.ready))
		o.Memory = policy.Maybe(float64(f.ready)*80e6 + math.Round(4096*f.rng.Float64()*1000))
	}
	o.Service = policy.Maybe(f.Service * f.drift)
	if o.Long.Service.N > 0 {
		o.Service = policy.Maybe(o.Long.Service.Mean)
	}
	o.Level = policy.Level{Rate: f.mean(kept), Age: math.Mod(o.At.Sub(f.began).Seconds(), 1800)}
	o.Level.Load = o.Level.Rate * float64(o.Service)
	o.Level.Sojourn = o.Long.Sojourn.Mean
	o.Past = []policy.Level{{Rate: 58.66129032, Age: 1204.000311, Load: 2.419934711, Sojourn: 0.04419},
		{Rate: 212.1229032, Age: 44.00191, Load: 8.4190711, Sojourn: 0.0994419}}
	o.PeakLoad = policy.Maybe(math.Ceil(o.Level.Load) * 1.7182818284)
	return o
}

// round cuts to the microsecond, as Redis tells time.
func (f *Farm) round(x float64) float64 { return math.Round(1e6*x) / 1e6 }

// window measures so many seconds. It ends half-way into a second, as windows do.
func (f *Farm) window(length float64) policy.Window {
	w := policy.Window{Length: length, Covered: min(length, Tick*float64(len(f.past)))}
	share := 1 - 0.5*f.round(f.rng.Float64())
	var wait, service, sojourn sums
	for i := range int(math.Ceil(length / Tick)) {
		if i >= len(f.past) {
			break
		}
		t := f.past[len(f.past)-1-i]
		if i > 0 {
			share = 1
		}
		w.Arrivals += share * t.arrivals
		w.Starts += share * t.starts
		w.Done += share * t.done
		w.Late += share * t.late
		w.Failed += share * t.failed
		w.Lost += share * t.lost
		w.Busy += share * t.busy
		wait.add(t.wait)
		service.add(t.service)
		sojourn.add(t.sojourn)
	}
	w.Decided = w.Done * 0.97
	w.Wait, w.Service, w.Sojourn = f.stats(wait), f.stats(service), f.stats(sojourn)
	return w
}

func (s *sums) add(o sums) {
	*s = sums{s.n + o.n, s.sum + o.sum, s.squares + o.squares, max(s.max, o.max)}
}

func (f *Farm) stats(s sums) policy.Stats {
	if s.n == 0 {
		return policy.Stats{}
	}
	st := policy.Stats{N: s.n, Mean: s.sum / s.n, Max: s.max}
	if s.n > 1 {
		st.SD = math.Sqrt(max(0, s.squares-s.n*st.Mean*st.Mean) / (s.n - 1))
	}
	noise := func() float64 { return 1 + 0.5*f.rng.NormFloat64()/math.Sqrt(s.n) }
	st.P50 = min(st.Max, bin(st.Mean*0.85*noise()))
	st.P95 = min(st.Max, bin((st.Mean+2*st.SD)*noise()))
	st.P99 = min(st.Max, bin((st.Mean+3*st.SD)*noise()))
	return st
}

// bin is the middle of a duration's bin: histograms know no more.
func bin(x float64) float64 {
	if x < 1e-5 {
		return 0
	}
	return math.Pow(1.04, math.Round(math.Log(x)/math.Log(1.04))) * 1.02
}
