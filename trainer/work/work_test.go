package work

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"farmhand/policy/learned"
	"farmhand/registry"
	"farmhand/registry/registrytest"
	"farmhand/train"
	"farmhand/trainer"
)

// From the request to the verdict, in as few slices as can be and in many: the same policy.
func TestSlicesMakeTheSamePolicy(t *testing.T) {
	s := setup(t)
	w := s.worker()
	s.tick.Store(1) // no time passes
	s.start(w, "whole", small())
	if n := s.deliver(w); n != 2 {
		t.Errorf("%d slices, want one up to the challenge and one for the gate", n)
	}
	want := s.done("whole")
	s.tick.Store(int64(40 * time.Millisecond)) // 25 looks at the clock are a slice
	s.start(w, "cut", small())
	n := s.deliver(w)
	if n < 10 {
		t.Errorf("%d slices: want more, to test something", n)
	}
	if !bytes.Equal(s.done("cut"), want) {
		t.Error("another policy came out")
	}
	a, b := s.get("whole").Progress, s.get("cut").Progress
	if a.Verdict.Outcome != b.Verdict.Outcome || len(a.Verdict.Checks) == 0 || b.Verdict.Checks[0].Value != a.Verdict.Checks[0].Value {
		t.Errorf("verdicts %+v and %+v", a.Verdict, b.Verdict)
	}
	if b.Steps < small().Budget || !b.OnTime.Known() || !b.Workers.Known() || b.Spent <= 0 || b.Share != 1 {
		t.Errorf("progress %+v", b)
	}
	c := b.Calibration
	if c == nil || c.Telemetry || c.Scenario != trainer.DefaultScenario || !strings.HasPrefix(c.Rule, peer) || !strings.Contains(strings.Join(c.Notes, " "), "too little telemetry") {
		t.Errorf("calibration %+v", c)
	}
	p, err := learned.Parse(want)
	if err != nil {
		t.Fatal(err)
	}
	if p.Rule != train.DefaultRule || p.Fallback != c.Rule {
		t.Errorf("advised by %s, falls back on %s: want %s, and the calibrated rule, %s", p.Rule, p.Fallback, train.DefaultRule, c.Rule)
	}
	aliases, err := s.policies.Aliases(ctx, "web")
	if err != nil || aliases.Challenger != b.Version && aliases.Champion != b.Version {
		t.Errorf("aliases %+v of version %s, %v", aliases, b.Version, err)
	}
	if (b.Verdict.Outcome == registry.Promoted) != b.Promoted || b.Promoted != (aliases.Champion == b.Version) {
		t.Errorf("%s, promoted %v, aliases %+v", b.Verdict.Outcome, b.Promoted, aliases)
	}
}

// Every ticket arrives three times, at two trainers at once: each slice is done once,
// and posted once.
func TestRedelivery(t *testing.T) {
	s := setup(t)
	workers := []*Worker{s.worker(), s.worker()}
	s.tick.Store(int64(100 * time.Millisecond))
	s.start(workers[0], "a", small())
	if _, created, err := workers[1].Start(ctx, "a", small()); err != nil || created {
		t.Errorf("the request again: created %v, %v", created, err)
	}
	slices := 0
	for ticket, ok := s.take(); ok; ticket, ok = s.take() {
		var all sync.WaitGroup
		var did [3]error
		for i := range did {
			all.Go(func() { did[i] = workers[i%2].Slice(ctx, ticket) })
		}
		all.Wait()
		done := 0
		for _, err := range did {
			if err == nil {
				done++
			} else if !errors.Is(err, trainer.ErrHeld) && !errors.Is(err, trainer.ErrNotNext) && !errors.Is(err, trainer.ErrOver) {
				t.Error(err)
			}
		}
		if done != 1 {
			t.Fatalf("slice %d was done %d times", ticket.Slice, done)
		}
		slices++
	}
	s.done("a")
	if s.posted != slices || s.get("a").Slice != slices {
		t.Errorf("%d slices, %d posted, the run counts %d", slices, s.posted, s.get("a").Slice)
	}
}

