package main

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// killOnTheWay kills a busy worker when a fifth of the job is done and the
// dispatcher when two fifths are. The function it returns waits for both and
// names them.
func (f *farm) killOnTheWay(ctx context.Context, job string) func() ([]string, error) {
	type result struct {
		killed []string
		err    error
	}
	out := make(chan result, 1)
	go func() {
		var r result
		for i, name := range []string{"montecarlo", "dispatcher"} {
			if r.err = f.reached(ctx, job, float64(i+1)/5); r.err != nil {
				break
			}
			var pid int
			if pid, r.err = kill(filepath.Join(f.state), name); r.err != nil {
				break
			}
			r.killed = append(r.killed, fmt.Sprintf("%s, process %d", name, pid))
			fmt.Printf("  ☠ SIGKILL to %s, process %d\n", name, pid)
		}
		out <- r
	}()
	return func() ([]string, error) {
		r := <-out
		return r.killed, r.err
	}
}

// reached waits until a share of the job is done.
func (f *farm) reached(ctx context.Context, job string, share float64) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		j, err := f.client.Job(ctx, job)
		if err != nil {
			return err
		}
		if float64(j.Done) >= share*float64(j.Total) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// kill sends SIGKILL to the process of a function of this demo's platform: the
// one that has used its processor most, so a busy one.
func kill(state, function string) (int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	victim, most := 0, -1.0
	for _, p := range all {
		exe, err := p.Executable()
		if err != nil || filepath.Base(exe) != function {
			continue // it ended, or is not ours
		}
		env, err := p.Environ()
		if err != nil || !contains(env, "HOME="+state) {
			continue
		}
		stat, err := p.Stat()
		if err != nil {
			continue
		}
		if cpu := stat.CPUTime(); cpu > most {
			victim, most = p.PID, cpu
		}
	}
	if victim == 0 {
		return 0, fmt.Errorf("no process of %s was found", function)
	}
	return victim, syscall.Kill(victim, syscall.SIGKILL)
}

// contains reports whether an environment has a variable that begins so.
func contains(env []string, prefix string) bool {
	for _, v := range env {
		if len(v) >= len(prefix) && v[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}
