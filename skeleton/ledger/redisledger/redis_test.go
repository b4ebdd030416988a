package redisledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"farmhand/internal/redistest"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/redisledger"
)

// What only Redis can get wrong: keys left behind, scripts forgotten, memory
// full, data of another version. The contract itself is proven by ledgertest.

const farmName = "w"

type fixture struct {
	t     *testing.T
	rdb   *redis.Client
	store *redisledger.Store
	farm  ledger.Ledger
	shift time.Duration
}

func setup(t *testing.T, limits ledger.Limits, conf ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, rdb: redistest.Client(t, redistest.Start(t, conf...))}
	f.store = redisledger.New(f.rdb, redisledger.Options{Limits: limits, Offset: func() time.Duration { return f.shift }})
	t.Cleanup(f.store.Close)
	f.farm = f.store.Farm(farmName)
	settings := skeleton.DefaultSettings()
	settings.Slots = 1000
	f.must(ledger.Publish(context.Background(), f.store, skeleton.Roster{Farms: []skeleton.Farm{{Name: farmName, Settings: settings, Ready: 1, Target: 1}}}))
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) submit(bodies ...[]byte) skeleton.Job {
	f.t.Helper()
	st, err := f.farm.Stage(context.Background(), ledger.Submission{Job: skeleton.Job{ID: farmName + "~" + ulid.Make().String()}})
	f.must(err)
	for _, b := range bodies {
		f.must(st.Add(context.Background(), []skeleton.NewTask{{Body: b, Class: 5}}))
	}
	r, err := st.Commit(context.Background())
	f.must(err)
	return r.Job
}

func (f *fixture) take(n int) []ledger.Lease {
	f.t.Helper()
	taken, err := f.farm.Take(context.Background(), "me", n)
	f.must(err)
	return taken.Leases
}

func (f *fixture) settle(kind ledger.Kind, body []byte, leases ...ledger.Lease) []ledger.Verdict {
	f.t.Helper()
	var outcomes []ledger.Outcome
	for _, l := range leases {
		outcomes = append(outcomes, ledger.Outcome{Lease: l, Kind: kind, Status: 200, Body: body, Reason: "because"})
	}
	s, err := f.farm.Settle(context.Background(), outcomes, 0)
	f.must(err)
	return s.Verdicts
}

func (f *fixture) sweep() {
	f.t.Helper()
	for {
		more, err := f.farm.Sweep(context.Background())
		f.must(err)
		if !more {
			return
		}
	}
}

// keys lists the farm's keys but those that a farm always has.
func (f *fixture) keys() []string {
	f.t.Helper()
	all, err := f.rdb.Keys(context.Background(), "farmhand:{"+farmName+"}:*").Result()
	f.must(err)
	var left []string
	for _, k := range all {
		switch strings.TrimPrefix(k, "farmhand:{"+farmName+"}:") {
		case "n", "live", "leases", "beats":
		default:
			left = append(left, k)
		}
	}
	return left
}

func (f *fixture) audit() {
	f.t.Helper()
	a, err := f.farm.Audit(context.Background())
	f.must(err)
	if len(a.Problems) > 0 {
		f.t.Errorf("%v %+v", a.Problems, a)
	}
}

var big = bytes.Repeat([]byte("x"), 10_000)

