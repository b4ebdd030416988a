package platform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"farmhand/internal/proc"
)

// replicaState is where a replica stands in its life.
type replicaState string

const (
	starting replicaState = "starting" // waits, starts, or is not ready (any more)
	ready    replicaState = "ready"    // takes calls
	draining replicaState = "draining" // finishes its calls, then ends
)

// Probing of readiness: quick while a process starts, as Kubernetes does once
// it was ready.
const (
	firstProbe   = 2 * time.Millisecond
	slowestProbe = 100 * time.Millisecond
	probePeriod  = 2 * time.Second
	probeTimeout = 2 * time.Second
	probeMisses  = 3 // in a row take a replica out of the routing
)

// stopWait is how long calls may go on before their process gets SIGTERM when the
// platform as a whole ends: nobody scales anything any more, and a function that
// holds a long answer learns by the signal that it shall end it.
const stopWait = 3 * time.Second

// killGrace is what a process has beyond its drain time before it is killed.
const killGrace = time.Second

var errExit0 = errors.New("exit status 0")

// replica is one process of a function.
type replica struct {
	id      string
	gen     int // of the function's spec
	spec    *spec
	address string // host:port it must listen on
	delay   time.Duration
	begun   time.Time // decision to start it
	hold    bool      // the port is kept; not after failed starts: some servers cannot share it

	// Guarded by the function's mutex.
	state    replicaState
	inflight int
	readyAt  time.Time // zero = never was
	child    *proc.Child
	spawned  time.Time
	usage    meter

	drain chan struct{} // closed when it shall end
	idle  chan struct{} // closed when it shall end and has no calls
	ask   chan struct{} // asks for a probe now
}

// live runs a replica from its delayed start to its end. It returns an error
// when it ended without being asked to.
func (f *function) live(r *replica) error {
	select {
	case <-time.After(r.delay):
	case <-r.drain:
		return nil
	case <-f.p.hurry:
		return nil
	}
	port, err := reservePort()
	if err != nil {
		return err
	}
	defer port.release()
	dir := f.p.state.path("run", r.id)
	defer f.p.clear(r.id)
	if !r.hold {
		port.release()
	}
	child, logs, err := f.spawn(r, port.address, dir)
	if err != nil {
		return err
	}
	defer logs.Wait()
	f.mu.Lock()
	r.address, r.child, r.spawned = port.address, child, time.Now()
	f.mu.Unlock()
	if err := f.p.state.record(r.id+".pid", child.ID); err != nil {
		f.p.log.Warn("cannot record a replica", "replica", r.id, "error", err)
	}

	if err := f.watch(r, child); err != nil {
		return err
	}
	return f.end(r, child)
}

// spawn prepares the replica's folder and starts its process in it.
func (f *function) spawn(r *replica, address, dir string) (*proc.Child, *logPipe, error) {
	tmp, secrets := filepath.Join(dir, "tmp"), filepath.Join(dir, "secrets")
	for _, d := range []string{tmp, secrets} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, nil, fmt.Errorf("replica folder: %w", err)
		}
	}
	if err := f.p.mountSecrets(r.spec.Secrets, secrets); err != nil {
		return nil, nil, err
	}
	logs, err := f.p.logs.pipe(f.name, r.id)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(r.spec.command[0], r.spec.command[1:]...)
	cmd.Dir = tmp
	cmd.Env = f.p.environment(r.spec, address, tmp, secrets)
	cmd.Stdout, cmd.Stderr = logs.w, logs.w
	child, err := f.p.spawner.Start(cmd, syscall.SIGKILL)
	logs.started()
	if err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", f.name, err)
	}
	return child, logs, nil
}

// watch follows a running process until it shall end (nil) or has ended by
// itself (an error): it takes the replica into the routing when it answers that
// it is ready, and out of it after several misses.
func (f *function) watch(r *replica, child *proc.Child) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // nothing of a probe may hold up the end
		select {
		case <-r.drain:
		case <-child.Done():
		case <-ctx.Done():
		}
		cancel()
	}()
	wait, misses := firstProbe, 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.drain:
			return nil
		case <-f.p.hurry: // whether or not anybody has said so to this function
			return nil
		case <-child.Done():
			return fmt.Errorf("the process ended by itself: %w", cmp.Or(child.Err(), errExit0))
		case <-r.ask:
			wait, misses = firstProbe, 0
		case <-timer.C:
		}
		switch {
		case f.probe(ctx, r):
			f.becomeReady(r)
			wait, misses = probePeriod, 0
		case wait < probePeriod:
			wait = min(wait*5/4, slowestProbe)
		default:
			if misses++; misses == probeMisses {
				f.becomeUnready(r)
			}
		}
		timer.Reset(wait)
	}
}

// probe asks whether the replica is ready.
func (f *function) probe(ctx context.Context, r *replica) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+r.spec.readyPath, nil)
	if err != nil {
		return false
	}
	resp, err := f.p.upstream.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4096) // so that the connection can be used again
	return r.spec.answersReady(resp.StatusCode)
}

// awaitIdle returns when a draining replica has no more calls, or no more time.
func (f *function) awaitIdle(r *replica, child *proc.Child) {
	limit := time.NewTimer(r.spec.drainTime())
	defer limit.Stop()
	leaving := f.p.ctx.Done()
	for {
		select {
		case <-r.idle:
			return
		case <-child.Done():
			return
		case <-f.p.hurry:
			return
		case <-leaving:
			leaving = nil
			limit.Reset(stopWait)
		case <-limit.C:
			f.p.log.Warn("a replica still has calls after its time to drain", "replica", r.id)
			return
		}
	}
}

// end lets the replica finish its calls, asks its group to end, and kills what
// does not.
func (f *function) end(r *replica, child *proc.Child) error {
	f.awaitIdle(r, child)
	if err := child.Signal(syscall.SIGTERM); err != nil {
		f.p.log.Warn("cannot end a replica", "replica", r.id, "error", err)
	}
	limit := time.NewTimer(r.spec.drainTime() + killGrace)
	defer limit.Stop()
	select {
	case <-child.Done():
		return nil
	case <-limit.C:
		f.p.log.Warn("a replica ignores SIGTERM: killed", "replica", r.id)
	case <-f.p.hurry:
	}
	if err := child.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-child.Done()
	return nil
}
