package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openfaas/faas-provider/types"
	"golang.org/x/sync/errgroup"

	"farmhand/gateway"
	"farmhand/platform"
	"farmhand/skeleton"
	"farmhand/skeleton/jobapi/jobclient"
)

// ScaleConfig of the live comparison of policies.
type ScaleConfig struct {
	Stack    string
	Prebuilt string
	Policies []string      // specifications; each runs a farm of its own, all at the same time
	Statics  []int         // fixed counts beside them
	Rest     time.Duration // before the load
	Cycles   int           // of a quiet and a busy stretch
	Quiet    time.Duration // 5 tasks a second
	Busy     time.Duration // 40 tasks a second
	Seed     uint64
	Log      func(format string, args ...any)
}

// The load: services of 200 ms (log-normal, cv 0.6) that wait and do not
// compute, so that many workers fit on a small machine; due after 3 s.
const (
	quietRate, busyRate = 5, 40
	serviceMean         = 0.2
	serviceCV           = 0.6
	scaleDeadline       = "3s"
	scaleMax            = 16
	onTimeWanted        = 0.9
)

// ScaleRow is what one policy reached.
type ScaleRow struct {
	Policy      string  `json:"policy"`
	OnTime      float64 `json:"on_time"`
	MeanWorkers float64 `json:"mean_workers"`
	PeakWorkers int     `json:"peak_workers"`
	Actions     int     `json:"actions"`
}

