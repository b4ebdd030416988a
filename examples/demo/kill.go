package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// kill is a SIGKILL to a process of a function when a share of a burst is done
// and tasks are running.
type kill struct {
	share    float64
	function string
}

// killOnTheWay does all kills of a burst and names who was killed.
func (f *farm) killOnTheWay(ctx context.Context, s *show, j job, kills []kill) (killed []string, err error) {
	for _, k := range kills {
		if err := f.reached(ctx, j, int(k.share*float64(j.tasks))); err != nil {
			return killed, err
		}
		if err := f.running(ctx); err != nil {
			return killed, err
		}
		pid, err := busiest(f.state, k.function)
		if err != nil {
			return killed, err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return killed, err
		}
		s.say("☠ SIGKILL to %s, process %d", k.function, pid)
		killed = append(killed, fmt.Sprintf("%s, process %d", k.function, pid))
	}
	return killed, nil
}

// running waits until Monte Carlo tasks are running.
func (f *farm) running(ctx context.Context) error {
	for {
		v, err := f.client.Farm(ctx, montecarlo)
		if err != nil || v.Queue != nil && v.Queue.Leased > 0 {
			return err
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// busiest finds the process of a function of this demo's platform: the one that
// has used its processor most, so a busy one.
func busiest(state, function string) (int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	pid, most := 0, -1.0
	for _, p := range all {
		exe, err := p.Executable()
		if err != nil || filepath.Base(exe) != function {
			continue // it ended, or is not ours
		}
		env, err := p.Environ()
		ours := func(v string) bool { return strings.HasPrefix(v, "HOME="+state+"/") }
		if err != nil || !slices.ContainsFunc(env, ours) {
			continue
		}
		stat, err := p.Stat()
		if err != nil {
			continue
		}
		if cpu := stat.CPUTime(); cpu > most {
			pid, most = p.PID, cpu
		}
	}
	if pid == 0 {
		return 0, fmt.Errorf("no process of %s was found", function)
	}
	return pid, nil
}
