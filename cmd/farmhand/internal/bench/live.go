package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"farmhand/controller"
	"farmhand/platform"
	"farmhand/sim/workload"
	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
	"farmhand/telemetry"
	"farmhand/telemetry/redistelemetry"
)

// LiveConfig of the comparison of simulator and live farm.
type LiveConfig struct {
	Stack    string
	Prebuilt string
	Scenario *workload.Scenario
	Mean     float64              // of trace:NAME, tasks per second; 0: the scenario's own. It is only kept
	Policies []string             // specifications, or policy files
	Together int                  // so many farms at the same time, on one platform
	Rest     time.Duration        // before the load; no farm shrinks in its first two minutes
	Sims     int                  // simulated runs of each row, which differ in the platform's luck
	Seed     uint64               // of arrivals, services and injected starts
	Done     func(*LiveRun) error // after each group of farms; its rows are kept then
	Log      func(format string, args ...any)
}

// postEvery is how often what has come is posted, in one piece. The simulator is
// given the instants at which tasks were accepted, so that pieces and the sender's
// lateness are the same on both sides.
const postEvery = 20 * time.Millisecond

// LiveRow is one policy, live and simulated. Times are seconds.
type LiveRow struct {
	Policy   string   `json:"policy"`
	Tasks    int      `json:"tasks"`
	Overhead Overhead `json:"overhead"` // measured
	Live     Side     `json:"live"`
	Sim      Side     `json:"sim"`     // means over the runs
	Lo       Side     `json:"sim_min"` // over the runs
	Hi       Side     `json:"sim_max"`

	OnTimeDifference  float64 `json:"on_time_difference_points"`   // live − simulated
	WorkersDifference float64 `json:"mean_workers_difference_pct"` // live − simulated, of simulated

	Rows, SimRows []telemetry.Row `json:"-"` // of the decisions since the rest, live and of the first simulated run
}

// Side is what a policy reached.
type Side struct {
	OnTime      float64 `json:"on_time"`
	MeanWorkers float64 `json:"mean_workers"`
	PeakWorkers float64 `json:"peak_workers"`
	Actions     float64 `json:"actions"`
	Starts      float64 `json:"starts"`
	P50         float64 `json:"p50_s"`
	P95         float64 `json:"p95_s"`
	P99         float64 `json:"p99_s"`
	SignalAge   float64 `json:"signal_age_s"` // mean, of the newest signal at a decision
}

// LiveRun is a group of farms that were played at the same time, and what was
// measured of their platform.
type LiveRun struct {
	Scenario string    `json:"scenario"`
	Mean     float64   `json:"mean_per_s,omitempty"` // of a trace
	Began    time.Time `json:"began"`                // the load, by the clock that rows have
	Length   float64   `json:"length_s"`
	Rest     float64   `json:"rest_s"`
	Seed     uint64    `json:"seed"`
	Measured Measured  `json:"measured"`
	Rows     []LiveRow `json:"rows"`
}

// Live plays a scenario under each policy, on the local platform and in the
// simulator: the same tasks, policy and guard, and on the simulator's side the
// start-up lag, the latency of scale calls and the overhead of tasks that were
// measured live. Groups of farms follow one another; those that are over are kept
// where the context ends.
func Live(ctx context.Context, c LiveConfig) error {
	cold, list, err := c.check()
	if err != nil {
		return err
	}
	work, err := c.work()
	if err != nil {
		return err
	}
	for group := range slices.Chunk(list, max(1, c.Together)) {
		run, err := c.group(ctx, group, cold, work)
		if err != nil {
			return err
		}
		if err := c.Done(run); err != nil {
			return err
		}
	}
	return nil
}

// Check says what of the scenario or a policy cannot be played, before anything is
// started.
func (c *LiveConfig) Check() error {
	_, _, err := c.check()
	return err
}

// check returns the start-up law in the platform's words, and the policies.
func (c *LiveConfig) check() (coldStart string, list []contender, err error) {
	for _, spec := range c.Policies {
		p, err := contend(spec)
		if err != nil {
			return "", nil, err
		}
		list = append(list, p)
	}
	coldStart, err = playable(c.Scenario)
	return coldStart, list, err
}

// playable says what of a scenario the local platform does not have, and returns
// the start-up law in its words.
func playable(s *workload.Scenario) (coldStart string, err error) {
	f, p := &s.Farm, &s.Platform
	for _, x := range []struct {
		name string
		bad  bool
	}{
		{"farm.deadline_factor", f.DeadlineFactor > 0}, {"farm.deadline 0", f.Deadline == 0}, {"farm.failing", f.Failing > 0}, {"farm.fifo", f.FIFO},
		{"platform.blocking", p.Blocking}, {"platform.cap", p.Cap > 0}, {"platform.crashes", p.Crashes > 0},
		{"platform.victim " + string(p.Victim), p.Victim == workload.RandomVictim}, {"platform.balance " + string(p.Balance), p.Balance == workload.RandomReplica},
	} {
		if x.bad {
			return "", fmt.Errorf("%s: %s cannot be played on the local platform", s.Name, x.name)
		}
	}
	switch l := p.Startup.(type) {
	case nil:
		return "none", nil
	case workload.LogNormal:
		return fmt.Sprintf("lognormal:%g,%g", l.Mu, l.Sigma), nil
	case workload.Constant:
		return "constant:" + seconds(l.Value).String(), nil
	}
	return "", fmt.Errorf("%s: platform.startup %s: the local platform injects lognormal or constant starts, or none", s.Name, p.Startup)
}

