package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"farmhand/skeleton/ledger"
	"farmhand/skeleton/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A message becomes a task, and its result a message.
func TestThereAndBack(t *testing.T) {
	b := setup(t, ledger.Limits{})
	s := b.start()
	b.post(0, 3)
	if err := b.broker.Publish(tasks, [][]byte{[]byte(`{"body_base64": "AAE=", "type": "image/png", "key": "mine", "class": 1, "deadline": "2s"}`)}); err != nil {
		t.Fatal(err)
	}
	b.broker.until(t, "all are acknowledged", b.broker.acked(tasks, 4))
	bodies := b.work(10)
	slices.Sort(bodies)
	if fmt.Sprintf("%q", bodies) != `["\x00\x01" "0" "1" "2"]` {
		t.Errorf("%q", bodies)
	}
	b.broker.until(t, "all results are published", b.broker.holds(results, 4))
	seen := map[int]bool{}
	for _, p := range b.published() {
		seen[p.Index] = true
		if p.Worker != "echo" || !strings.HasPrefix(p.Job, "echo~") || p.Status != 200 || p.State != "done" || len(p.Body)+len(p.Base64) == 0 {
			t.Errorf("%+v", p)
		}
	}
	if len(seen) != 4 {
		t.Errorf("%v", seen)
	}
	until(t, "the ledger may forget them", func() bool {
		g, err := b.farm.Gauges(t.Context())
		return err == nil && g.KeptBytes == 0
	})
	if s.Stats() != (stream.Stats{Accepted: 4, Published: 4}) {
		t.Errorf("%+v", s.Stats())
	}
}

// What comes again is accepted once: while it is held, after its acknowledgement
// was lost, and at another dispatcher.
func TestAcceptedOnce(t *testing.T) {
	b := setup(t, ledger.Limits{})
	b.broker.lost = true
	one := b.start()
	b.post(0, 5)
	until(t, "all are tasks", func() bool { return one.Stats().Accepted == 5 })
	b.broker.again(tasks, true)
	until(t, "they are known", func() bool { return one.Stats().Duplicates == 5 })
	b.stop(one)
	two := b.start()
	b.broker.until(t, "it receives", func() bool { return len(b.broker.channel(tasks).subs) == 1 })
	b.broker.set(func() { b.broker.lost = false })
	b.broker.again(tasks, true)
	b.broker.until(t, "all are acknowledged", b.broker.acked(tasks, 5))
	if n := len(b.work(100)); n != 5 || two.Stats().Accepted != 0 {
		t.Errorf("%d tasks; %+v", n, two.Stats())
	}
}

// Two dispatchers share a channel and a job.
func TestTwoDispatchers(t *testing.T) {
	b := setup(t, ledger.Limits{})
	one, two := b.start(), b.start()
	b.broker.until(t, "both receive", func() bool { return len(b.broker.channel(tasks).subs) == 2 })
	b.post(0, 100)
	b.broker.until(t, "all are acknowledged", b.broker.acked(tasks, 100))
	if one.Stats().Accepted+two.Stats().Accepted != 100 || one.Stats().Accepted == 0 || two.Stats().Accepted == 0 {
		t.Errorf("%+v %+v", one.Stats(), two.Stats())
	}
	if n := len(b.work(200)); n != 100 || len(b.jobs()) != 1 {
		t.Errorf("%d tasks in %d jobs", n, len(b.jobs()))
	}
}

// While the queue is full messages wait in the broker, and none is lost.
func TestFullLedger(t *testing.T) {
	b := setup(t, ledger.Limits{QueueTasks: 3})
	s := b.start()
	b.post(0, 10)
	b.broker.until(t, "the queue is full", b.broker.acked(tasks, 3))
	b.broker.again(tasks, false) // impatient
	seen := map[string]bool{}
	for len(seen) < 10 {
		for _, body := range b.work(1) {
			if seen[body] {
				t.Errorf("%s is a task twice", body)
			}
			seen[body] = true
		}
		if n := 3 + len(seen); n <= 10 {
			b.broker.until(t, "the next has a place", b.broker.acked(tasks, n))
		}
	}
	if s.Stats().Accepted != 10 {
		t.Errorf("%+v", s.Stats())
	}
}