// A trainer that is killed in any slice, before it could keep anything, costs that
// slice: the run is overdue, and its policy the same.
func TestKilledAnywhere(t *testing.T) {
	s := setup(t)
	w := s.worker()
	want := s.whole(w)
	s.tick.Store(int64(60 * time.Millisecond))
	s.start(w, "a", small())
	kills := 0
	for {
		ticket, ok := s.take()
		if !ok {
			break
		}
		if _, err := s.runs.Begin(ctx, ticket.Run, ticket.Slice, "killed"); err != nil {
			t.Fatal(err)
		}
		// It came far, told so, and is never heard of again.
		if err := s.runs.Hold(ctx, "a", "killed", trainer.Progress{Phase: trainer.Judge, Steps: 1e6, Version: strings.Repeat("ab", 32)}); err != nil {
			t.Fatal(err)
		}
		if err := w.Slice(ctx, ticket); !errors.Is(err, trainer.ErrHeld) {
			t.Fatalf("while the dead one's lease lasts: %v", err)
		}
		s.lag.Add(int64(3*time.Second + trainer.Lease)) // three slices
		overdue, err := s.runs.Overdue(ctx)
		if err != nil || len(overdue) != 1 || overdue[0].Slice != ticket.Slice {
			t.Fatalf("overdue: %v, %v", overdue, err)
		}
		if err := w.Slice(ctx, key.Ticket(overdue[0].Run, overdue[0].Slice)); err != nil {
			t.Fatal(err)
		}
		kills++
	}
	if !bytes.Equal(s.done("a"), want) {
		t.Errorf("%d kills made another policy", kills)
	}
	if kills < 5 {
		t.Errorf("%d slices: want more, to test something", kills)
	}
}

// A slice that was kept, but whose next one was not posted, is overdue too.
func TestPostIsLost(t *testing.T) {
	s := setup(t)
	w := s.worker()
	s.tick.Store(int64(200 * time.Millisecond))
	s.start(w, "a", small())
	ticket, _ := s.take()
	if err := w.Slice(ctx, ticket); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.take(); !ok {
		t.Fatal("nothing was posted")
	}
	if list, err := s.runs.Overdue(ctx); err != nil || len(list) > 0 {
		t.Errorf("overdue at once: %v, %v", list, err)
	}
	s.lag.Add(int64(4 * time.Second))
	list, err := s.runs.Overdue(ctx)
	if err != nil || len(list) != 1 || list[0].Slice != 1 {
		t.Errorf("overdue: %v, %v", list, err)
	}
}

// Who cancels stops a slice that is under way at its next sign of life.
func TestCancelWhileWorking(t *testing.T) {
	s := setup(t)
	w := s.worker()
	w.beat = time.Millisecond
	s.tick.Store(1)
	r := small()
	r.Budget, r.Round = 5_000_000, 5_000_000 // of minutes
	s.start(w, "a", r)
	ticket, _ := s.take()
	ended := make(chan error)
	go func() { ended <- w.Slice(ctx, ticket) }()
	for s.get("a").Progress.Steps == 0 { // its progress is told meanwhile
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself: %v", err)
		default:
		}
	}
	if _, err := s.runs.Cancel(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, trainer.ErrLost) {
		t.Errorf("error %v", err)
	}
	if r := s.get("a"); r.State != trainer.Cancelled {
		t.Errorf("the run is %s", r.State)
	}
	if _, ok := s.take(); ok {
		t.Error("the next slice was posted")
	}
}

// A process that was told to end keeps what it has, and posts on.
func TestDrain(t *testing.T) {
	s := setup(t)
	w := s.worker()
	w.beat = time.Millisecond
	s.tick.Store(1)
	r := small()
	r.Budget, r.Round = 5_000_000, 5_000_000
	s.start(w, "a", r)
	ticket, _ := s.take()
	ended := make(chan error)
	go func() { ended <- w.Slice(ctx, ticket) }()
	for s.get("a").Progress.Steps == 0 {
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself: %v", err)
		default:
		}
	}
	w.Drain()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	next, ok := s.take()
	if run := s.get("a"); !ok || next.Slice != 1 || run.Slice != 1 || run.Checkpoint == "" {
		t.Errorf("posted %+v, %v; %+v", next, ok, run)
	}
	if err := w.Slice(ctx, next); !errors.Is(err, ErrDraining) {
		t.Errorf("a slice after that: %v", err)
	}
}