func seconds(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }

// played is what came of one farm.
type played struct {
	contender
	results  []jobapi.Result // by task
	receipts []controller.Receipt
	rows     []telemetry.Row
}

// work draws the tasks.
func (c *LiveConfig) work() ([]arrival, error) {
	tasks := c.Scenario.Draw(c.Seed)
	if len(tasks.At) == 0 {
		return nil, fmt.Errorf("%s: nothing arrives in %s", c.Scenario.Name, seconds(c.Scenario.Horizon))
	}
	work := make([]arrival, len(tasks.At))
	for i := range work {
		work[i] = arrival{seconds(tasks.At[i]), tasks.Service[i]}
		if work[i].seconds >= longestSleep {
			return nil, fmt.Errorf("%s: task %d takes %.4g s: want less than %d", c.Scenario.Name, i, work[i].seconds, longestSleep)
		}
	}
	return work, nil
}

// group plays farms at the same time and simulates them.
func (c *LiveConfig) group(ctx context.Context, list []contender, cold string, work []arrival) (run *LiveRun, err error) {
	g, err := newStage(ctx, platform.Config{Stack: c.Stack, Prebuilt: c.Prebuilt, ColdStart: cold, Seed: c.Seed})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	s := farmSettings(&c.Scenario.Farm)
	for i := range list {
		if s.Policy, err = g.annotation(ctx, &list[i]); err != nil {
			return nil, err
		}
		if err := g.deploy(ctx, farmName(i), s); err != nil {
			return nil, err
		}
	}
	if err := g.known(ctx, len(list)); err != nil {
		return nil, err
	}
	c.Log("%s of rest first", c.Rest)
	if err := pause(ctx, c.Rest); err != nil {
		return nil, err
	}
	c.Log("%d tasks in %s to each of %d farms", len(work), seconds(c.Scenario.Horizon), len(list))
	began := time.Now()
	farms := make([]played, len(list))
	all, actx := errgroup.WithContext(ctx)
	for i := range farms {
		farms[i].contender = list[i]
		all.Go(func() error {
			return g.play(actx, farmName(i), work, began, began.Add(seconds(c.Scenario.Horizon)), &farms[i])
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	run = &LiveRun{Scenario: c.Scenario.Name, Mean: c.Mean, Began: began.UTC(), Length: c.Scenario.Horizon, Rest: c.Rest.Seconds(), Seed: c.Seed}
	run.Measured = measure(farms, work, began, g.starts.seconds())
	for i := range farms {
		row, err := c.compare(ctx, &farms[i], work, began, &run.Measured)
		if err != nil {
			return nil, err
		}
		run.Rows = append(run.Rows, row)
	}
	return run, nil
}

// farmSettings are those of a scenario's farm, as the live farm has them.
func farmSettings(f *workload.Farm) skeleton.Settings {
	s := skeleton.DefaultSettings()
	s.Slots, s.Deadline, s.Target, s.Interval = max(1, f.Slots), seconds(f.Deadline), f.Target, seconds(f.Interval)
	s.Service, s.Min, s.Max = seconds(f.Prior), f.Min, f.Max
	if f.Timeout > 0 {
		s.Timeout = min(s.Timeout, seconds(f.Timeout))
	}
	return s
}

// play offers the work to one farm and collects what came of it.
func (g *stage) play(ctx context.Context, farm string, work []arrival, began, to time.Time, p *played) error {
	job, err := g.offer(ctx, farm, work, began, postEvery)
	if err != nil {
		return err
	}
	if _, err := g.ended(ctx, job); err != nil {
		return err
	}
	p.results = make([]jobapi.Result, len(work))
	n := 0
	if _, _, err = g.client.Results(ctx, job, jobclient.Query{Follow: true}, func(r jobapi.Result) error {
		if r.Index < 0 || r.Index >= len(work) {
			return fmt.Errorf("bench: a result of task %d, of %d", r.Index, len(work))
		}
		r.Body, r.Base64 = nil, nil
		p.results[r.Index] = r
		n++
		return nil
	}); err != nil {
		return err
	}
	if n != len(work) {
		return fmt.Errorf("bench: %s: %d results of %d tasks", farm, n, len(work))
	}
	if p.receipts, err = g.receipts(ctx, farm, to); err != nil {
		return err
	}
	p.rows, err = redistelemetry.New(g.redis, nil).Rows(ctx, farm, began, to)
	return err
}

// accepted is when a task was.
func accepted(r *jobapi.Result) time.Time { return r.Finished.Add(-seconds(r.Sojourn)) }
