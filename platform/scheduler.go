package platform

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// longestSleep is how long the scheduler goes without a look at the clock, which
// may have been set, or have run on while the machine slept.
const longestSleep = time.Minute

// clock tells the time, and when a time has come.
type clock interface {
	Now() time.Time
	At(t time.Time) (come <-chan time.Time, stop func())
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) At(t time.Time) (<-chan time.Time, func()) {
	timer := time.NewTimer(time.Until(t))
	return timer.C, func() { timer.Stop() }
}

// scheduler calls functions by the clock: each at its times, one run at a time.
// Times that pass while the platform is down, or while a run goes on, are left
// out.
type scheduler struct {
	clock clock
	log   *slog.Logger
	call  func(function string, async bool) (status int, err error)
	runs  *sync.WaitGroup
	wake  chan struct{}

	mu   sync.Mutex // guards the rest
	jobs map[string]*job
}

// job is a function that has a plan.
type job struct {
	name string
	plan *plan
	Schedule
}

func newScheduler(c clock, log *slog.Logger, runs *sync.WaitGroup, call func(string, bool) (int, error)) *scheduler {
	return &scheduler{clock: c, log: log, call: call, runs: runs, wake: make(chan struct{}, 1), jobs: map[string]*job{}}
}

// set gives a function its plan; nil takes it away. The same plan again changes
// nothing: a deployment does not put off the next run.
func (s *scheduler) set(function string, p *plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[function]
	switch {
	case p == nil:
		delete(s.jobs, function)
		return
	case j == nil:
		j = &job{name: function}
		s.jobs[function] = j
	case j.plan.text == p.text:
		j.plan, j.Async = p, p.async
		return
	}
	j.plan, j.Schedule.Schedule, j.Async, j.NextRun = p, p.text, p.async, p.next(s.clock.Now())
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// describe returns the schedule of a function, or nil.
func (s *scheduler) describe(function string) *Schedule {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[function]
	if j == nil {
		return nil
	}
	d := j.Schedule
	return &d
}

// loop starts runs when their time has come, until ctx ends. Runs under way then
// go on.
func (s *scheduler) loop(ctx context.Context) {
	for {
		due, look := s.due()
		for _, j := range due {
			s.runs.Go(func() { s.run(j) })
		}
		var come <-chan time.Time
		stop := func() {}
		if !look.IsZero() {
			come, stop = s.clock.At(look)
		}
		select {
		case <-come:
		case <-s.wake:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// due returns the jobs whose time has come, marked as running, and when to look
// again; zero = when a plan is set.
func (s *scheduler) due() (due []*job, look time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.wake: // this is the look that was asked for
	default:
	}
	now := s.clock.Now().Round(0)
	for _, j := range s.jobs {
		next := j.plan.next(now)
		switch {
		case j.NextRun.IsZero(): // never again
		case j.NextRun.After(now):
			if j.NextRun.After(next) { // the clock was set back
				j.NextRun = next
			}
		default:
			j.NextRun = next
			if j.Running {
				j.Skipped++
				s.log.Warn("a scheduled run is left out: the one before is not over", "function", j.name, "schedule", j.plan.text)
				break
			}
			j.Running, j.LastRun = true, now
			due = append(due, j)
		}
		if limit := now.Add(longestSleep); look.IsZero() || limit.Before(look) {
			look = limit
		}
		if !j.NextRun.IsZero() && j.NextRun.Before(look) {
			look = j.NextRun
		}
	}
	return due, look
}

// run calls a function once.
func (s *scheduler) run(j *job) {
	begun := s.clock.Now()
	s.mu.Lock()
	async := j.Async
	s.mu.Unlock()
	status, err := s.call(j.name, async)
	s.mu.Lock()
	j.Running, j.LastStatus = false, status
	s.mu.Unlock()
	took := s.clock.Now().Sub(begun).Round(time.Millisecond)
	if err != nil || status >= 400 {
		s.log.Warn("a scheduled run failed", "function", j.name, "status", status, "took", took, "async", async, "error", err)
		return
	}
	s.log.Info("scheduled run", "function", j.name, "status", status, "took", took, "async", async)
}