// Redis is killed and comes back between two slices, and while one is under way.
func TestRedisRestarts(t *testing.T) {
	s := setup(t)
	w := s.worker()
	want := s.whole(w)
	s.tick.Store(int64(100 * time.Millisecond))
	s.start(w, "a", small())
	restarts := 0
	for {
		ticket, ok := s.take()
		if !ok {
			break
		}
		if ticket.Slice%4 == 1 {
			s.server.Kill()
			if err := w.Slice(ctx, ticket); err == nil || errors.Is(err, trainer.ErrUnknown) {
				t.Fatalf("without Redis: %v", err)
			}
			if err := s.server.Run(); err != nil {
				t.Fatal(err)
			}
			for s.rdb.Ping(ctx).Err() != nil { // the pool dials once a second
				runtime.Gosched()
			}
			restarts++
		}
		if err := w.Slice(ctx, ticket); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(s.done("a"), want) || restarts == 0 {
		t.Errorf("%d restarts made another policy", restarts)
	}
}

// What would fail again ends the run, and says why.
func TestFailures(t *testing.T) {
	s := setup(t)
	w := s.worker()
	s.tick.Store(int64(200 * time.Millisecond))
	s.start(w, "a", small())
	for ticket, ok := s.take(); ok; ticket, ok = s.take() {
		if err := w.Slice(ctx, ticket); err != nil {
			t.Fatal(err)
		}
		if run := s.get("a"); run.Progress.Phase == trainer.Learn && run.Progress.Steps > 0 && run.State == trainer.Running {
			if err := s.rdb.Del(ctx, run.Checkpoint).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := s.get("a"); r.State != trainer.Failed || !strings.Contains(r.Error, "gone") {
		t.Errorf("without a checkpoint the run is %s: %q", r.State, r.Error)
	}
	if _, _, err := w.Start(ctx, "b", trainer.Request{Farm: "elsewhere"}); !errors.Is(err, ErrUnknownFarm) {
		t.Errorf("an unknown farm: %v", err)
	}
	web := s.roster.Farms[0]
	s.roster.Farms[0].Settings.Deadline = 0
	if _, _, err := w.Start(ctx, "b", small()); !errors.Is(err, trainer.ErrNoDeadline) {
		t.Errorf("a farm without a deadline: %v", err)
	}
	s.roster.Farms[0] = web
	w.knobs.train = nil
	s.start(w, "c", trainer.Request{Farm: "web", Learner: "gpt", Budget: 10})
	s.deliver(w)
	if r := s.get("c"); r.State != trainer.Failed || !strings.Contains(r.Error, "no learner") {
		t.Errorf("the run is %s: %q", r.State, r.Error)
	}
}

// The gate's champion is the farm's, and where it has one that is better, it stays.
func TestChampionStays(t *testing.T) {
	s := setup(t)
	w := s.worker()
	file := registrytest.Always(t, 0)
	champion, err := s.policies.Import(ctx, file, registry.Origin{By: "test"})
	if err == nil {
		err = s.policies.Promote(ctx, "web", champion, registry.Reason{Text: "a test", Forced: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.tick.Store(int64(100 * time.Millisecond))
	s.start(w, "a", small())
	s.deliver(w)
	s.done("a")
	p := s.get("a").Progress
	aliases, err := s.policies.Aliases(ctx, "web")
	if err != nil || p.Verdict.Champion != champion {
		t.Errorf("the verdict is about %s, want %s; %v", p.Verdict.Champion, champion, err)
	}
	if (aliases.Champion == champion) == p.Promoted {
		t.Errorf("promoted %v, aliases %+v", p.Promoted, aliases)
	}
}

// A schedule trains the farms that want it, once in half a day, however often it calls.
func TestSchedule(t *testing.T) {
	s := setup(t)
	w := s.worker()
	other := s.roster.Farms[0]
	other.Name, other.Settings.Policy = "batch", "staffing"
	pinned := s.roster.Farms[0]
	pinned.Name, pinned.Settings.Policy = "pinned", "learned:abcd"
	never := s.roster.Farms[0]
	never.Name, never.Settings.Deadline = "never late", 0
	s.roster.Farms = append(s.roster.Farms, other, pinned, never)
	for range 3 {
		if err := w.Scheduled(ctx); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.runs.List(ctx)
	if err != nil || len(list) != 1 || list[0].Request.Farm != "web" || !list[0].Request.Schedule || list[0].Request.Budget != trainer.DefaultBudget {
		t.Errorf("%+v, %v", list, err)
	}
	s.lag.Add(int64(trainer.Apart + time.Second))
	if err := w.Scheduled(ctx); err != nil {
		t.Fatal(err)
	}
	if list, err := s.runs.List(ctx); err != nil || len(list) != 2 {
		t.Errorf("half a day later: %d runs, %v", len(list), err)
	}
}