// Large bodies and results stand in keys of their own and are removed with what
// links them: at the end of the job, when acknowledged, when the job expires.
func TestNoKeyIsLeftBehind(t *testing.T) {
	f := setup(t, ledger.Limits{})
	ctx := context.Background()
	job := f.submit(big, []byte("small"), big, big)
	leases := f.take(10)
	for _, l := range leases {
		body, err := f.farm.Body(ctx, l)
		f.must(err)
		if len(body) != l.Size {
			t.Errorf("task %d: body of %d bytes", l.Index, len(body))
		}
	}
	f.settle(ledger.Success, big, leases[:2]...)
	f.settle(ledger.Success, []byte("ok"), leases[2])
	f.settle(ledger.Rejected, nil, leases[3])
	page, err := f.farm.Results(ctx, job.ID, ledger.Query{})
	f.must(err)
	if len(page.Results) != 4 || !bytes.Equal(page.Results[0].Body, big) || !page.End {
		t.Fatalf("%d results, end %v", len(page.Results), page.End)
	}
	f.must(f.farm.Acknowledge(ctx, job.ID, false, page.Next))
	f.audit()
	f.shift += 8 * 24 * time.Hour
	f.sweep()
	f.sweep()
	if left := f.keys(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	f.audit()
}

// A dispatcher that dies between writing a large result and settling leaves it
// to the sweeper; so does a client that vanished in the middle of a submission.
func TestSweeperRemovesWhatNothingLinks(t *testing.T) {
	f := setup(t, ledger.Limits{})
	ctx := context.Background()
	job := f.submit([]byte("a"))
	lease := f.take(1)[0]
	f.shift += ledger.LeaseTime + time.Second
	if second := f.take(1); len(second) != 1 {
		t.Fatal("the lapsed task was not handed out again")
	}
	// The first dispatcher comes back with a large result: refused, and swept.
	if v := f.settle(ledger.Success, big, lease); v[0] != ledger.Refused {
		t.Errorf("verdict %s", v[0])
	}
	st, err := f.farm.Stage(ctx, ledger.Submission{Job: skeleton.Job{ID: farmName + "~" + ulid.Make().String()}})
	f.must(err)
	for range 200 { // enough to be written before the commit
		f.must(st.Add(ctx, []skeleton.NewTask{{Body: big}}))
	}
	f.shift += time.Hour
	f.sweep()
	f.sweep()
	for _, k := range f.keys() {
		if strings.Contains(k, "}:r:") || strings.Contains(k, "}:b:") || strings.Contains(k, "}:stages") || strings.Contains(k, "}:loose") {
			t.Errorf("left behind: %s", k)
		}
	}
	if _, err := st.Commit(ctx); !errors.Is(err, ledger.ErrGone) {
		t.Errorf("a swept stage commits: %v", err)
	}
	_, err = f.farm.Cancel(ctx, job.ID)
	f.must(err)
	f.audit()
}

// A server that was restarted knows no scripts; nobody notices.
func TestScriptsAreTaughtAgain(t *testing.T) {
	f := setup(t, ledger.Limits{})
	ctx := context.Background()
	for i := range 3 {
		f.must(f.rdb.ScriptFlush(ctx).Err())
		f.submit([]byte("x"))
		f.must(f.rdb.ScriptFlush(ctx).Err())
		leases := f.take(1)
		f.must(f.rdb.ScriptFlush(ctx).Err())
		s, taken, err := f.farm.Exchange(ctx, "me", []ledger.Outcome{{Lease: leases[0], Kind: ledger.Success}}, 0, 1)
		f.must(err)
		if s.Verdicts[0] != "done" || len(taken.Leases) != 0 {
			t.Errorf("round %d: %+v %+v", i, s, taken)
		}
	}
	f.audit()
}

// What an exchange has settled is not hidden by a take that fails after it.
func TestExchangeSettlesThoughTakeFails(t *testing.T) {
	f := setup(t, ledger.Limits{})
	ctx := context.Background()
	job := f.submit([]byte("a"))
	outcomes := []ledger.Outcome{{Lease: f.take(1)[0], Kind: ledger.Success, Status: 200}}
	f.submit([]byte("b"))
	f.must(f.rdb.HDel(ctx, "farmhand:{"+farmName+"}:runs", "0000000002").Err())
	if _, err := f.farm.Take(ctx, "me", 1); err == nil {
		t.Fatal("a run without description was taken")
	}
	s, taken, err := f.farm.Exchange(ctx, "me", outcomes, 0, 5)
	f.must(err)
	if s.Verdicts[0] != "done" || len(taken.Leases) != 0 {
		t.Errorf("%+v %+v", s, taken)
	}
	if j, err := f.farm.Job(ctx, job.ID); err != nil || j.Done != 1 || j.Ended.IsZero() {
		t.Errorf("%+v %v", j, err)
	}
	if g, err := f.farm.Gauges(ctx); err != nil || g.Done != 1 || g.Leased != 0 {
		t.Errorf("%+v %v", g, err)
	}
}

// Redis out of memory: what cannot be stored is refused as a whole, and what is
// there goes on when there is room again.
func TestOutOfMemory(t *testing.T) {
	f := setup(t, ledger.Limits{})
	ctx := context.Background()
	job := f.submit([]byte("a"), []byte("b"))
	f.must(f.rdb.ConfigSet(ctx, "maxmemory", "1mb").Err())
	st, err := f.farm.Stage(ctx, ledger.Submission{Job: skeleton.Job{ID: farmName + "~" + ulid.Make().String()}})
	f.must(err)
	err = st.Add(ctx, []skeleton.NewTask{{Body: []byte("c")}})
	if err == nil {
		_, err = st.Commit(ctx)
	}
	if !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a submission to a full Redis: %v", err)
	}
	if _, err := f.farm.Take(ctx, "me", 1); err != nil && !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("taking from a full Redis: %v", err)
	}
	f.must(f.rdb.ConfigSet(ctx, "maxmemory", "0").Err())
	f.shift += ledger.LeaseTime + time.Second
	leases := f.take(5)
	if len(leases) != 2 {
		t.Fatalf("%d tasks", len(leases))
	}
	f.settle(ledger.Success, nil, leases...)
	if j, err := f.farm.Job(ctx, job.ID); err != nil || j.Done != 2 {
		t.Errorf("%+v %v", j, err)
	}
	f.audit()
}

