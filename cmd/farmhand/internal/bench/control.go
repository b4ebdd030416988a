package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"farmhand/controller"
	"farmhand/controller/rediskeeper"
	"farmhand/controller/redispast"
	"farmhand/skeleton"
	"farmhand/skeleton/signal"
	"farmhand/skeleton/signal/redissignal"
)

// ControlConfig of the controller's benchmark.
type ControlConfig struct {
	Tick  int           // farms of the timed tick (200)
	Farms int           // farms of the loop (1,000)
	Loop  time.Duration // how long it runs (60 s)
	Idle  time.Duration // with two farms at rest (20 s)
	Runs  int
	Seed  uint64
	Log   func(format string, args ...any)
}

// Control measures the controller on a real redis-server and a simulated
// gateway: a tick over many farms, how late ticks are with a thousand, and the
// processor it takes at rest.
func Control(ctx context.Context, c ControlConfig) (*Report, error) {
	r := NewReport(c.Seed)
	var ticks []float64
	for i := 0; i <= c.Runs; i++ { // the first is a warm-up: it reads all that is kept
		d, err := timedTick(ctx, c.Tick)
		if err != nil {
			return nil, err
		}
		c.Log("tick %d of %d over %d farms: %s", i, c.Runs, c.Tick, d)
		if i > 0 {
			ticks = append(ticks, milliseconds(d))
		}
	}
	r.Add(fmt.Sprintf("controller_tick_%d_farms_ms", c.Tick), ticks)
	late, _, err := loop(ctx, c.Farms, c.Loop)
	if err != nil {
		return nil, err
	}
	c.Log("%d ticks of %d farms: lateness p50 %s, p99 %s", len(late), c.Farms, quantile(late, 0.5), quantile(late, 0.99))
	r.Figures[fmt.Sprintf("controller_jitter_%d_farms_p50_s", c.Farms)] = quantile(late, 0.5).Seconds()
	r.Figures[fmt.Sprintf("controller_jitter_%d_farms_p99_s", c.Farms)] = quantile(late, 0.99).Seconds()
	_, busy, err := loop(ctx, 2, c.Idle)
	if err != nil {
		return nil, err
	}
	r.Figures["controller_idle_core_share"] = busy
	r.Note("the gateway is simulated: lists and calls cost nothing; dispatchers write a second for each farm all along")
	return r, nil
}

// controlRig is a controller over n farms.
type controlRig struct {
	*rig
	gateway *simulated
	signals *redissignal.Store
	c       *controller.Controller

	mu   sync.Mutex
	late []time.Duration // guarded by mu
}

func newControlRig(ctx context.Context, n int) (*controlRig, error) {
	base, err := newRig(ctx, 1)
	if err != nil {
		return nil, err
	}
	g := &controlRig{rig: base, gateway: newSimulated(n), signals: redissignal.New(base.client, redissignal.Options{})}
	g.c, err = controller.New(controller.Config{Platform: g.gateway, Ledgers: base.store, Signals: g.signals, Keeper: rediskeeper.New(base.client, nil),
		Receipts: redispast.New(base.client, nil), Ticked: func(_ string, late time.Duration) {
			g.mu.Lock()
			g.late = append(g.late, late)
			g.mu.Unlock()
		}})
	if err != nil {
		return nil, errors.Join(err, base.close())
	}
	return g, g.second(ctx)
}

func (g *controlRig) close() error {
	g.c.Stop()
	return g.rig.close()
}

// second is what dispatchers write once a second: here, that tasks come and go.
func (g *controlRig) second(ctx context.Context) error {
	d := signal.Deltas{}
	for _, name := range g.gateway.names {
		t := d.Of(name)
		t.Starts = 5
		for i := range 5 {
			x := 0.04 * float64(i+1)
			t.Wait.Add(x / 10)
			t.Service.Add(x)
			t.Sojourn.Add(1.1 * x)
		}
	}
	return g.signals.Flush(ctx, d)
}

// timedTick is the time of one step in which all farms decide.
func timedTick(ctx context.Context, n int) (d time.Duration, err error) {
	g, err := newControlRig(ctx, n)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.c.Step(ctx); err != nil { // takes the leases
		return 0, err
	}
	select {
	case <-time.After(skeleton.DefaultInterval):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err := g.second(ctx); err != nil {
		return 0, err
	}
	before := len(g.late)
	began := time.Now()
	if err := g.c.Step(ctx); err != nil {
		return 0, err
	}
	d = time.Since(began)
	if got := len(g.late) - before; got != n {
		return 0, fmt.Errorf("bench: %d of %d farms decided", got, n)
	}
	return d, nil
}

// loop runs the controller's loop, and returns how late its ticks were and the
// share of a core that this process took. The signals are written by a process
// of their own in production: their share is small, and counted against us.
func loop(ctx context.Context, n int, length time.Duration) (late []time.Duration, busy float64, err error) {
	g, err := newControlRig(ctx, n)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	g.c.Start()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	began, cpu := time.Now(), processor()
	for time.Since(began) < length {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		if err := g.second(ctx); err != nil {
			return nil, 0, err
		}
	}
	busy = (processor() - cpu).Seconds() / time.Since(began).Seconds()
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.c.Status(); s.Error != "" {
		return nil, 0, errors.New(s.Error)
	}
	return append(late, g.late...), busy, nil
}

// processor is the time that this process has run.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for ourselves
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// simulated is a gateway in memory: replicas are ready at once.
type simulated struct {
	names []string

	mu      sync.Mutex
	desired map[string]int // guarded by mu
}

func newSimulated(n int) *simulated {
	s := &simulated{desired: map[string]int{}}
	for i := range n {
		name := fmt.Sprintf("farm-%04d", i)
		s.names = append(s.names, name)
		s.desired[name] = 1
	}
	return s
}

// Workers implements controller.Platform.
func (s *simulated) Workers(context.Context) ([]controller.Worker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]controller.Worker, len(s.names))
	for i, name := range s.names {
		list[i] = controller.Worker{Name: name, Desired: s.desired[name], Ready: s.desired[name],
			Annotations: map[string]string{skeleton.AnnotationDeadline: "1s"}}
	}
	return list, nil
}

// Replicas implements controller.Platform.
func (s *simulated) Replicas(_ context.Context, name string) (desired, ready int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.desired[name], s.desired[name], nil
}

// Scale implements controller.Platform.
func (s *simulated) Scale(_ context.Context, name string, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.desired[name] = n
	return nil
}

// Usage implements controller.Platform.
func (s *simulated) Usage(context.Context, string) (u controller.Usage, ok bool, err error) {
	return u, false, nil
}