// A message that is no task goes to the dead letters, and hinders nobody.
func TestPoison(t *testing.T) {
	b := setup(t, ledger.Limits{QueueBytes: 1000})
	b.cfg.MaxBody = 100_000
	b.broker.down = true
	s := b.start()
	b.broker.set(func() {
		c := b.broker.channel(tasks)
		for _, m := range []string{"{nonsense", `{"body": 1, "colour": "red"}`, `{"class": 5}`, `"text"`, `{"body": 1, "class": 77}`, ``,
			`{"body": "` + strings.Repeat("x", 5000) + `"}`, `{"body": "` + strings.Repeat("x", 100_000) + `"}`, `{"body": 1}`} {
			c.list = append(c.list, []byte(m))
		}
	})
	b.broker.send(tasks)
	b.broker.set(func() { b.broker.down, b.broker.most = false, 50_000 })
	b.broker.until(t, "all are acknowledged", b.broker.acked(tasks, 9))
	if n := len(b.work(10)); n != 1 || s.Stats().Dead != 8 || s.Stats().Accepted != 1 {
		t.Errorf("%d tasks; %+v", n, s.Stats())
	}
	var large bool
	b.broker.mu.Lock()
	letters := slices.Clone(b.broker.channel(dead).list)
	b.broker.mu.Unlock()
	for _, raw := range letters {
		var l stream.Letter
		if err := json.Unmarshal(raw, &l); err != nil || l.Channel != tasks || l.Sequence == 0 || l.Reason == "" || l.Stored.IsZero() {
			t.Errorf("%s: %v", raw, err)
		}
		if large = large || l.Omitted > 100_000; l.Sequence == 1 && string(l.Data) != "{nonsense" {
			t.Errorf("%s", raw)
		}
	}
	if !large {
		t.Error("what is too large to be enclosed is not said")
	}
}

// failing is a store that is away at times.
type failing struct {
	ledger.Store
	away atomic.Bool
}

type failingFarm struct {
	ledger.Ledger
	s *failing
}

func (f *failing) Farm(name string) ledger.Ledger { return failingFarm{f.Store.Farm(name), f} }

func (f failingFarm) Stage(ctx context.Context, sub ledger.Submission) (ledger.Stage, error) {
	st, err := f.Ledger.Stage(ctx, sub)
	return failingStage{st, f.s}, err
}

type failingStage struct {
	ledger.Stage
	s *failing
}

// Commit commits, but the answer is lost.
func (f failingStage) Commit(ctx context.Context) (ledger.Receipt, error) {
	r, err := f.Stage.Commit(ctx)
	if f.s.away.Swap(false) {
		return ledger.Receipt{}, ledger.ErrUnavailable
	}
	return r, err
}

// A commit whose answer is lost is no second task.
func TestStoreAway(t *testing.T) {
	b := setup(t, ledger.Limits{})
	f := &failing{Store: b.store}
	f.away.Store(true)
	b.cfg.Store = f
	b.start()
	b.post(0, 1)
	b.broker.until(t, "it is acknowledged", b.broker.acked(tasks, 1))
	if n := len(b.work(10)); n != 1 || f.away.Load() {
		t.Errorf("%d tasks", n)
	}
}

// A worker that is gone takes nothing; when it is back it does.
func TestMissingWorker(t *testing.T) {
	b := setup(t, ledger.Limits{})
	b.roster(time.Second)
	b.start()
	b.post(0, 1)
	b.roster(0)
	b.broker.until(t, "it is acknowledged", b.broker.acked(tasks, 1))
	b.roster(time.Second)
	b.broker.until(t, "nobody receives", func() bool { return len(b.broker.channel(tasks).subs) == 0 })
	b.post(1, 1)
	b.roster(0)
	b.broker.until(t, "it is acknowledged", b.broker.acked(tasks, 2))
}

