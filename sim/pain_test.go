package sim

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/sim/workload"
)

// What users of other autoscalers have complained about, as simulated cases. Each
// is named by its public report.

// cloud is a farm on a usual platform: replicas start within 2 s, give or take, and
// are seen within another.
func cloud(start int) *workload.Scenario {
	return &workload.Scenario{Name: "pain", Farm: workload.Farm{Interval: 2, Target: 0.95, Slots: 1, Min: 1, Max: 20, Start: start},
		Platform: workload.Platform{Startup: lognormal{2.12, 0.16}, Seen: uniform{0, 1}}}
}

// even are tasks that arrive in even distances from begin to end.
func even(rate, begin, end float64, service workload.Law, horizon float64) *workload.Tasks {
	t := &workload.Tasks{Horizon: horizon}
	r := workload.Stream(1, workload.StreamService)
	for i := 0; begin+(float64(i)+0.5)/rate < end; i++ {
		t.At = append(t.At, begin+(float64(i)+0.5)/rate)
		t.Service = append(t.Service, service.Draw(r))
	}
	return t
}

// at once are n more tasks that arrive together.
func more(t *workload.Tasks, n int, at, service float64) *workload.Tasks {
	k := 0
	for k < len(t.At) && t.At[k] <= at {
		k++
	}
	out := &workload.Tasks{Horizon: t.Horizon, At: append([]float64(nil), t.At[:k]...), Service: append([]float64(nil), t.Service[:k]...)}
	for range n {
		out.At, out.Service = append(out.At, at), append(out.Service, service)
	}
	out.At, out.Service = append(out.At, t.At[k:]...), append(out.Service, t.Service[k:]...)
	return out
}

// course is how a run went.
type course struct {
	at     []float64
	counts []int // wanted from then on
	waits  []float64
	ready  []int
	limits map[string]int // that bound
	Result
}

// follow plays a law with its guard. spoil may change what it sees.
func follow(t *testing.T, sc *workload.Scenario, tasks *workload.Tasks, law policy.Policy, g guard.Settings, spoil func(at float64, o *policy.Observation)) course {
	t.Helper()
	s := begin(t, sc, tasks, 1)
	p := NewPilot(Driver{Policy: law, Guard: &g})
	c := course{limits: map[string]int{}}
	var o policy.Observation
	for going := true; going; going = s.Advance() {
		s.Observe(&o)
		if spoil != nil {
			spoil(s.Now(), &o)
		}
		step := p.Decide(&o, s.Calling())
		n := o.Desired
		if !step.Outcome.Hold {
			n = s.Scale(step.Outcome.Replicas)
		} else {
			s.Scale(n)
		}
		for _, l := range step.Outcome.Limits {
			c.limits[l.Name]++
		}
		c.at, c.counts, c.waits, c.ready = append(c.at, s.Now()), append(c.counts, n), append(c.waits, float64(o.Waiting)), append(c.ready, o.Ready)
	}
	c.Result = s.Result()
	return c
}

// between are the counts wanted in a stretch of time.
func (c *course) between(from, to float64) (list []int) {
	for i, at := range c.at {
		if from <= at && at < to {
			list = append(list, c.counts[i])
		}
	}
	return list
}

func changes(list []int) (n int) {
	for i := 1; i < len(list); i++ {
		if list[i] != list[i-1] {
			n++
		}
	}
	return n
}

// naive is a law as one writes it first: what the complaints are about.
type naive func(o *policy.Observation) int

func (naive) Name() string { return "naive" }
func (n naive) Decide(o *policy.Observation, _ policy.Memory) policy.Decision {
	return policy.Decision{Replicas: n(o)}
}

// unguarded is a guard that lets everything pass.
var unguarded = guard.Settings{ActionsPerHour: 1e6, Burst: 1e6}

// flaps counts the counts that go down and up again within two start-ups.
func (c *course) flaps(from, within float64) (n int) {
	down := math.Inf(-1)
	for i := 1; i < len(c.at); i++ {
		switch {
		case c.at[i] < from:
		case c.counts[i] < c.counts[i-1]:
			down = c.at[i]
		case c.counts[i] > c.counts[i-1] && c.at[i]-down <= within:
			n++
		}
	}
	return n
}

