package work

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"farmhand/evaluate"
	"farmhand/gate"
	"farmhand/internal/redisproc"
	"farmhand/internal/redistest"
	"farmhand/registry/redisregistry"
	"farmhand/sim/workload"
	"farmhand/skeleton"
	"farmhand/telemetry"
	"farmhand/train"
	"farmhand/trainer"
	"farmhand/trainer/redisruns"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/redis/go-redis/v9/maintnotifications.(*CircuitBreakerManager).cleanupLoop"))
}

var ctx = context.Background()

// suite is what trainers share: runs and policies in a real Redis, and a broker that
// keeps what is posted until the test delivers it.
type suite struct {
	*testing.T
	server   *redisproc.Server
	rdb      *redis.Client
	runs     *redisruns.Store
	policies *redisregistry.Store
	lag      atomic.Int64 // of the store's time
	clock    atomic.Int64 // of the trainers: each look at it passes tick
	tick     atomic.Int64

	mu     sync.Mutex
	queue  []trainer.Ticket // guarded by mu
	away   bool             // the broker is; guarded by mu
	posted int              // in all; guarded by mu
	roster skeleton.Roster
	rows   []telemetry.Row
	spans  []telemetry.Period
}

const key = trainer.Key("sesame")

func setup(t *testing.T) *suite {
	s := &suite{T: t, server: redistest.Start(t, "appendonly yes", "appendfsync always")}
	s.rdb = redistest.Client(t, s.server)
	s.runs = redisruns.New(s.rdb, func() time.Duration { return time.Duration(s.lag.Load()) })
	s.policies = redisregistry.New(s.rdb, redisregistry.Limits{})
	s.tick.Store(int64(time.Millisecond))
	settings := skeleton.DefaultSettings()
	settings.Policy = "learned"
	settings.Deadline = 150 * time.Millisecond
	s.roster = skeleton.Roster{Farms: []skeleton.Farm{{Name: "web", Settings: settings}}}
	return s
}

func (s *suite) Roster(context.Context) (skeleton.Roster, error) { return s.roster, nil }

func (s *suite) Rows(context.Context, string, time.Time, time.Time) ([]telemetry.Row, error) {
	return s.rows, nil
}

func (s *suite) Periods(context.Context, string, time.Time, time.Time) ([]telemetry.Period, error) {
	return s.spans, nil
}

// Post implements trainer.Poster.
func (s *suite) Post(_ context.Context, t trainer.Ticket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errors.New("the broker is away")
	}
	s.queue, s.posted = append(s.queue, t), s.posted+1
	return nil
}

// take the next ticket out of the broker.
func (s *suite) take() (t trainer.Ticket, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return t, false
	}
	t, s.queue = s.queue[0], s.queue[1:]
	return t, true
}

func (s *suite) now() time.Time {
	return time.Unix(0, s.clock.Add(s.tick.Load()))
}

// worker is a trainer whose work is small.
func (s *suite) worker() *Worker {
	w := New(Config{Store: s.runs, Queue: s, Key: key, Registry: s.policies, Farms: s, Telemetry: s, Slice: time.Second, Places: 2, Jobs: 1, Now: s.now})
	w.knobs = knobs{
		scenario: func(s *workload.Scenario) { s.Horizon = gateTime },
		search: func(b *evaluate.Budget) {
			b.Random, b.Generations, b.Population, b.Final, b.Horizon, b.Seeds = 4, 1, 2, 1, gateTime, b.Seeds[:1]
		},
		train: func(c *train.Config) { c.Envs, c.Episode, c.Seeds, c.Final = 2, 100, c.Seeds[:1], c.Final[:1] },
		gate:  func(c *gate.Config) { c.Seeds = gate.Seeds()[:4] },
	}
	return w
}

// small is a training of seconds.
func small() trainer.Request {
	r := trainer.DefaultRequest()
	r.Farm, r.Budget, r.Round = "web", 1200, 600
	return r
}

func (s *suite) start(w *Worker, id string, r trainer.Request) {
	s.Helper()
	if _, created, err := w.Start(ctx, id, r); err != nil || !created {
		s.Fatalf("created %v, %v", created, err)
	}
}

// deliver tickets until none is left.
func (s *suite) deliver(w *Worker) (slices int) {
	s.Helper()
	for {
		t, ok := s.take()
		if !ok {
			return slices
		}
		if !key.Good(t) {
			s.Fatalf("%+v is not good", t)
		}
		if err := w.Slice(ctx, t); err != nil {
			s.Fatal(err)
		}
		slices++
	}
}

func (s *suite) get(id string) trainer.Run {
	s.Helper()
	r, err := s.runs.Get(ctx, id)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// done checks that a run came to its end, and returns its policy.
func (s *suite) done(id string) []byte {
	s.Helper()
	r := s.get(id)
	if r.State != trainer.Done || r.Progress.Verdict == nil || r.Progress.Version == "" {
		s.Fatalf("the run is %s in %s: %s; %+v", r.State, r.Progress.Phase, r.Error, r.Progress)
	}
	file, err := s.policies.Policy(ctx, r.Progress.Version)
	if err != nil {
		s.Fatal(err)
	}
	return file
}

// whole is the policy that comes of a run which nothing disturbs.
func (s *suite) whole(w *Worker) []byte {
	s.Helper()
	s.start(w, "whole", small())
	s.deliver(w)
	return s.done("whole")
}
