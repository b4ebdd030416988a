package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farmhand/internal/redistest"
	"farmhand/skeleton"
	"farmhand/skeleton/dispatch"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/memledger"
	"farmhand/skeleton/ledger/redisledger"
)

// rig is a dispatcher's surroundings with a real ledger.
type rig struct {
	t     *testing.T
	store ledger.Store
	jobs  int
}

// onEach runs a test on a real Redis and in memory.
func onEach(t *testing.T, f func(t *testing.T, g *rig)) {
	t.Run("redis", func(t *testing.T) {
		store := redisledger.New(redistest.Client(t, redistest.Start(t)), redisledger.Options{})
		t.Cleanup(store.Close)
		f(t, &rig{t: t, store: store})
	})
	t.Run("memory", func(t *testing.T) { f(t, &rig{t: t, store: memledger.New(memledger.Options{})}) })
}

func (g *rig) publish(f ...skeleton.Farm) {
	g.t.Helper()
	if err := ledger.Publish(g.t.Context(), g.store, skeleton.Roster{Farms: f}); err != nil {
		g.t.Fatal(err)
	}
}

func farmOf(name string, slots int) skeleton.Farm {
	s := skeleton.DefaultSettings()
	s.Slots = slots
	return skeleton.Farm{Name: name, Settings: s, Ready: 1, Target: 1}
}

