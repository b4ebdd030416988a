package controller_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"farmhand/controller"
	"farmhand/policy"
)

// pupil is a learned policy that wishes for a count, unless it is told otherwise. It
// takes its time.
type pupil struct {
	name  string
	n     int
	made  int     // 0: as the observations are
	rule  float64 // wish of its rule; 0: three
	law   string  // its rule; "": one that wishes so
	back  string  // its fallback; "": its rule
	takes time.Duration
	judge func(o *policy.Observation) (n int, widths float64) // nil: n
}

func (p *pupil) Name() string { return "learned:" + p.name }

func (p *pupil) Made() int {
	if p.made != 0 {
		return p.made
	}
	return policy.ObservationVersion
}

func (p *pupil) Rule() policy.Policy {
	law, err := policy.New(cmp.Or(p.law, fmt.Sprintf("static:n=%g", cmp.Or(p.rule, 3))))
	if err != nil {
		panic(err)
	}
	return law
}

func (p *pupil) Fallback() policy.Policy {
	law, err := policy.New(cmp.Or(p.back, p.Rule().Name()))
	if err != nil {
		panic(err)
	}
	return law
}

func (p *pupil) Decide(o *policy.Observation, m policy.Memory) policy.Decision {
	d, _ := p.Judge(o, m)
	return d
}

func (p *pupil) Judge(o *policy.Observation, m policy.Memory) (policy.Decision, policy.Strange) {
	time.Sleep(p.takes)
	m["asked"]++
	n, widths := p.n, 0.0
	if p.judge != nil {
		n, widths = p.judge(o)
	}
	return policy.Decision{Replicas: n, Reason: "learned so"}, policy.Strange{Feature: "load_short", Widths: widths}
}

// registry keeps pupils by their names.
type registry struct {
	mu        sync.Mutex
	pupils    map[string]*pupil
	champions map[string]string
	terms     map[string]int64
	revision  int64
	err       error  // of everything
	damaged   string // a version that cannot be read
	hang      bool   // until the caller gives up
	reads     int    // of files
}

func (r *registry) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// promote makes a pupil the champion of a farm.
func (r *registry) promote(farm string, p *pupil) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pupils[p.name], r.champions[farm] = p, p.name
	r.terms[farm]++
	r.revision++
}

func (r *registry) enter(ctx context.Context) error {
	r.mu.Lock()
	hang, err := r.hang, r.err
	r.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (r *registry) Revision(ctx context.Context) (int64, error) {
	err := r.enter(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.revision, err
}

func (r *registry) Champion(ctx context.Context, farm string) (string, int64, error) {
	err := r.enter(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.champions[farm], r.terms[farm], err
}

func (r *registry) Resolve(ctx context.Context, name string) (string, error) {
	err := r.enter(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pupils[name] == nil && err == nil {
		err = errors.New("no such version")
	}
	return name, err
}

func (r *registry) Policy(ctx context.Context, version string) ([]byte, error) {
	err := r.enter(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	return []byte(version), err
}

// load makes a pupil of its file.
func (r *registry) load(file []byte) (policy.Learned, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pupils[string(file)]
	if p == nil || r.damaged == p.name {
		return nil, errors.New("no policy file")
	}
	return p, nil
}

// learned are all pupils there are.
func (r *registry) learned() (list []policy.Learned) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pupils {
		list = append(list, p)
	}
	return list
}

// referee is a controller.Referee that takes its time. What was done cost 1200
// worker-seconds; what a policy costs is its wish for an observation, in hundreds.
type referee struct {
	takes time.Duration

	mu     sync.Mutex
	onTime policy.Maybe // of what was done; else all is
	err    error
	asked  [][]policy.Observation // by Actual
	at     []time.Time
}

func (r *referee) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *referee) estimate(past []policy.Observation, onTime policy.Maybe, cost float64) policy.Estimate {
	return policy.Estimate{Seconds: past[len(past)-1].At.Sub(past[0].At).Seconds(), Tasks: 600, OnTime: onTime, WorkerSeconds: cost}
}

func (r *referee) Actual(ctx context.Context, past []policy.Observation) (policy.Estimate, error) {
	time.Sleep(r.takes)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.at = append(r.asked, past), append(r.at, time.Now())
	return r.estimate(past, r.onTime, 1200), r.err
}

func (r *referee) Estimate(_ context.Context, past []policy.Observation, p policy.Policy) (policy.Estimate, error) {
	return r.estimate(past, 1, 100*float64(p.Decide(&past[0], policy.Memory{}).Replicas)), nil
}

// learning is a configuration whose controllers have the world's registry.
func (w *world) learning(owner string) controller.Config {
	cfg := w.config(owner)
	cfg.Registry, cfg.Load, cfg.Referee = w.registry, w.registry.load, w.referee
	return cfg
}

// teach starts such a controller and lets it look around.
func (w *world) teach(owner string) *controller.Controller {
	w.t.Helper()
	c := w.create(w.learning(owner))
	c.Start()
	w.after(10 * time.Millisecond)
	return c
}