// Scale runs the same alternating load on the local platform under several
// policies at once, each with a farm and workers of its own, and compares the
// share on time and the mean number of workers (as desired, sampled ten times a
// second; the drain of a replica is not counted, being unknown to a gateway).
func Scale(ctx context.Context, c ScaleConfig) (_ *Report, rows []ScaleRow, err error) {
	g, err := newScaleRig(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	specs := append([]string{}, c.Policies...)
	for _, n := range c.Statics {
		specs = append(specs, fmt.Sprintf("static:n=%d", n))
	}
	rows = make([]ScaleRow, len(specs))
	for i, spec := range specs {
		rows[i].Policy = spec
		if err := g.deploy(ctx, i, spec); err != nil {
			return nil, nil, err
		}
	}
	if err := g.known(ctx, len(specs)); err != nil {
		return nil, nil, err
	}
	// The guard lets no farm shrink before one long window of data: two minutes of
	// nothing, as a farm has them in production long before.
	c.Log("%s of rest first", c.Rest)
	select {
	case <-time.After(c.Rest):
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	work := g.work(c)
	c.Log("%d tasks in %s to each of %d farms", len(work), work[len(work)-1].at.Round(time.Second), len(specs))
	var all errgroup.Group
	jobs := make([]string, len(specs))
	for i := range specs {
		all.Go(func() (err error) {
			jobs[i], err = g.offer(ctx, name(i), work)
			return err
		})
	}
	sampled := make(chan struct{})
	watching, stop := context.WithCancel(ctx)
	go func() {
		defer close(sampled)
		g.sample(watching, rows)
	}()
	err = all.Wait()
	stop()
	<-sampled
	if err != nil {
		return nil, nil, err
	}
	for i := range rows {
		if rows[i].OnTime, err = g.onTime(ctx, jobs[i]); err != nil {
			return nil, nil, err
		}
	}
	return scaleReport(c, rows), rows, nil
}

// scaleReport compares the first policy with the smallest fixed count that was
// on time often enough.
func scaleReport(c ScaleConfig, rows []ScaleRow) *Report {
	r := NewReport(c.Seed)
	best := math.Inf(1)
	for _, row := range rows {
		if strings.HasPrefix(row.Policy, "static:") && row.OnTime >= onTimeWanted {
			best = min(best, row.MeanWorkers)
		}
	}
	r.Figures["scale_on_time"], r.Figures["scale_mean_workers"] = rows[0].OnTime, rows[0].MeanWorkers
	r.Figures["scale_peak_workers"], r.Figures["scale_actions"] = float64(rows[0].PeakWorkers), float64(rows[0].Actions)
	if math.IsInf(best, 1) {
		r.Note("no fixed count had %.0f %% on time: give more of them", 100*onTimeWanted)
		return r
	}
	r.Figures["scale_best_static_workers"] = best
	r.Figures["scale_workers_vs_static_ratio"] = rows[0].MeanWorkers / best
	return r
}

// arrival is a task to come: when, and how long its service takes.
type arrival struct {
	at      time.Duration
	seconds float64
}

type scaleRig struct {
	platform *platform.Platform
	gateway  *gateway.Client
	client   *jobclient.Client
	state    string
	command  string
}

func name(i int) string { return fmt.Sprintf("farm-%02d", i) }

func newScaleRig(ctx context.Context, c ScaleConfig) (_ *scaleRig, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	g := &scaleRig{command: self + " bench worker"}
	if g.state, err = os.MkdirTemp("", "farmhand-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	g.platform, err = platform.Start(ctx, platform.Config{State: g.state, Listen: "127.0.0.1:0", MetricsListen: "none", Stack: c.Stack,
		Prebuilt: c.Prebuilt, Deploy: true, AllowDirs: []string{filepath.Dir(self)}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	user, password := g.platform.Credentials()
	if g.gateway, err = gateway.New(g.platform.URL(), &gateway.Credentials{User: user, Password: password}, gateway.Options{}); err != nil {
		return nil, err
	}
	token, err := g.platform.Token()
	if err != nil {
		return nil, err
	}
	g.client, err = jobclient.New(g.platform.URL()+"/function/dispatcher", token)
	return g, err
}

func (g *scaleRig) close() error {
	var err error
	if g.platform != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = g.platform.Stop(ctx)
	}
	return errors.Join(err, os.RemoveAll(g.state))
}

func (g *scaleRig) deploy(ctx context.Context, i int, spec string) error {
	n := 1
	if _, err := fmt.Sscanf(spec, "static:n=%d", &n); err == nil {
		spec = fmt.Sprintf("static:n=%d", n)
	}
	err := g.gateway.Deploy(ctx, types.FunctionDeployment{
		Service: name(i), Image: "bench-worker:latest",
		EnvVars: map[string]string{"max_inflight": "1", "write_timeout": "10s", "exec_timeout": "10s"},
		Labels:  &map[string]string{skeleton.LabelWorker: "true", "com.openfaas.scale.min": fmt.Sprint(n), "com.openfaas.scale.max": fmt.Sprint(max(n, scaleMax))},
		Annotations: &map[string]string{"farmhand.local.command": g.command, skeleton.AnnotationPolicy: spec,
			skeleton.AnnotationDeadline: scaleDeadline, skeleton.AnnotationTimeout: "10s"},
	})
	if err != nil {
		return fmt.Errorf("bench: %s: %w", spec, err)
	}
	return nil
}

// known waits until the dispatcher knows all farms, with a worker ready.
func (g *scaleRig) known(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ready := 0
		list, err := g.client.Farms(ctx)
		for _, f := range list.Farms {
			if strings.HasPrefix(f.Name, "farm-") && f.Ready == f.Target && f.Ready > 0 {
				ready++
			}
		}
		if err == nil && ready == n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bench: %d of %d farms are ready: %w", ready, n, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// work draws the load: the same for all farms.
func (g *scaleRig) work(c ScaleConfig) (list []arrival) {
	rng := rand.New(rand.NewPCG(c.Seed, 1))
	sigma := math.Sqrt(math.Log(1 + serviceCV*serviceCV))
	mu := math.Log(serviceMean) - sigma*sigma/2
	var from time.Duration
	for range c.Cycles {
		for _, stretch := range []struct {
			length time.Duration
			rate   float64
		}{{c.Quiet, quietRate}, {c.Busy, busyRate}} {
			to := from + stretch.length
			for at := from; ; {
				at += time.Duration(rng.ExpFloat64() / stretch.rate * float64(time.Second))
				if at >= to {
					break
				}
				list = append(list, arrival{at, math.Exp(mu + sigma*rng.NormFloat64())})
			}
			from = to
		}
	}
	return list
}

// offer posts the load to one farm as it comes, and returns its job.
func (g *scaleRig) offer(ctx context.Context, farm string, work []arrival) (job string, err error) {
	s, err := g.client.Submit(ctx, jobclient.Options{"worker": farm, "open": "true"}, jobclient.Piece{Type: "application/x-ndjson"})
	if err != nil {
		return "", err
	}
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for next := 0; next < len(work); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		var body strings.Builder
		for ; next < len(work) && work[next].at <= time.Since(began); next++ {
			fmt.Fprintf(&body, "%.6f\n", work[next].seconds)
		}
		if body.Len() == 0 {
			continue
		}
		if _, err := g.client.Append(ctx, s.Job.ID, nil, jobclient.Piece{Type: "application/x-ndjson", Body: []byte(body.String())}); err != nil {
			return "", err
		}
	}
	_, err = g.client.CloseJob(ctx, s.Job.ID)
	return s.Job.ID, err
}

// sample watches the counts until ctx ends.
func (g *scaleRig) sample(ctx context.Context, rows []ScaleRow) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	sums, last := make([]float64, len(rows)), make([]int, len(rows))
	n := 0.0
	for ctx.Err() == nil {
		list, err := g.gateway.Functions(ctx, "")
		if err == nil {
			n++
			for _, f := range list {
				var i int
				if _, err := fmt.Sscanf(f.Name, "farm-%d", &i); err != nil || i >= len(rows) {
					continue
				}
				count := int(f.Replicas)
				sums[i] += float64(count)
				rows[i].PeakWorkers = max(rows[i].PeakWorkers, count)
				if last[i] > 0 && last[i] != count {
					rows[i].Actions++
				}
				last[i] = count
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	for i := range rows {
		rows[i].MeanWorkers = sums[i] / max(1, n)
	}
}

// onTime waits for the end of a job and returns the share of its tasks on time.
func (g *scaleRig) onTime(ctx context.Context, job string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		j, err := g.client.Job(ctx, job)
		if err != nil {
			return 0, err
		}
		if j.Ended != nil {
			return 1 - float64(j.Late)/float64(j.Total), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
	}
}
