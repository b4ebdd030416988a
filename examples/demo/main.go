// Command demo runs a farm on this machine as a user would, through the
// gateway: it posts Monte Carlo tasks in two bursts and every image of a folder,
// shows how the controller scales the worker and why, kills a busy worker, the
// controller and the dispatcher on the way, and counts what came back. It fails if
// anything was lost or accepted twice, or if the farm did not grow and shrink.
//
// Then two farms get the same bursts: one is scaled by the rule that all farms have by
// default, one by a learned policy (-policy), which was promoted for it. Both rows are
// shown, whichever is better.
//
// With -ce the platform behaves as plain OpenFaaS CE, which is shown first.
//
// Run it with make demo, make demo SHORT=1 or make demo CE=1.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	short := flag.Bool("short", false, "shorter bursts of smaller tasks: under 45 seconds")
	ce := flag.Bool("ce", false, "on a platform that behaves as plain OpenFaaS CE")
	images := flag.String("images", filepath.Join("examples", "images"), "folder of images")
	learned := flag.String("policy", filepath.Join("policies", "burst-cron-150ms.safetensors"), "file of the learned policy that is compared with a rule")
	bin := flag.String("bin", "bin", "folder of the built programs")
	flag.Parse()
	p := full
	if *short {
		p = brief
	}
	if *ce {
		p.compare = p.compare.atCE()
	}
	if err := demo(ctx, *bin, *images, *learned, *ce, p); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// The workers of the stack file that the demo uses.
const (
	montecarlo = "montecarlo"
	thumbnail  = "thumbnail"
)

// farms are all of the demo.
var farms = []string{montecarlo, thumbnail, byRule, byPolicy}

// settings of those, beside what stack.yml says.
var settings = map[string]map[string]string{
	montecarlo: {"farmhand.policy": "staffing:down=10", "farmhand.deadline": "2s", "farmhand.interval": "1s", "farmhand.min": "1", "farmhand.max": "6"},
	thumbnail:  {"farmhand.policy": "manual"}, // stays at one
}

// plan of a demo.
type plan struct {
	bursts [2]burst
	quiet  time.Duration // between the bursts
	// patience is how long after the bursts the farm may take to shrink: a policy
	// scales down only after two minutes of a farm's life. Where that is too long, an
	// operator lowers the farm's maximum.
	patience time.Duration
	every    time.Duration // between lines of progress
	compare  comparison
}

// A burst is as much work as one worker can do, so that it needs two, and half of
// what two cores can do. What a killed dispatcher was running comes back after
// 15 s, when its leases lapse.
//
// The comparison begins when nobody is killed any more. In the full demo its farms are
// quiet first, so that they may shrink after the first burst: nobody shrinks a farm in
// its first two minutes.
var (
	full = plan{
		bursts: [2]burst{
			{tasks: 1000, rate: 32, service: 31 * time.Millisecond, kills: []kill{{0.2, montecarlo}, {0.4, "controller"}, {0.9, "dispatcher"}}},
			{tasks: 600, rate: 40, service: 25 * time.Millisecond},
		},
		quiet: 10 * time.Second, patience: 90 * time.Second, every: 3 * time.Second,
		compare: comparison{after: 32 * time.Second, levels: []level{{20, 45}, {200, 22}, {20, 43}, {200, 15}}},
	}
	brief = plan{
		bursts: [2]burst{
			{tasks: 1000, rate: 180, service: 5500 * time.Microsecond, kills: []kill{{0.6, "controller"}, {0.9, "dispatcher"}}},
			{tasks: 1000, rate: 180, service: 5500 * time.Microsecond, kills: []kill{{0.5, montecarlo}}},
		},
		quiet:   3 * time.Second,
		compare: comparison{after: 14 * time.Second, levels: []level{{20, 4}, {100, 6}, {20, 3}, {100, 3}}},
	}
)

// longest is how long a demo may take: one that takes longer waits for a task
// that was lost.
const longest = 6 * time.Minute

func demo(ctx context.Context, bin, images, policyFile string, ce bool, p plan) (err error) {
	ctx, stop := context.WithTimeoutCause(ctx, longest, fmt.Errorf("it has not ended within %s", longest))
	defer stop()
	f, err := up(ctx, bin, ce)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.down()) }()
	if err := f.configure(ctx, policyFile); err != nil {
		return err
	}
	if f.speed, err = f.measure(ctx); err != nil {
		return err
	}
	if ce {
		if err := f.showCE(ctx); err != nil {
			return err
		}
	}
	begun := time.Now()
	s := newShow(f, begun, p.every)
	watching, end := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watch(watching) })
	var d done
	var compared []job
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		d, err = act(gctx, f, s, images, p)
		return err
	})
	group.Go(func() (err error) {
		compared, err = f.compare(gctx, s, p.compare)
		return err
	})
	err = group.Wait()
	d.jobs = append(d.jobs, compared...)
	end()
	watcher.Wait()
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return report(ctx, f, s, d, time.Since(begun))
}

// done is what a demo has done.
type done struct {
	jobs   []job
	killed []string
}

// act does all of a plan.
func act(ctx context.Context, f *farm, s *show, images string, p plan) (d done, err error) {
	album, err := f.submitImages(ctx, images)
	if err != nil {
		return d, err
	}
	d.jobs = append(d.jobs, album)
	for i, b := range p.bursts {
		if i > 0 {
			s.say("— quiet for %s —", p.quiet)
			if err := sleep(ctx, p.quiet); err != nil {
				return d, err
			}
		}
		s.say("— burst of %d tasks, %d a second —", b.tasks, b.rate)
		j, killed, err := f.run(ctx, s, b, i*p.bursts[0].tasks)
		if err != nil {
			return d, err
		}
		d.jobs, d.killed = append(d.jobs, j), append(d.killed, killed...)
	}
	if err := errors.Join(f.finish(ctx, album), s.shrink(ctx, p.patience)); err != nil || s.shrunk() {
		return d, err
	}
	s.say("— the farm is too young to shrink by itself: an operator lowers its maximum to 1 —")
	if err := f.override(ctx, montecarlo, `{"max": 1}`); err != nil {
		return d, err
	}
	return d, s.shrink(ctx, 15*time.Second)
}
