package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"farmhand/platform"
	"farmhand/skeleton"
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

// The load: services of 200 ms (log-normal, cv 0.6), due after 3 s.
const (
	quietRate, busyRate = 5, 40
	serviceMean         = 0.2
	serviceCV           = 0.6
	scaleDeadline       = 3 * time.Second
	scaleMax            = 16
	scaleEvery          = 50 * time.Millisecond
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
// share on time and the mean number of workers, as paidFor counts them.
func Scale(ctx context.Context, c ScaleConfig) (_ *Report, rows []ScaleRow, err error) {
	g, err := newStage(ctx, platform.Config{Stack: c.Stack, Prebuilt: c.Prebuilt})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	s := skeleton.DefaultSettings()
	s.Deadline, s.Max = scaleDeadline, scaleMax
	for _, s.Policy = range c.Policies {
		rows = append(rows, ScaleRow{Policy: s.Policy})
		if err := g.deploy(ctx, farmName(len(rows)-1), s); err != nil {
			return nil, nil, err
		}
	}
	for _, n := range c.Statics {
		s.Policy, s.Min, s.Max = fmt.Sprintf("static:n=%d", n), n, max(n, scaleMax)
		rows = append(rows, ScaleRow{Policy: s.Policy})
		if err := g.deploy(ctx, farmName(len(rows)-1), s); err != nil {
			return nil, nil, err
		}
	}
	if err := g.known(ctx, len(rows)); err != nil {
		return nil, nil, err
	}
	// The guard lets no farm shrink before one long window of data: two minutes of
	// nothing, as a farm has them in production long before.
	c.Log("%s of rest first", c.Rest)
	if err := pause(ctx, c.Rest); err != nil {
		return nil, nil, err
	}
	work := c.work()
	c.Log("%d tasks in %s to each of %d farms", len(work), work[len(work)-1].at.Round(time.Second), len(rows))
	began := time.Now()
	to := began.Add(time.Duration(c.Cycles) * (c.Quiet + c.Busy))
	all, ctx := errgroup.WithContext(ctx)
	for i := range rows {
		all.Go(func() error { return g.score(ctx, farmName(i), work, began, to, &rows[i]) })
	}
	if err := all.Wait(); err != nil {
		return nil, nil, err
	}
	return scaleReport(c, rows), rows, nil
}

// score offers the work to one farm and says what it reached.
func (g *stage) score(ctx context.Context, farm string, work []arrival, began, to time.Time, row *ScaleRow) error {
	job, err := g.offer(ctx, farm, work, began, scaleEvery)
	if err != nil {
		return err
	}
	j, err := g.ended(ctx, job)
	if err != nil {
		return err
	}
	receipts, err := g.receipts(ctx, farm, to)
	if err != nil {
		return err
	}
	p, err := paidFor(receipts, began, to)
	row.OnTime = 1 - float64(j.Late)/float64(j.Total)
	row.MeanWorkers, row.PeakWorkers, row.Actions = p.Mean, p.Peak, p.Actions
	return err
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

// work draws the load: the same for all farms.
func (c *ScaleConfig) work() (list []arrival) {
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