// Leases that somebody deletes by hand are missed by the sweeper, which lets
// their tasks run again; what was redriven before is not taken for lost. (P48)
func TestDeletedLeases(t *testing.T) {
	f := setup(t, ledger.Limits{})
	ctx := context.Background()
	f.submit([]byte("a"), []byte("b"), []byte("c"), []byte("d"))
	leases := f.take(3)
	f.settle(ledger.Rejected, nil, leases[0])
	n, err := f.farm.Redrive(ctx, nil, 1)
	f.must(err)
	f.settle(ledger.Success, []byte("ok"), leases[1])
	if left := f.take(2); n != 1 || len(left) != 2 { // d, and a again
		t.Fatalf("%d redriven, %d left", n, len(left))
	}
	f.must(f.rdb.Del(ctx, "farmhand:{"+farmName+"}:leases").Err())
	if _, err := f.farm.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if g, err := f.farm.Gauges(ctx); err != nil || g.Leased != 0 || g.Waiting != 3 || g.Lapsed != 3 {
		t.Errorf("after the sweep: %+v %v", g, err)
	}
	if v := f.settle(ledger.Success, nil, leases[2]); v[0] != ledger.Refused {
		t.Errorf("the old lease: %s", v[0])
	}
	f.audit()
	again := f.take(5)
	if len(again) != 3 {
		t.Fatalf("%d run again", len(again))
	}
	f.settle(ledger.Success, nil, again...)
	f.audit()
}

// A stored task that cannot be read dies alone; a job that somebody deleted by
// hand stops nobody.
func TestSpoiltRecords(t *testing.T) {
	f := setup(t, ledger.Limits{})
	ctx := context.Background()
	gone := f.submit([]byte("g"))
	f.submit([]byte("a"), []byte("b"), []byte("c"))
	prefix := "farmhand:{" + farmName + "}:"
	pieces, err := f.rdb.Keys(ctx, prefix+"p:*").Result()
	f.must(err)
	for _, p := range pieces {
		if n, _ := f.rdb.HLen(ctx, p).Result(); n == 3 {
			f.must(f.rdb.HSet(ctx, p, "0000000", "no header").Err())
			f.must(f.rdb.HDel(ctx, p, "0000001").Err())
		}
	}
	_, unit, _ := strings.Cut(gone.ID, "~")
	f.must(f.rdb.Del(ctx, prefix+"job:"+unit).Err())
	leases := f.take(5)
	if len(leases) != 2 {
		t.Fatalf("%d tasks can be read", len(leases))
	}
	f.settle(ledger.Success, nil, leases...)
	if g, err := f.farm.Gauges(ctx); err != nil || g.Done != 2 || g.Dead != 2 || g.Leased != 0 || g.Waiting != 0 {
		t.Errorf("%+v %v", g, err)
	}
}

