// Command demo runs a farm on this machine as a user would, through the
// gateway's API: it posts 2,000 Monte Carlo tasks and every image of a folder,
// kills a busy worker and the dispatcher on the way, and counts what came back.
// It fails if anything was lost or accepted twice.
//
// Run it with make demo, or SHORT=1 make demo.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	short := flag.Bool("short", false, "smaller tasks: under 45 seconds")
	images := flag.String("images", filepath.Join("examples", "images"), "folder of images")
	bin := flag.String("bin", "bin", "folder of the built programs")
	flag.Parse()
	if err := demo(ctx, *bin, *images, *short); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// replicas of each worker; the workers share two cores.
const replicas = 4

func demo(ctx context.Context, bin, images string, short bool) (err error) {
	tasks, paths := 2000, 2_000_000
	if short {
		paths = 400_000
	}
	farm, err := up(ctx, bin)
	if err != nil {
		return err
	}
	defer func() {
		if derr := farm.down(); err == nil {
			err = derr
		}
	}()
	if err := farm.ready(ctx, map[string]int{"montecarlo": replicas, "thumbnail": replicas}); err != nil {
		return err
	}
	pictures, err := folder(images)
	if err != nil {
		return err
	}
	started := time.Now()
	sweep, err := farm.submitSweep(ctx, tasks, paths)
	if err != nil {
		return err
	}
	album, err := farm.submitImages(ctx, pictures)
	if err != nil {
		return err
	}
	kills := farm.killOnTheWay(ctx, sweep)
	rows := []row{{name: "montecarlo", job: sweep, tasks: tasks}, {name: "thumbnail", job: album, tasks: len(pictures)}}
	farm.watch(ctx, rows)
	killed, err := kills()
	if err != nil {
		return err
	}
	return report(ctx, farm, rows, killed, time.Since(started))
}

// row of the table at the end.
type row struct {
	name  string
	job   string
	tasks int
}

// report counts the results of every job and prints the table.
func report(ctx context.Context, farm *farm, rows []row, killed []string, wall time.Duration) error {
	fmt.Println()
	for _, k := range killed {
		fmt.Println("killed with SIGKILL:", k)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "job\ttasks\tdone\tdead\tlost\taccepted twice\tworkers lost on the way\t")
	bad := 0
	for _, r := range rows {
		c, err := farm.count(ctx, r.job)
		if err != nil {
			return err
		}
		lost := r.tasks - c.distinct
		bad += lost + c.twice + c.dead
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", r.name, r.tasks, c.done, c.dead, lost, c.twice, c.again)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("wall time %s, durability of the queue: %s\n", wall.Round(100*time.Millisecond), farm.durability)
	if bad > 0 {
		return fmt.Errorf("%d tasks were lost, dead, or accepted twice", bad)
	}
	if len(killed) < 2 {
		return fmt.Errorf("only %d processes were killed: the demo proved less than it should", len(killed))
	}
	return nil
}