// submit stores a job and returns its id.
func (g *rig) submit(farm string, n int, edit func(t *skeleton.NewTask)) string {
	g.t.Helper()
	g.jobs++
	job := fmt.Sprintf("%s~01ARZ3NDEKTSV4RRFFQ69G5F%02d", farm, g.jobs)
	st, err := g.store.Farm(farm).Stage(g.t.Context(), ledger.Submission{Job: skeleton.Job{ID: job}})
	if err != nil {
		g.t.Fatal(err)
	}
	tasks := make([]skeleton.NewTask, n)
	for i := range tasks {
		tasks[i] = skeleton.NewTask{Body: fmt.Appendf(nil, "%d", i), Class: skeleton.DefaultClass}
		if edit != nil {
			edit(&tasks[i])
		}
	}
	if err := st.Add(g.t.Context(), tasks); err != nil {
		g.t.Fatal(err)
	}
	if _, err := st.Commit(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
	return job
}

// start runs a dispatcher with the shortest back-off.
func (g *rig) start(w worker, edit ...func(c *dispatch.Config)) *dispatch.Dispatcher {
	g.t.Helper()
	cfg := dispatch.Config{Store: g.store, Caller: w, Owner: "test", Uniform: func() float64 { return 0 }}
	for _, e := range edit {
		e(&cfg)
	}
	d, err := dispatch.Start(cfg)
	if err != nil {
		g.t.Fatal(err)
	}
	return d
}

// ended waits until a job has ended and returns it with its results.
func (g *rig) ended(job string) (skeleton.Job, []skeleton.Result) {
	g.t.Helper()
	farm, _, _ := strings.Cut(job, "~")
	l := g.store.Farm(farm)
	ctx, cancel := context.WithTimeout(g.t.Context(), 30*time.Second)
	defer cancel()
	told := make(chan struct{}, 1)
	go func() {
		_ = l.WatchJob(ctx, job, func() { // ends with the context
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	for {
		j, err := l.Job(ctx, job)
		if err == nil && j.Pending() == 0 {
			p, err := l.Results(g.t.Context(), job, ledger.Query{Ordered: true})
			if err != nil {
				g.t.Fatal(err)
			}
			return j, p.Results
		}
		select {
		case <-told:
		case <-time.After(100 * time.Millisecond): // the store may be away
		case <-ctx.Done():
			g.t.Fatalf("job has not ended: %+v %v", j, err)
		}
	}
}

// sound checks that every task is accounted for and no lease is left.
func (g *rig) sound(farm string) ledger.Gauges {
	g.t.Helper()
	l := g.store.Farm(farm)
	a, err := l.Audit(g.t.Context())
	if err != nil || len(a.Problems) > 0 {
		g.t.Errorf("%s: %v %v", farm, a.Problems, err)
	}
	s, err := l.Gauges(g.t.Context())
	if err != nil || s.Live != 0 || !s.Conserved() {
		g.t.Errorf("%s: %+v %v", farm, s, err)
	}
	return s
}

// Every row of the answer table (design, section 3; contract, section 4), from
// the answer to the task's state in the ledger. The worker gives the answer once
// where once is set, else for ever; after it, 200.
func TestAnswerTable(t *testing.T) { onEach(t, answerTable) }

func answerTable(t *testing.T, g *rig) {
	const empty = true
	rows := map[string]struct {
		call                   skeleton.Call
		once                   bool
		noRetry                bool
		state                  skeleton.State
		reason                 string
		attempt, lost, minimum int // attempts charged in the result, lost, calls
	}{
		"2xx":                            {call: skeleton.Call{Status: 201, CallID: true}, state: skeleton.Done, attempt: 1, minimum: 1},
		"429 by the platform":            {call: full, once: true, state: skeleton.Done, attempt: 1, minimum: 2},
		"503 by the platform":            {call: skeleton.Call{Status: 503, Platform: true}, once: true, state: skeleton.Done, attempt: 1, minimum: 2},
		"refused":                        {call: skeleton.Call{Failure: skeleton.Refused}, once: true, state: skeleton.Done, attempt: 1, minimum: 2},
		"404 of the gateway":             {call: skeleton.Call{Status: 404}, once: true, state: skeleton.Done, attempt: 1, minimum: 2},
		"busy for ever":                  {call: full, state: skeleton.Dead, reason: "no capacity", minimum: 3},
		"500 by the platform":            {call: skeleton.Call{Status: 500, Platform: true}, once: true, state: skeleton.Done, attempt: 1, lost: 1, minimum: 2},
		"502, empty":                     {call: skeleton.Call{Status: 502, Empty: empty}, once: true, state: skeleton.Done, attempt: 1, lost: 1, minimum: 2},
		"reset":                          {call: skeleton.Call{Failure: skeleton.Reset}, once: true, state: skeleton.Done, attempt: 1, lost: 1, minimum: 2},
		"lost for ever":                  {call: skeleton.Call{Failure: skeleton.Reset}, state: skeleton.Dead, reason: "worker lost", lost: skeleton.LostBudget + 1, minimum: skeleton.LostBudget + 1},
		"lost, never to be retried":      {call: skeleton.Call{Failure: skeleton.Reset}, noRetry: true, state: skeleton.Dead, reason: "unknown outcome", lost: 1, minimum: 1},
		"504":                            {call: skeleton.Call{Status: 504, Platform: true, Empty: empty}, once: true, state: skeleton.Done, attempt: 2, minimum: 2},
		"408":                            {call: skeleton.Call{Status: 408, CallID: true}, once: true, state: skeleton.Done, attempt: 2, minimum: 2},
		"timed out, never to be retried": {call: skeleton.Call{Status: 504}, noRetry: true, state: skeleton.Dead, reason: "unknown outcome", attempt: 1, minimum: 1},
		"425":                            {call: skeleton.Call{Status: 425, CallID: true}, once: true, state: skeleton.Done, attempt: 2, minimum: 2},
		"429 of the worker":              {call: skeleton.Call{Status: 429, CallID: true, RetryWait: time.Millisecond}, once: true, state: skeleton.Done, attempt: 2, minimum: 2},
		"503 of the worker":              {call: skeleton.Call{Status: 503, CallID: true}, once: true, state: skeleton.Done, attempt: 2, minimum: 2},
		"500 of the worker, for ever":    {call: skeleton.Call{Status: 500, CallID: true}, state: skeleton.Dead, reason: "the worker failed (500)", attempt: 5, minimum: 5},
		"502 of the worker":              {call: skeleton.Call{Status: 502, CallID: true, Body: []byte("x")}, once: true, state: skeleton.Done, attempt: 2, minimum: 2},
		"422":                            {call: skeleton.Call{Status: 422, CallID: true, Body: []byte("no such picture\n")}, state: skeleton.Dead, reason: "no such picture", minimum: 1},
		"404 of the worker":              {call: skeleton.Call{Status: 404, CallID: true, Body: []byte("where?")}, state: skeleton.Dead, reason: "where?", minimum: 1},
		"302":                            {call: skeleton.Call{Status: 302, CallID: true}, state: skeleton.Dead, reason: "redirects", minimum: 1},
		"too large":                      {call: skeleton.Call{Failure: skeleton.Oversize, Status: 200, Limit: 77}, state: skeleton.Dead, reason: "77 bytes", minimum: 1},
	}
	var names []string
	var farms []skeleton.Farm
	calls := map[string]*atomic.Int64{}
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	for i := range names {
		farm := fmt.Sprintf("row%d", i)
		farms = append(farms, farmOf(farm, 2))
		calls[farm] = &atomic.Int64{}
	}
	g.publish(farms...)
	d := g.start(func(_ context.Context, task skeleton.Task, _ []byte) skeleton.Call {
		var i int
		_, _ = fmt.Sscanf(task.Farm, "row%d", &i)
		if row := rows[names[i]]; calls[task.Farm].Add(1) == 1 || !row.once {
			return row.call
		}
		return okay
	}, func(c *dispatch.Config) { c.TimeToLive = 300 * time.Millisecond })
	jobs := make([]string, len(names))
	for i, name := range names {
		jobs[i] = g.submit(farms[i].Name, 1, func(n *skeleton.NewTask) { n.NoRetry = rows[name].noRetry })
	}
	for i, name := range names {
		row := rows[name]
		_, results := g.ended(jobs[i])
		if len(results) != 1 {
			t.Errorf("%s: %d results", name, len(results))
			continue
		}
		r := results[0]
		if r.State != row.state || !strings.Contains(r.Reason, row.reason) || r.Lost != row.lost || calls[farms[i].Name].Load() < int64(row.minimum) {
			t.Errorf("%s: %+v after %d calls, want %+v", name, r, calls[farms[i].Name].Load(), row)
		}
		if row.attempt > 0 && r.Attempt != row.attempt {
			t.Errorf("%s: attempt %d, want %d", name, r.Attempt, row.attempt)
		}
		if r.Wait < 0 || r.Service < 0 || r.Sojourn < 0 {
			t.Errorf("%s: negative times %+v", name, r) // P79
		}
	}
	stopRig(t, d)
	for _, f := range farms {
		g.sound(f.Name)
	}
}

func stopRig(t *testing.T, d *dispatch.Dispatcher) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	if err := d.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// One of 100 tasks kills its worker every time: it is a dead letter after its
// budget, the other 99 are done, and it was started a bounded number of times
// (P53, P61).
func TestPoisonousTaskDiesAlone(t *testing.T) { onEach(t, poisonousTaskDiesAlone) }

func poisonousTaskDiesAlone(t *testing.T, g *rig) {
	g.publish(farmOf("echo", 8))
	var deaths atomic.Int64
	d := g.start(func(_ context.Context, task skeleton.Task, _ []byte) skeleton.Call {
		if task.Index == 42 {
			deaths.Add(1)
			return skeleton.Call{Failure: skeleton.Reset}
		}
		return okay
	})
	job, results := g.ended(g.submit("echo", 100, nil))
	stopRig(t, d)
	if job.Done != 99 || job.Dead != 1 || results[42].Reason != "worker lost" || deaths.Load() != skeleton.LostBudget+1 {
		t.Errorf("%+v, task 42 %+v, started %d times", job, results[42], deaths.Load())
	}
	g.sound("echo")
}

// A healthy task whose worker is taken away five times ends well, with none of
// its attempts used up (P46, P68).
func TestLostWorkersCostNoAttempts(t *testing.T) { onEach(t, lostWorkersCostNoAttempts) }

func lostWorkersCostNoAttempts(t *testing.T, g *rig) {
	g.publish(farmOf("echo", 1))
	var calls atomic.Int64
	d := g.start(func(context.Context, skeleton.Task, []byte) skeleton.Call {
		if calls.Add(1) <= 5 {
			return skeleton.Call{Failure: skeleton.Reset}
		}
		return okay
	})
	job, results := g.ended(g.submit("echo", 1, func(n *skeleton.NewTask) { n.Attempts = 3 }))
	stopRig(t, d)
	if job.Done != 1 || results[0].Attempt != 1 || results[0].Lost != 5 {
		t.Errorf("%+v %+v", job, results[0])
	}
}

// The function is deleted with ten queued tasks: ten dead letters with the
// reason; when it is back, redrive runs them (P54).
func TestDeletedWorkerAndRedrive(t *testing.T) { onEach(t, deletedWorkerAndRedrive) }

func deletedWorkerAndRedrive(t *testing.T, g *rig) {
	gone := farmOf("echo", 4)
	gone.Ready, gone.Target, gone.Missing = 0, 0, time.Minute
	g.publish(gone)
	d := g.start(func(context.Context, skeleton.Task, []byte) skeleton.Call { return okay })
	job, _ := g.ended(g.submit("echo", 10, nil))
	letters, _, err := g.store.Farm("echo").Dead(t.Context(), "", 100)
	if err != nil || job.Dead != 10 || len(letters) != 10 {
		t.Fatalf("%+v, %d letters, %v", job, len(letters), err)
	}
	var refs []string
	for _, l := range letters {
		refs = append(refs, l.Ref)
		if l.Reason != "worker deleted" || l.Attempts != 0 {
			t.Errorf("%+v", l)
		}
	}
	g.publish(farmOf("echo", 4))
	for probe := (skeleton.Job{}); probe.Done == 0; { // until the dispatcher has heard of it
		probe, _ = g.ended(g.submit("echo", 1, nil))
	}
	if n, err := g.store.Farm("echo").Redrive(t.Context(), refs, 100); n != 10 || err != nil {
		t.Fatal(n, err)
	}
	if job, _ = g.ended(job.ID); job.Done != 10 {
		t.Errorf("%+v", job)
	}
	stopRig(t, d)
	g.sound("echo")
}

// Two dispatchers share a farm; the window holds for both together, and nothing
// is run twice (P43, P71).
func TestTwoDispatchersShareAWindow(t *testing.T) { onEach(t, twoDispatchersShareAWindow) }

func twoDispatchersShareAWindow(t *testing.T, g *rig) {
	g.publish(farmOf("echo", 7))
	var live, most, calls atomic.Int64
	w := func(context.Context, skeleton.Task, []byte) skeleton.Call {
		calls.Add(1)
		if n := live.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer live.Add(-1)
		time.Sleep(time.Millisecond) // the work
		return okay
	}
	a := g.start(w, func(c *dispatch.Config) { c.Owner = "a" })
	b := g.start(w, func(c *dispatch.Config) { c.Owner = "b" })
	job, _ := g.ended(g.submit("echo", 1000, nil))
	stopRig(t, a)
	stopRig(t, b)
	if job.Done != 1000 || calls.Load() != 1000 || most.Load() > 7 {
		t.Errorf("%+v, %d calls, %d at once", job, calls.Load(), most.Load())
	}
	if s := g.sound("echo"); s.Refused != 0 || s.Lapsed != 0 {
		t.Errorf("%+v", s)
	}
}

// A job is cancelled while its tasks run: the calls end at once.
func TestCancelReachesRunningCalls(t *testing.T) { onEach(t, cancelReachesRunningCalls) }

func cancelReachesRunningCalls(t *testing.T, g *rig) {
	g.publish(farmOf("echo", 4))
	started := make(chan struct{}, 10)
	d := g.start(func(ctx context.Context, _ skeleton.Task, _ []byte) skeleton.Call {
		started <- struct{}{}
		<-ctx.Done()
		return skeleton.Call{Failure: skeleton.Unreachable}
	})
	id := g.submit("echo", 10, nil)
	for range 4 {
		<-started
	}
	if _, err := g.store.Farm("echo").Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	job, _ := g.ended(id)
	stopRig(t, d) // waits for the leases of the four
	if job.Cancelled != 10 {
		t.Errorf("%+v", job)
	}
	g.sound("echo")
}

// kill -9 of Redis in the middle: nothing is lost, and at most what was running
// is run again.
func TestRedisDiesInTheMiddle(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: kill -9 of Redis, which waits for leases to lapse; make test runs it")
	}
	srv := redistest.Start(t, "appendfsync always")
	store := redisledger.New(redistest.Client(t, srv), redisledger.Options{})
	t.Cleanup(store.Close)
	g := &rig{t: t, store: store}
	g.publish(farmOf("echo", 5))
	var mu sync.Mutex
	runs := map[int]int{}
	third := make(chan struct{})
	d := g.start(func(_ context.Context, task skeleton.Task, _ []byte) skeleton.Call {
		mu.Lock()
		runs[task.Index]++
		if len(runs) == 300 {
			close(third)
		}
		mu.Unlock()
		time.Sleep(time.Millisecond) // the work
		return okay
	})
	id := g.submit("echo", 1000, nil)
	<-third
	srv.Kill()
	time.Sleep(300 * time.Millisecond) // the outage
	if err := srv.Run(); err != nil {
		t.Fatal(err)
	}
	job, _ := g.ended(id)
	stopRig(t, d)
	mu.Lock()
	defer mu.Unlock()
	again := 0
	for _, n := range runs {
		again += n - 1
	}
	if job.Done != 1000 || len(runs) != 1000 || again > 5 {
		t.Errorf("%+v, %d tasks run, %d of them again", job, len(runs), again)
	}
	g.sound("echo")
}

// deafened is a store of which one dispatcher gets no leases and can renew none.
type deafened struct {
	ledger.Store
	off *atomic.Bool
}

type deafLedger struct {
	ledger.Ledger
	off *atomic.Bool
}

func (s deafened) Farm(name string) ledger.Ledger { return deafLedger{s.Store.Farm(name), s.off} }

func (l deafLedger) Renew(ctx context.Context, leases []ledger.Lease) ([]ledger.Standing, error) {
	if l.off.Load() {
		return nil, ledger.ErrUnavailable
	}
	return l.Ledger.Renew(ctx, leases)
}

func (l deafLedger) Take(ctx context.Context, owner string, n int) (ledger.Taken, error) {
	if l.off.Load() {
		return ledger.Taken{}, ledger.ErrUnavailable
	}
	return l.Ledger.Take(ctx, owner, n)
}

// Two dispatchers and eight tasks of a minute; the first loses the store for
// longer than a lease. Eight results are accepted; the other executions are
// fenced and counted (P43, P47).
func TestEightTasksEightResults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := &rig{t: t, store: memledger.New(memledger.Options{})}
		f := farmOf("echo", 16)
		f.Settings.Timeout = 2 * time.Minute
		g.publish(f)
		var off atomic.Bool
		var calls atomic.Int64
		w := func(ctx context.Context, _ skeleton.Task, _ []byte) skeleton.Call {
			calls.Add(1)
			return work(context.WithoutCancel(ctx), time.Minute) // cannot be stopped, as behind a gateway
		}
		a := g.start(w, func(c *dispatch.Config) { c.Owner, c.Store = "a", deafened{g.store, &off} })
		id := g.submit("echo", 8, nil)
		after(time.Second)
		off.Store(true)
		b := g.start(w, func(c *dispatch.Config) { c.Owner = "b" })
		after(5 * time.Minute)
		job, results := g.ended(id)
		if job.Done != 8 || len(results) != 8 || calls.Load() != 16 {
			t.Errorf("%+v, %d results, %d calls", job, len(results), calls.Load())
		}
		off.Store(false)
		stopRig(t, a)
		stopRig(t, b)
		if s := g.sound("echo"); s.Refused != 8 || s.Lapsed != 8 {
			t.Errorf("%d refused, %d lapsed", s.Refused, s.Lapsed)
		}
	})
}
