package work

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"farmhand/policy"
	"farmhand/trainer"
)

// session is one slice of a run.
type session struct {
	*Worker
	run    trainer.Run
	holder string
	state  state
	until  time.Time // when its time is over
	began  time.Time // the phase, or this slice of it

	mu       sync.Mutex
	progress trainer.Progress // guarded by mu; run.Progress when the slice is over
}

// serve the slice: wait for a place, work, and tell on the way that somebody does.
func (s *session) serve(ctx context.Context) error {
	saved, err := s.cfg.Store.Checkpoint(ctx, &s.run)
	if errors.Is(err, trainer.ErrGone) {
		return fail(err)
	}
	if err != nil {
		return err
	}
	if err := s.state.load(saved); err != nil {
		return fail(err)
	}
	s.progress = s.state.progress
	held, stop := s.hold(ctx)
	err = s.place(held)
	stop()
	if cause := context.Cause(held); errors.Is(cause, trainer.ErrLost) {
		return cause
	}
	s.run.Progress = s.progress
	return err
}

// place works where there is a place. Where there is none for the time of a slice, the
// next slice tries again: who waits for long looks dead.
func (s *session) place(ctx context.Context) error {
	patience := time.NewTimer(s.cfg.Slice)
	defer patience.Stop()
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-patience.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	began := s.cfg.Now()
	s.began, s.until = began, began.Add(s.cfg.Slice)
	defer func() {
		s.state.spent += s.cfg.Now().Sub(s.began).Seconds()
		s.tell(func(p *trainer.Progress) { p.Spent += s.cfg.Now().Sub(began).Seconds() })
	}()
	return s.work(ctx)
}

// work until the time is over. A panic of what simulates or learns would come again.
func (s *session) work(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.cfg.Log.Error("a training panics", "run", s.run.ID, "panic", v, "stack", string(debug.Stack()))
			err = fail(fmt.Errorf("work: a panic: %v; the function's log has where", v))
		}
	}()
	for first := true; s.run.State == trainer.Running && (first || s.more()); first = false {
		if err := s.phase(ctx); err != nil {
			return err
		}
	}
	return nil
}

// more reports whether there is time left.
func (s *session) more() bool { return !s.draining.Load() && s.cfg.Now().Before(s.until) }

// hold tells that the run is worked at, and how far it is, until stop is called. held
// ends when the run is lost, to a cancellation or to another holder.
func (s *session) hold(ctx context.Context) (held context.Context, stop func()) {
	held, lost := context.WithCancelCause(ctx)
	over := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(s.beat)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			s.mu.Lock()
			p := s.progress
			s.mu.Unlock()
			call, cancel := context.WithTimeout(held, s.beat)
			err := s.cfg.Store.Hold(call, s.run.ID, s.holder, p)
			cancel()
			switch {
			case errors.Is(err, trainer.ErrLost):
				lost(err)
				return
			case err != nil: // the commit will tell whether it matters
				s.cfg.Log.Warn("a training's progress could not be kept", "run", s.run.ID, "error", err)
			}
		}
	})
	return held, func() {
		close(over)
		done.Wait()
		lost(nil)
	}
}

// tell changes the progress.
func (s *session) tell(change func(*trainer.Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.progress)
}

// share tells how much of the phase is done, and when it will be over.
func (s *session) share(done float64) {
	spent := s.state.spent + s.cfg.Now().Sub(s.began).Seconds()
	s.tell(func(p *trainer.Progress) {
		p.Share, p.Left = done, policy.Unknown
		if done > 0 {
			p.Left = policy.Maybe(spent * (1 - done) / done)
		}
	})
}

// enter a phase.
func (s *session) enter(p trainer.Phase) {
	s.state.spent, s.began = 0, s.cfg.Now()
	s.tell(func(q *trainer.Progress) { q.Phase, q.Share, q.Left = p, 0, policy.Unknown })
}

// commit the slice. Redis may be away for a while.
func (s *session) commit(ctx context.Context) error {
	var saved []byte
	if s.run.State == trainer.Running {
		var err error
		s.state.progress = s.run.Progress
		if saved, err = s.state.save(); err != nil {
			s.run.State, s.run.Error, saved = trainer.Failed, clip(err.Error()), nil
		}
	}
	return again(ctx, func() error { return s.cfg.Store.Commit(ctx, &s.run, s.holder, saved) },
		func(err error) bool { return !errors.Is(err, trainer.ErrLost) })
}

// again tries something a few times, within seconds.
func again(ctx context.Context, do func() error, worthwhile func(error) bool) error {
	pause := backoff.NewExponentialBackOff()
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := do()
		if err != nil && !worthwhile(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(patience))
	return err
}

// patience with Redis and the gateway: less than a lease.
const patience = 10 * time.Second
