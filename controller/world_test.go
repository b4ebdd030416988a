package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"farmhand/controller"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/memledger"
	"farmhand/skeleton/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

// errAway is what everything that is kept in Redis says while that is away.
var errAway = errors.New("redis is away")

// world is all that surrounds controllers, in virtual time: a platform, what
// Redis keeps, and a dispatcher that serves every farm.
type world struct {
	t        *testing.T
	ledgers  *ledgers
	platform *platform
	keeper   *keeper
	signals  *signals
	log      *receipts
	registry *registry
	referee  *referee

	mu      sync.Mutex
	shift   time.Duration // of Redis TIME against the clock of the controllers
	pace    time.Duration // of the dispatcher
	service time.Duration // of a task
	silent  bool          // the dispatcher is gone
	jumps   bool          // Redis TIME does
	job     int
	due     time.Duration // of tasks, after they were posted; 0 = none
	done    sync.WaitGroup
}

// in runs a test in virtual time. Whatever the test is about, at its end the
// receipts are looked through.
func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, pace: 100 * time.Millisecond, service: 400 * time.Millisecond,
			platform: &platform{by: map[string]*function{}}, log: &receipts{by: map[string][][]byte{}},
			registry: &registry{pupils: map[string]*pupil{}, champions: map[string]string{}, terms: map[string]int64{}}, referee: &referee{onTime: 1}}
		w.ledgers = &ledgers{Store: memledger.New(memledger.Options{Clock: w.now})}
		w.keeper = &keeper{now: w.now, by: map[string]*kept{}}
		w.signals = &signals{now: w.now, by: map[string][]signal.Second{}}
		ctx, end := context.WithCancel(background)
		w.done.Go(func() { w.dispatch(ctx) })
		t.Cleanup(func() {
			end()
			w.done.Wait()
			w.sound()
		})
		test(t, w)
	})
}

// now is Redis TIME.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.shift).UTC().Round(0)
}

// after lets time pass.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// settle lets two ticks pass and forgets what happened so far.
func (w *world) settle() {
	w.after(2*interval + 500*time.Millisecond)
	w.platform.made()
	w.ledgers.published()
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// config of a controller in this world.
func (w *world) config(owner string) controller.Config {
	return controller.Config{Platform: w.platform, Ledgers: w.ledgers, Signals: w.signals, Keeper: w.keeper, Receipts: w.log, Owner: owner}
}

// create makes a controller that is stopped at the end.
func (w *world) create(cfg controller.Config) *controller.Controller {
	w.t.Helper()
	c, err := controller.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Stop)
	return c
}

// start makes a controller and lets it look around.
func (w *world) start(owner string) *controller.Controller {
	w.t.Helper()
	c := w.create(w.config(owner))
	c.Start()
	w.after(10 * time.Millisecond)
	return c
}

// add deploys a worker that a dispatcher has known for some minutes.
func (w *world) add(name string, replicas int, annotations ...string) *function {
	for s := 250; s > 0; s-- {
		at := w.now().Add(-time.Duration(s) * time.Second)
		w.signals.by[name] = append(w.signals.by[name], signal.Second{Unix: at.Unix(), Snapshot: signal.Snapshot{At: at}})
	}
	return w.platform.add(name, replicas, annotations...)
}

// submit posts n tasks to a farm at once.
func (w *world) submit(farm string, n int) {
	w.t.Helper()
	var id string
	tasks := make([]skeleton.NewTask, n)
	w.set(func() {
		w.job++
		id = fmt.Sprintf("%s~%d", farm, w.job)
		for i := range tasks {
			tasks[i].Deadline = w.due
		}
	})
	s, err := w.ledgers.Store.Farm(farm).Stage(background, ledger.Submission{Job: skeleton.Job{ID: id}})
	if err == nil {
		err = s.Add(background, tasks)
	}
	if err == nil {
		_, err = s.Commit(background)
	}
	if err != nil {
		w.t.Error(err)
	}
}

// stream posts n tasks every tenth of a second until the test stops it.
func (w *world) stream(farm string, n int) (stop func()) {
	ctx, stop := context.WithCancel(background)
	w.done.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.submit(farm, n)
			}
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// run is a task at a worker.
type run struct {
	lease ledger.Lease
	ends  time.Time
}

// dispatch serves all farms at its pace, as many tasks as their windows say, and
// brings what it measures to the signals every second.
func (w *world) dispatch(ctx context.Context) {
	recorder := signal.NewRecorder(w.now)
	running := map[string][]run{}
	beat := time.Now().Add(500 * time.Millisecond)
	for {
		w.mu.Lock()
		pace := w.pace
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pace):
		}
		w.mu.Lock()
		silent, service := w.silent, w.service
		w.mu.Unlock()
		if silent {
			continue
		}
		for _, farm := range w.platform.names() {
			running[farm] = w.serve(farm, running[farm], service, recorder)
		}
		if time.Until(beat) > 0 {
			continue
		}
		beat = time.Now().Add(time.Second)
		counted := recorder.Drain()
		for _, farm := range w.platform.names() {
			w.signals.beat(farm, w.ledgers.Store.Farm(farm), counted.Of(farm))
		}
	}
}

// serve settles what is done and takes what fits.
func (w *world) serve(farm string, running []run, service time.Duration, recorder *signal.Recorder) (still []run) {
	var outcomes []ledger.Outcome
	now := time.Now()
	for _, r := range running {
		if r.ends.After(now) {
			still = append(still, r)
			continue
		}
		outcomes = append(outcomes, ledger.Outcome{Lease: r.lease, Kind: ledger.Success, Status: 200, Service: service})
	}
	settled, taken, err := w.ledgers.Store.Farm(farm).Exchange(background, "d", outcomes, 0, ledger.MaxBatch)
	if err != nil {
		w.t.Errorf("the dispatcher: %v", err)
	}
	recorder.Settled(farm, outcomes, settled.Verdicts, 0)
	recorder.Taken(farm, len(taken.Leases))
	for _, l := range taken.Leases {
		still = append(still, run{l, now.Add(service)})
	}
	return still
}

// override sets overrides through a controller; "" removes one.
func (w *world) override(c *controller.Controller, farm string, pairs ...string) {
	w.t.Helper()
	changes := map[string]*string{}
	for i := 0; i < len(pairs); i += 2 {
		changes[pairs[i]] = nil
		if pairs[i+1] != "" {
			changes[pairs[i]] = &pairs[i+1]
		}
	}
	if err := c.Override(background, farm, changes, 0); err != nil {
		w.t.Fatal(err)
	}
}

// farm is what a controller shows of a farm.
func farm(t *testing.T, c *controller.Controller, name string) controller.FarmView {
	t.Helper()
	for _, f := range c.Overview(background).Farms {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("there is no farm %s", name)
	return controller.FarmView{}
}

// within fails the test unless a call came at that time, give or take slack.
func within(t *testing.T, what string, got, want, slack time.Duration) {
	t.Helper()
	if got < want-slack || got > want+slack {
		t.Errorf("%s after %s, want %s", what, got, want)
	}
}