// P01 (openfaas/faas-netes#372), P03 (ray-project/ray#2317): constant load at a
// boundary between two counts makes no saw-tooth; headroom that is idle is not
// taken back.
func TestP01P03ConstantLoadIsCalm(t *testing.T) {
	const cold = 2.12
	saw := naive(func(o *policy.Observation) int { // a threshold without hysteresis
		if o.Last.Arrivals > 2*28 {
			return o.Desired + 1
		}
		return o.Desired - 1
	})
	for _, c := range []struct {
		name string
		law  policy.Policy
		rate float64 // of tasks of 100 ms
	}{
		// a + β√a = 4 at a load of 1.1 · 2.834.
		{"P01 below", law(t, "staffing"), 28.34 * 0.95}, {"P01 at", law(t, "staffing"), 28.34}, {"P01 above", law(t, "staffing"), 28.34 * 1.05},
		{"P03 exactly 5", law(t, "staffing:headroom=1.2,beta=0"), 5 / 1.2 / 0.1}, {"P03 exactly 8", law(t, "staffing:headroom=1.2,beta=0"), 8 / 1.2 / 0.1},
	} {
		for _, service := range []workload.Law{constant(0.1), lognormal{0.1, 0.6}} {
			run := follow(t, cloud(4), even(c.rate, 0, 2000, service, 2000), c.law, guard.Settings{}, nil)
			if n := changes(run.between(200, 2000)); n > 2 || run.flaps(200, 2*cold) > 0 {
				t.Errorf("%s, %s services: %d changes in half an hour, %d flaps", c.name, service, n, run.flaps(200, 2*cold))
			}
		}
	}
	run := follow(t, cloud(4), even(28.34, 0, 2000, constant(0.1), 2000), saw, unguarded, nil)
	if changes(run.between(200, 2000)) <= 2 || run.flaps(200, 2*cold) == 0 {
		t.Error("a saw-tooth is not told from calm")
	}
}

// P02 (openfaas/faas#1124), P28 (kedacore/keda#4098): a look without signals, or a
// ledger that cannot be read for hours, takes no worker from a steady load.
func TestP02P28MissingSignalsAreNotQuiet(t *testing.T) {
	tasks := even(46, 0, 1800, lognormal{0.1, 0.6}, 1800)
	resolve := naive(func(o *policy.Observation) int { // unknown is taken for zero
		return max(1, int(math.Ceil(o.Load(o.Short).Or(0)*o.Waiting.Or(0)*0+1.3*o.Load(o.Short).Or(0))))
	})
	dark := func(o *policy.Observation) {
		for _, m := range []*policy.Maybe{&o.Age, &o.Waiting, &o.Running, &o.Delayed, &o.OldestWait, &o.Overdue, &o.NextDue, &o.RunningAge, &o.Busy} {
			*m = policy.Unknown
		}
		o.Last, o.Short = policy.Window{Length: o.Last.Length}, policy.Window{Length: o.Short.Length}
	}
	once := func(at float64, o *policy.Observation) {
		if int(at)%60 == 0 && at >= 300 {
			dark(o)
		}
	}
	long := func(at float64, o *policy.Observation) {
		if at >= 600 {
			dark(o)
		}
	}
	for name, spoil := range map[string]func(float64, *policy.Observation){"P02": once, "P28": long} {
		for _, spec := range []string{"staffing", "hpa", "kpa", "forecast", "mpc"} {
			run := follow(t, cloud(6), tasks, law(t, spec), guard.Settings{}, spoil)
			if n := slices.Min(run.between(300, 1800)); n < 5 {
				t.Errorf("%s, %s: %d workers for 4.6 Erlangs", name, spec, n)
			}
		}
		run := follow(t, cloud(6), tasks, resolve, unguarded, spoil)
		if name == "P02" && run.limits[guard.LimitStale] == 0 {
			t.Errorf("%s: the guard holds nothing", name)
		}
	}
	// A heartbeat that is lost hides nothing: its counts come with the next.
	s := begin(t, cloud(6), tasks, 1)
	p := NewPilot(Driver{Policy: law(t, "staffing"), Guard: &guard.Settings{}})
	var o policy.Observation
	for s.Advance() {
		s.Observe(&o)
		if rate := float64(o.Short.Rate()); s.Now() > 30 && math.Abs(rate-46) > 1 {
			t.Fatalf("at %g s: %g tasks a second", s.Now(), rate)
		}
		if step := p.Decide(&o, false); s.Now() > 300 && step.Outcome.Replicas < 5 {
			t.Fatalf("at %g s: %d workers", s.Now(), step.Outcome.Replicas)
		}
		if int(s.Now())%20 == 0 {
			s.signal.beats++ // the next one does not come
			s.signal.beat++
		}
	}
}