// clock is a time that the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Tasks of one span are one job; it is closed when that is over, also by another
// dispatcher, and a job that is closed too early costs nothing.
func TestSpans(t *testing.T) {
	b := setup(t, ledger.Limits{})
	c := &clock{now: time.Date(2030, 1, 2, 3, 30, 0, 0, time.UTC)}
	b.cfg.Now = c.read
	s := b.start()
	b.post(0, 1)
	b.broker.until(t, "it is acknowledged", b.broker.acked(tasks, 1))
	first := b.jobs()[0]
	if !first.Open {
		t.Errorf("%+v", first)
	}
	b.stop(s)
	c.advance(3 * time.Hour)
	b.start()
	until(t, "the job of before is closed", func() bool { return !b.jobs()[0].Open })
	b.post(1, 1)
	b.broker.until(t, "it is acknowledged", b.broker.acked(tasks, 2))
	list := b.jobs()
	if len(list) != 2 || list[0].ID <= first.ID {
		t.Errorf("%+v", list)
	}
	if _, err := b.farm.Cancel(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	b.post(2, 1)
	b.broker.until(t, "it is acknowledged", b.broker.acked(tasks, 3))
	if len(b.jobs()) != 3 {
		t.Errorf("%+v", b.jobs())
	}
	b.work(10)
	b.broker.until(t, "the results of all jobs are published", b.broker.holds(results, 2))
}

// Results wait while the broker is away, and none is skipped.
func TestSinkAway(t *testing.T) {
	b := setup(t, ledger.Limits{})
	b.start()
	b.post(0, 20)
	b.broker.until(t, "all are acknowledged", b.broker.acked(tasks, 20))
	b.broker.set(func() { b.broker.down = true })
	b.work(10)
	b.broker.set(func() { b.broker.down = false })
	b.work(10)
	b.broker.until(t, "all results are published", b.broker.holds(results, 20))
	seen := map[int]bool{}
	for _, p := range b.published() {
		seen[p.Index] = true
	}
	if len(seen) != 20 {
		t.Errorf("%v", seen)
	}
}

// A result that the broker does not take stays in the ledger, and is told.
func TestLargeResult(t *testing.T) {
	b := setup(t, ledger.Limits{})
	b.broker.most = 2000
	b.start()
	body := `"` + strings.Repeat("x", 3000) + `"`
	if err := b.broker.Publish(tasks, [][]byte{[]byte(`{"body": ` + body + `}`)}); err != nil {
		t.Fatal(err)
	}
	b.broker.until(t, "it is acknowledged", b.broker.acked(tasks, 1))
	b.work(1)
	b.broker.until(t, "the result is published", b.broker.holds(results, 1))
	p := b.published()[0]
	if p.Omitted != len(body) || p.Body != nil {
		t.Errorf("%+v", p)
	}
	page, err := b.farm.Results(t.Context(), p.Job, ledger.Query{})
	if err != nil || len(page.Results) != 1 || string(page.Results[0].Body) != body {
		t.Errorf("the ledger has %+v, %v", page, err)
	}
}

// A dead task that is redriven gets another result, also when its job has ended.
func TestRedriven(t *testing.T) {
	b := setup(t, ledger.Limits{})
	c := &clock{now: time.Date(2030, 1, 2, 3, 30, 0, 0, time.UTC)}
	b.cfg.Now = c.read
	b.start()
	b.post(0, 1)
	b.broker.until(t, "it is acknowledged", b.broker.acked(tasks, 1))
	if _, err := b.farm.Close(t.Context(), b.jobs()[0].ID); err != nil {
		t.Fatal(err)
	}
	taken, err := b.farm.Take(t.Context(), "test", 1)
	if err != nil || len(taken.Leases) != 1 {
		t.Fatal(taken, err)
	}
	if _, err := b.farm.Settle(t.Context(), []ledger.Outcome{{Lease: taken.Leases[0], Kind: ledger.Rejected, Status: 400, Reason: "no"}}, 0); err != nil {
		t.Fatal(err)
	}
	b.broker.until(t, "its end is published", b.broker.holds(results, 1))
	if _, err := b.farm.Redrive(t.Context(), nil, 1); err != nil {
		t.Fatal(err)
	}
	b.work(1)
	b.broker.until(t, "its result is published", b.broker.holds(results, 2))
	if p := b.published(); p[0].State != "dead" || p[1].State != "done" {
		t.Errorf("%+v", p)
	}
}
