package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// show prints what happens, and keeps the courses of the farms.
type show struct {
	farm  *farm
	begun time.Time
	every time.Duration // between lines of progress

	mu      sync.Mutex         // guards the courses themselves
	courses map[string]*course // of all farms
}

func newShow(f *farm, begun time.Time, every time.Duration) *show {
	s := &show{farm: f, begun: begun, every: every, courses: map[string]*course{}}
	for name := range f.settings {
		s.courses[name] = &course{begun: begun}
	}
	return s
}

// begin lets the course of a farm begin now.
func (s *show) begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.courses[name] = &course{begun: time.Now()}
}

// say prints a line with the time since the beginning.
func (s *show) say(format string, args ...any) { s.at(time.Now(), fmt.Sprintf(format, args...)) }

func (s *show) at(t time.Time, line string) {
	d := int(max(0, t.Sub(s.begun)).Seconds())
	fmt.Printf("%2d:%02d  %s\n", d/60, d%60, line)
}

// watch looks every second, and tells what is new, until the context ends.
func (s *show) watch(ctx context.Context) {
	var last string
	var said time.Time
	for ctx.Err() == nil {
		line := s.progress(ctx) + s.control(ctx)
		if line != "" && line != last && time.Since(said) >= s.every && ctx.Err() == nil {
			s.say("%s", strings.TrimSuffix(line, "; "))
			last, said = line, time.Now()
		}
		_ = sleep(ctx, time.Second) // the loop looks at the context
	}
}

// progress tells how far the farms are that have something to do.
func (s *show) progress(ctx context.Context) (line string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, name := range farms {
		v, err := s.farm.client.Farm(ctx, name)
		if err != nil || v.Queue == nil {
			return "the dispatcher does not answer; "
		}
		if q := v.Queue; q.Waiting+q.Leased > 0 {
			line += fmt.Sprintf("%s %d/%d workers, %d done, %d wait; ", name, v.Ready, v.Target, q.Done, q.Waiting)
		}
	}
	return line
}

// control takes over the new receipts of all farms, and tells what was decided.
func (s *show) control(ctx context.Context) (problem string) {
	for _, name := range farms {
		v, err := s.farm.look(ctx, name)
		if err != nil {
			return "the controller does not answer; "
		}
		s.mu.Lock()
		for _, r := range slices.Backward(v.Receipts) { // oldest first
			news := s.courses[name].add(&r)
			switch {
			case news == "", name == thumbnail:
			case name == montecarlo:
				s.at(r.At, news)
			case r.Replicas != r.Before || r.HandedBack != nil:
				s.at(r.At, name+" "+news)
			}
		}
		s.mu.Unlock()
	}
	return ""
}

// shrunk reports whether the farm has been scaled down.
func (s *show) shrunk() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.courses[montecarlo].downs > 0
}

// shrink waits, so long at most, until the farm has been scaled down.
func (s *show) shrink(ctx context.Context, patience time.Duration) error {
	for end := time.Now().Add(patience); !s.shrunk() && time.Now().Before(end); {
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
