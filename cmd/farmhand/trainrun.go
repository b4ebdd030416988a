package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"farmhand/internal/atomicfile"
	"farmhand/train"
)

// training is one learner's.
type training struct {
	cfg        train.Config
	name       string // before each line; empty for the only one
	out        string // policy file; empty: none
	checkpoint string // empty: none
	every      time.Duration
	talk       io.Writer

	curve  []train.Point
	chosen train.Point
	file   []byte // the policy; nil: there is none
}

// trainAll lets as many learn at once as there are jobs. Who fails does not stop the
// others.
func trainAll(ctx context.Context, runs []*training, jobs int) error {
	var g errgroup.Group
	g.SetLimit(jobs)
	var mu sync.Mutex
	for _, r := range runs {
		r.talk = &lineWriter{w: r.talk, mu: &mu}
		g.Go(func() error {
			if err := r.run(ctx); err != nil {
				return fmt.Errorf("%s%w", r.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// lineWriter lets several write whole lines.
type lineWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lineWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// run learns to the end, or until ctx is done; the best policy until then is written.
func (r *training) run(ctx context.Context) error {
	t, err := r.begin()
	if err != nil {
		return err
	}
	var stopped error
	for done := false; !done && stopped == nil; {
		until := time.Now().Add(r.every)
		done, stopped = t.Slice(ctx, func() bool { return r.checkpoint != "" && !time.Now().Before(until) })
		if stopped != nil && !errors.Is(stopped, ctx.Err()) {
			return stopped
		}
		if err := r.keep(t); err != nil {
			return errors.Join(stopped, err)
		}
	}
	r.curve = t.Curve()
	if r.out == "" {
		return r.member(t, stopped)
	}
	if stopped != nil && len(r.curve) == 0 {
		return fmt.Errorf("no round was done, and no policy is written: %w", stopped)
	}
	file, best, err := t.Policy()
	if err != nil {
		return errors.Join(stopped, err)
	}
	if err := atomicfile.Write(r.out, file, 0o644); err != nil {
		return err
	}
	r.chosen, r.file = best, file
	if stopped != nil {
		return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted: %s is the best until step %d", r.out, t.Steps())}
	}
	return nil
}

// member keeps what was learned for a policy that several make.
func (r *training) member(t *train.Trainer, stopped error) (err error) {
	switch {
	case stopped != nil && r.checkpoint != "":
		return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted at step %d: begun again it goes on with %s", t.Steps(), r.checkpoint)}
	case stopped != nil:
		return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted at step %d, and nothing is written: want --checkpoint to go on from", t.Steps())}
	}
	r.file, r.chosen, err = t.Member()
	return err
}

// begin anew, or where a checkpoint is.
func (r *training) begin() (*train.Trainer, error) {
	tell := &pace{r: r, began: time.Now()}
	r.cfg.Done = tell.line
	if r.checkpoint == "" {
		return train.New(r.cfg)
	}
	file, err := os.Open(r.checkpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return train.New(r.cfg)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	t, err := train.Load(file, r.cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; delete it to begin anew", r.checkpoint, err)
	}
	tell.first = t.Steps()
	fmt.Fprintf(r.talk, "%sgoes on from step %d\n", r.name, t.Steps())
	return t, nil
}

// keep what was learned.
func (r *training) keep(t *train.Trainer) error {
	if r.checkpoint == "" {
		return nil
	}
	var b bytes.Buffer
	if err := t.Save(&b); err != nil {
		return err
	}
	return atomicfile.Write(r.checkpoint, b.Bytes(), 0o644)
}

// pace tells how learning goes, and when it will be done.
type pace struct {
	r     *training
	began time.Time
	first int // step
}

func (p *pace) line(at train.Point) {
	speed := float64(at.Steps-p.first) / time.Since(p.began).Seconds()
	left := "choosing among the best"
	if n := p.r.cfg.Steps - at.Steps; n > 0 {
		left = fmt.Sprintf("%v left", time.Duration(float64(n)/speed*float64(time.Second)).Round(time.Second))
	}
	behind := ""
	if len(at.Cases) > 1 {
		behind = fmt.Sprintf("  short %.2f  cost %.3f", at.Short, at.Cost)
	} else {
		behind = fmt.Sprintf("  late weight %.3g", at.Cases[0].Late)
	}
	fmt.Fprintf(p.r.talk, "%s%9d steps  %6.2f %% on time  %6.2f workers  %4.0f actions/h%s  %5.0f steps/s  %s\n",
		p.r.name, at.Steps, 100*at.OnTime, at.Workers, at.Actions, behind, speed, left)
}

// summary tells what was written.
func summary(out io.Writer, runs []*training, actions float64) {
	list := slices.DeleteFunc(slices.Clone(runs), func(r *training) bool { return r.file == nil })
	if len(list) == 0 {
		return
	}
	if len(runs) == 1 {
		reached(out, list[0].out, fmt.Sprintf("of step %d", list[0].chosen.Steps), &list[0].chosen)
		return
	}
	slices.SortStableFunc(list, func(a, b *training) int { return train.Compare(&a.chosen, &b.chosen, actions) })
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tseed\ton time %\tworkers\tactions/h\tof step\tpolicy")
	for i, r := range list {
		mark := ""
		switch i {
		case (len(list) - 1) / 2:
			mark = "median"
		case 0:
			mark = "best"
		case len(list) - 1:
			mark = "worst"
		}
		p := &r.chosen
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%.0f\t%d\t%s\n", mark, r.cfg.Seed, 100*p.OnTime, p.Workers, p.Actions, p.Steps, r.out)
	}
	_ = w.Flush() // as Fprintf to it
	fmt.Fprintln(out, "on the training seeds; farmhand report learned judges them on others")
}

// reached tells what a policy came to, with a row for each of several scenarios.
func reached(out io.Writer, name, of string, p *train.Point) {
	fmt.Fprintf(out, "%s: %.2f %% on time with %.2f workers, %.0f actions/h, on the training seeds (%s)\n",
		name, 100*p.OnTime, p.Workers, p.Actions, of)
	if len(p.Cases) < 2 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scenario\ton time %\tworkers\tactions/h")
	for _, c := range p.Cases {
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.0f\n", c.Scenario, 100*c.OnTime, c.Workers, c.Actions)
	}
	_ = w.Flush()
}
