package controller_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"farmhand/controller"
)

// function is a worker of the platform.
type function struct {
	controller.Worker
	startup     time.Duration
	least, most int           // what the platform clamps counts to; most 0: nothing
	ready       []time.Time   // of each replica
	err         error         // of scale calls
	hang        bool          // scale calls end with their context only
	lag, late   time.Duration // before and after a scale call does something
	cached      time.Duration // for so long after a call the platform shows what was before
	before      int
	scaled      time.Time
}

// call is a scale call.
type call struct {
	at   time.Time
	farm string
	n    int
	err  error
}

// platform is scripted.
type platform struct {
	mu      sync.Mutex
	by      map[string]*function
	calls   []call
	lists   int
	listErr error
	slow    time.Duration // what a list takes on its way back

	usage      controller.Usage
	usageErr   error
	usageHangs bool
	usages     int
}

// add deploys a worker with so many replicas, all ready.
func (p *platform) add(name string, replicas int, annotations ...string) *function {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &function{startup: time.Second, Worker: controller.Worker{Name: name, Labels: map[string]string{"farmhand.worker": "true"}, Annotations: map[string]string{}}}
	for i := 0; i < len(annotations); i += 2 {
		f.Annotations["farmhand."+annotations[i]] = annotations[i+1]
	}
	f.resize(replicas)
	for i := range f.ready {
		f.ready[i] = time.Now()
	}
	p.by[name] = f
	return f
}

func (f *function) resize(n int) {
	f.Desired = n
	for len(f.ready) < n {
		f.ready = append(f.ready, time.Now().Add(f.startup))
	}
	f.ready = f.ready[:n]
}

func (f *function) look() controller.Worker {
	w := f.Worker
	w.Ready = 0
	if time.Since(f.scaled) < f.cached {
		w.Desired = f.before
	}
	for _, at := range f.ready {
		if !at.After(time.Now()) {
			w.Ready++
		}
	}
	w.Annotations = maps.Clone(w.Annotations)
	return w
}

func (p *platform) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *platform) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.by))
}

// made are the scale calls since the last time it was asked, and when it was.
func (p *platform) made() []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = nil
	return calls
}

// listed is how many lists were asked for since the last time.
func (p *platform) listed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.lists
	p.lists = 0
	return n
}

// asked is how many questions for usage came since the last time.
func (p *platform) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.usages
	p.usages = 0
	return n
}

func (p *platform) Workers(ctx context.Context) (workers []controller.Worker, err error) {
	p.mu.Lock()
	p.lists++
	for _, f := range p.by {
		workers = append(workers, f.look())
	}
	err, slow := p.listErr, p.slow
	p.mu.Unlock()
	if slow > 0 {
		<-time.After(slow)
	}
	if err != nil {
		return nil, err
	}
	return workers, ctx.Err()
}

func (p *platform) Replicas(ctx context.Context, name string) (desired, ready int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.by[name].look()
	return w.Desired, w.Ready, ctx.Err()
}

func (p *platform) Scale(ctx context.Context, name string, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	f := p.by[name]
	err, hang, lag, late := f.err, f.hang, f.lag, f.late
	p.calls = append(p.calls, call{time.Now(), name, n, err})
	p.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if lag > 0 {
		<-time.After(lag)
	}
	if err != nil {
		return err
	}
	defer func() {
		if late > 0 {
			<-time.After(late)
		}
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	n = max(n, f.least)
	if f.most > 0 {
		n = min(n, f.most)
	}
	f.before, f.scaled = f.Desired, time.Now()
	f.resize(n)
	return nil
}

func (p *platform) Usage(ctx context.Context, _ string) (controller.Usage, bool, error) {
	p.mu.Lock()
	u, err, hangs := p.usage, p.usageErr, p.usageHangs
	p.usages++
	p.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return controller.Usage{}, false, ctx.Err()
	}
	return u, err == nil && u != controller.Usage{}, err
}
