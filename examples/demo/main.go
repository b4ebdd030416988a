// Command demo runs a farm on this machine as a user would, through the
// gateway: it posts 2,000 Monte Carlo tasks in two bursts and every image of a
// folder, shows how the controller scales the worker and why, kills a busy
// worker, the controller and the dispatcher on the way, and counts what came
// back. It fails if anything was lost or accepted twice, or if the farm did not
// grow and shrink.
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	short := flag.Bool("short", false, "shorter bursts of smaller tasks: under 45 seconds")
	ce := flag.Bool("ce", false, "on a platform that behaves as plain OpenFaaS CE")
	images := flag.String("images", filepath.Join("examples", "images"), "folder of images")
	bin := flag.String("bin", "bin", "folder of the built programs")
	flag.Parse()
	p := full
	if *short {
		p = brief
	}
	if err := demo(ctx, *bin, *images, *ce, p); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// The two workers.
const (
	montecarlo = "montecarlo"
	thumbnail  = "thumbnail"
)

// settings of the farms, beside what stack.yml says.
var settings = map[string]map[string]string{
	montecarlo: {"farmhand.policy": "staffing:down=10", "farmhand.deadline": "2s", "farmhand.interval": "1s", "farmhand.min": "1", "farmhand.max": "6"},
	thumbnail:  {"farmhand.policy": "manual"}, // stays at one
}

// plan of a demo.
type plan struct {
	bursts [2]burst
	quiet  time.Duration // between the bursts
	// patience is how much longer the quiet lasts until the farm has shrunk: a
	// policy scales down only after two minutes of a farm's life. Where that is
	// too long, an operator lowers the farm's maximum in the end.
	patience time.Duration
	every    time.Duration // between lines of progress
}

// A burst is as much work as one worker can do, so that it needs two, and half of
// what two cores can do. What a killed dispatcher was running comes back after
// 15 s, when its leases lapse, so it is killed towards the end.
var (
	full = plan{
		bursts: [2]burst{
			{tasks: 1400, rate: 32, service: 31 * time.Millisecond, kills: []kill{{0.3, montecarlo}, {0.6, "controller"}}},
			{tasks: 600, rate: 40, service: 25 * time.Millisecond, kills: []kill{{0.9, "dispatcher"}}},
		},
		quiet: time.Minute, patience: 30 * time.Second, every: 3 * time.Second,
	}
	brief = plan{
		bursts: [2]burst{
			{tasks: 1000, rate: 180, service: 5500 * time.Microsecond, kills: []kill{{0.6, "controller"}, {0.9, "dispatcher"}}},
			{tasks: 1000, rate: 180, service: 5500 * time.Microsecond, kills: []kill{{0.5, montecarlo}}},
		},
		quiet: 3 * time.Second,
	}
)

// longest is how long a demo may take: one that takes longer waits for a task
// that was lost.
const longest = 6 * time.Minute

func demo(ctx context.Context, bin, images string, ce bool, p plan) (err error) {
	ctx, stop := context.WithTimeoutCause(ctx, longest, fmt.Errorf("it has not ended within %s", longest))
	defer stop()
	f, err := up(ctx, bin, ce)
	if err != nil {
		return err
	}
	defer func() {
		if derr := f.down(); err == nil {
			err = derr
		}
	}()
	if err := f.configure(ctx); err != nil {
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
	d, err := act(ctx, f, s, images, p)
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
			if err := errors.Join(sleep(ctx, p.quiet), s.shrink(ctx, p.patience)); err != nil {
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
	if err := f.finish(ctx, album); err != nil {
		return d, err
	}
	if s.shrunk() {
		return d, nil
	}
	s.say("— the farm is too young to shrink by itself: an operator lowers its maximum to 1 —")
	if err := f.override(ctx, montecarlo, `{"max": 1}`); err != nil {
		return d, err
	}
	return d, s.shrink(ctx, 15*time.Second)
}