// Redis read-only (a replica after a failover) is "unavailable", not a failure.
func TestReadOnly(t *testing.T) {
	f := setup(t, ledger.Limits{})
	ctx := context.Background()
	f.submit([]byte("a"))
	f.must(f.rdb.ReplicaOf(ctx, "127.0.0.1", "1").Err())
	if _, err := f.farm.Take(ctx, "me", 1); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("take: %v", err)
	}
	f.must(f.rdb.ReplicaOf(ctx, "NO", "ONE").Err())
	if len(f.take(1)) != 1 {
		t.Error("the task is gone")
	}
}

// Data of a newer schema is left alone; a newer minor version is read.
func TestSchema(t *testing.T) {
	f := setup(t, ledger.Limits{})
	ctx := context.Background()
	f.must(f.store.Check(ctx))
	f.must(f.rdb.Set(ctx, "farmhand:schema", "1.7", 0).Err())
	f.must(f.store.Check(ctx))
	f.must(f.rdb.Set(ctx, "farmhand:schema", "2.0", 0).Err())
	if err := f.store.Check(ctx); !errors.Is(err, ledger.ErrSchema) {
		t.Errorf("schema 2.0: %v", err)
	}
}

// The durability of an answer is read from the server itself.
func TestDurability(t *testing.T) {
	for conf, want := range map[string]string{"appendonly no": "memory", "appendfsync everysec": "process", "appendfsync always": "disk"} {
		f := setup(t, ledger.Limits{}, conf)
		if got, err := f.store.Durability(context.Background()); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", conf, got, err, want)
		}
	}
}

// Ten thousand runs of a job, cancelled while some of its tasks are leased,
// delayed and waiting again: every state is left for cancelled, once.
func TestCancelOfManyRuns(t *testing.T) {
	f := setup(t, ledger.Limits{})
	ctx := context.Background()
	st, err := f.farm.Stage(ctx, ledger.Submission{Job: skeleton.Job{ID: farmName + "~" + ulid.Make().String()}})
	f.must(err)
	const n = 5000
	tasks := make([]skeleton.NewTask, n)
	for i := range tasks {
		tasks[i] = skeleton.NewTask{Body: []byte("x"), Tenant: fmt.Sprint(i % 97), Class: i % 10}
	}
	f.must(st.Add(ctx, tasks))
	r, err := st.Commit(ctx)
	f.must(err)
	leases := f.take(400)
	f.settle(ledger.Success, nil, leases[:100]...)
	f.settle(ledger.Released, nil, leases[100:200]...)
	_, err = f.farm.Settle(ctx, []ledger.Outcome{{Lease: leases[200], Kind: ledger.Failed, Delay: time.Hour}}, 0)
	f.must(err)
	j, err := f.farm.Cancel(ctx, r.Job.ID)
	f.must(err)
	if j.Done != 100 || j.Cancelled != n-100 || j.Pending() != 0 || j.Ended.IsZero() {
		t.Errorf("%+v", j)
	}
	f.audit()
	standings, err := f.farm.Renew(ctx, leases[201:])
	f.must(err)
	for _, s := range standings {
		if s != ledger.WasCancel {
			t.Fatalf("a cancelled lease is %s", s)
		}
	}
	for _, v := range f.settle(ledger.Success, nil, leases[201:]...) {
		if v != "cancelled" {
			t.Fatalf("verdict %s", v)
		}
	}
	if g, err := f.farm.Gauges(ctx); err != nil || g.Live != 0 || g.Waiting != 0 || g.QueueBytes != 0 {
		t.Errorf("%+v %v", g, err)
	}
	f.audit()
}