// P04 (llm-d/llm-d-autoscaling#1427): 5 % of noise in the queue's length, at a
// boundary between two counts, does not flip the count each time.
func TestP04NoiseInTheQueue(t *testing.T) {
	sc := cloud(6)
	sc.Farm.Deadline, sc.Farm.Prior, sc.Farm.Max = 30, 1, 64
	s := begin(t, sc, more(even(4, 0, 300, constant(1), 300), 40, 200, 1), 1)
	var o policy.Observation
	for s.Now() < 202 {
		s.Advance()
	}
	s.Observe(&o)
	calm, bare := law(t, "staffing"), law(t, "staffing:band=0")
	wish := func(waiting float64) int { // without noise, band and memory
		o.Waiting = policy.Maybe(waiting)
		return bare.Decide(&o, policy.Memory{}).Replicas
	}
	lo, hi := 60.0, 120.0
	for few := wish(lo); hi-lo > 0.01; { // where one worker more is wished
		if mid := (lo + hi) / 2; wish(mid) > few {
			hi = mid
		} else {
			lo = mid
		}
	}
	clean := wish(hi)
	r := rand.New(rand.NewPCG(1, 1))
	m, begun := policy.Memory{}, o.At
	g, st := guard.Settings{}, guard.State{}
	var counts []int
	flips, last := 0, 0
	for k := range 240 {
		o.At = begun.Add(time.Duration(2*k) * time.Second)
		if n := wish(hi * (0.95 + 0.1*r.Float64())); n != last {
			flips, last = flips+1, n
		}
		d := calm.Decide(&o, m)
		var out guard.Outcome
		out, st = g.Apply(&o, d, d, st)
		o.Desired = out.Replicas
		counts = append(counts, d.Replicas)
	}
	if changes(counts) > 5 || slices.Min(counts) < clean-1 || slices.Max(counts) > clean+1 {
		t.Errorf("%d changes, from %d to %d; without noise %d", changes(counts), slices.Min(counts), slices.Max(counts), clean)
	}
	if flips < 20 {
		t.Errorf("without band it would flip %d times: that is no boundary", flips)
	}
}

// P05 (knative/serving#10275): under a steady Poisson load the count neither swings
// nor beats with the period of a window.
func TestP05NoBeatWithTheWindows(t *testing.T) {
	beats := func(l policy.Policy, g guard.Settings) (sd, worst float64) {
		run := follow(t, cloud(10), poisson(5, 80, lognormal{0.1, 0.6}, 7200), l, g, nil)
		counts := run.between(400, 7200)
		mean := 0.0
		for _, n := range counts {
			mean += float64(n) / float64(len(counts))
		}
		power := func(period float64) float64 { // of the series, at a period
			var sum complex128
			for i, n := range counts {
				sum += cmplx.Rect(float64(n)-mean, 2*math.Pi*2*float64(i)/period)
			}
			return real(sum*cmplx.Conj(sum)) / float64(len(counts))
		}
		for _, n := range counts {
			sd += (float64(n) - mean) * (float64(n) - mean) / float64(len(counts))
		}
		for _, window := range []float64{10, 60, 120} {
			around := 0.0 // power beside it, where a line would not be
			for _, x := range []float64{0.80, 0.85, 0.90, 1.10, 1.15, 1.20} {
				around += power(window*x) / 6
			}
			if line := power(window); line > 0.5 {
				worst = max(worst, line/max(around, 0.05))
			}
		}
		return math.Sqrt(sd), worst
	}
	if sd, line := beats(law(t, "staffing"), guard.Settings{}); sd > 1 || line > 10 {
		t.Errorf("standard deviation %.2f, a line %.1f times as strong as what is beside it", sd, line)
	}
	swing := naive(func(o *policy.Observation) int { return 10 + o.At.Second()/15 })
	if sd, line := beats(swing, unguarded); line < 10 {
		t.Errorf("a count that swings by the minute has a line of %.1f, standard deviation %.2f", line, sd)
	}
}
