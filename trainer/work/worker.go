// Package work does the slices of trainings.
//
// A run has three phases. Calibrate makes a simulated farm of the telemetry and finds
// the parameters of the rule that the gate compares with; Learn plays it (package
// train); Judge asks the gate, and promotes what it lets through. A slice goes on with
// them until its time is over, at the next point where the state can be kept. What
// comes out does not depend on where the cuts were.
package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"farmhand/evaluate"
	"farmhand/gate"
	"farmhand/registry"
	"farmhand/sim/workload"
	"farmhand/skeleton"
	"farmhand/telemetry"
	"farmhand/train"
	"farmhand/trainer"
)

// Farms tells which farms there are.
type Farms interface {
	Roster(ctx context.Context) (skeleton.Roster, error)
}

// Telemetry is the past of farms.
type Telemetry interface {
	Rows(ctx context.Context, farm string, from, to time.Time) ([]telemetry.Row, error)
	Periods(ctx context.Context, farm string, from, to time.Time) ([]telemetry.Period, error)
}

// Config of a Worker. All but Log are needed.
type Config struct {
	Store     trainer.Store
	Queue     trainer.Poster
	Key       trainer.Key
	Registry  registry.Registry
	Farms     Farms
	Telemetry Telemetry
	Slice     time.Duration // how long one lasts
	Places    int           // slices at the same time
	Jobs      int           // simulations of a slice at the same time
	Now       func() time.Time
	Log       *slog.Logger // nil: silent
}

// Worker does slices. It is safe for concurrent use.
type Worker struct {
	cfg      Config
	places   chan struct{}
	draining atomic.Bool
	beat     time.Duration // between two signs of life
	knobs    knobs
}

// knobs are turned by tests, for work of milliseconds. Nil: nothing is changed.
type knobs struct {
	scenario func(*workload.Scenario)
	search   func(*evaluate.Budget)
	train    func(*train.Config)
	gate     func(*gate.Config)
}

// turn a knob.
func turn[T any](knob func(*T), of *T) {
	if knob != nil {
		knob(of)
	}
}

// New makes a Worker.
func New(cfg Config) *Worker {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Worker{cfg: cfg, places: make(chan struct{}, cfg.Places), beat: trainer.Lease / 5}
}

// Drain lets slices end at the next point where they can, and begins no more.
func (w *Worker) Drain() { w.draining.Store(true) }

// The errors, beside those of package trainer.
var (
	ErrDraining    = errors.New("work: this process is about to end")
	ErrUnknownFarm = errors.New("work: no such farm")
)

// Start a run with an id, unless it is known. It reports which run that is, and whether
// it is new.
func (w *Worker) Start(ctx context.Context, id string, r trainer.Request) (trainer.Run, bool, error) {
	if r.Farm != "" {
		roster, err := w.cfg.Farms.Roster(ctx)
		if err != nil {
			return trainer.Run{}, false, fmt.Errorf("work: %w", err)
		}
		f, ok := roster.Find(r.Farm)
		if !ok {
			return trainer.Run{}, false, fmt.Errorf("%w: %.80q", ErrUnknownFarm, r.Farm)
		}
		if f.Settings.EffectiveDeadline() == 0 {
			return trainer.Run{}, false, fmt.Errorf("%w: %.80q", trainer.ErrNoDeadline, r.Farm)
		}
	}
	return w.start(ctx, id, r, 0)
}

func (w *Worker) start(ctx context.Context, id string, r trainer.Request, apart time.Duration) (trainer.Run, bool, error) {
	r.Run = ""
	run, created, err := w.cfg.Store.Create(ctx, id, r, w.cfg.Slice, apart)
	if err == nil && created {
		w.post(ctx, id, 0)
	}
	return run, created, err
}

// Scheduled begins what a schedule asks for: a training of each farm whose policy is
// "learned" and that had none by schedule for half a day.
func (w *Worker) Scheduled(ctx context.Context) error {
	roster, err := w.cfg.Farms.Roster(ctx)
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	for _, f := range roster.Farms {
		if f.Settings.Policy != "learned" || f.Missing > 0 {
			continue
		}
		if f.Settings.EffectiveDeadline() == 0 {
			w.cfg.Log.Warn("a training by schedule is left out: the farm has no deadline, so that nothing is ever late; set farmhand.deadline", "farm", f.Name)
			continue
		}
		r := trainer.DefaultRequest()
		r.Farm, r.Schedule = f.Name, true
		run, _, err := w.start(ctx, uuid.NewString(), r, trainer.Apart)
		switch {
		case errors.Is(err, trainer.ErrEarly):
		case errors.Is(err, trainer.ErrFull):
			w.cfg.Log.Warn("a training by schedule is left out: as many as may be are under way", "farm", f.Name)
		case err != nil:
			return err
		default:
			w.cfg.Log.Info("a training by schedule", "farm", f.Name, "run", run.ID)
		}
	}
	return nil
}

// Slice does a slice of a run, and posts the next one. The error wraps one of package
// trainer where there is nothing to do; after any other one the run is as it was, and a
// Watch posts the slice again.
func (w *Worker) Slice(ctx context.Context, t trainer.Ticket) error {
	if w.draining.Load() {
		return ErrDraining
	}
	holder := uuid.NewString()
	run, err := w.cfg.Store.Begin(ctx, t.Run, t.Slice, holder)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // whoever asked may have no more patience
	s := &session{Worker: w, run: run, holder: holder}
	err = s.serve(ctx)
	var failed *failure
	switch {
	case errors.As(err, &failed):
		w.cfg.Log.Warn("a training has failed", "run", run.ID, "farm", run.Request.Farm, "error", failed.err)
		s.run.State, s.run.Error = trainer.Failed, clip(failed.err.Error())
	case err != nil:
		return err
	}
	if err := s.commit(ctx); err != nil {
		return err
	}
	if s.run.State == trainer.Running {
		w.post(ctx, t.Run, t.Slice+1)
	}
	return nil
}

// post the next slice. Where that cannot be done, a Watch will.
func (w *Worker) post(ctx context.Context, run string, slice int) {
	err := again(ctx, func() error { return w.cfg.Queue.Post(ctx, w.cfg.Key.Ticket(run, slice)) }, func(error) bool { return true })
	if err != nil {
		w.cfg.Log.Warn("the next slice could not be posted; it will be when it is overdue", "run", run, "slice", slice, "error", err)
	}
}

// failure is an error that would come again.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(err error) error {
	if err == nil {
		return nil
	}
	return &failure{err}
}

func clip(s string) string {
	const most = 1000
	return s[:min(len(s), most)]
}
