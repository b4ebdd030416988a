package redisledger_test

import (
	"bytes"
	"context"
	"errors"
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

// Faults that were found once, each with what showed it.

// past is a store whose clock can be moved, with a farm of a hundred slots.
type past struct {
	*testing.T
	rdb   *redis.Client
	l     ledger.Ledger
	shift time.Duration
}

func newPast(t *testing.T, limits ledger.Limits) *past {
	p := &past{T: t, rdb: redistest.Client(t, redistest.Start(t))}
	store := redisledger.New(p.rdb, redisledger.Options{Limits: limits, Offset: func() time.Duration { return p.shift }})
	t.Cleanup(store.Close)
	p.l = store.Farm("f")
	p.no(ledger.Publish(t.Context(), store, skeleton.Roster{Farms: []skeleton.Farm{{Name: "f", Ready: 1, Target: 1, Settings: skeleton.Settings{Slots: 1000}}}}))
	return p
}

func (p *past) no(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *past) stage(key string) (ledger.Stage, string) {
	p.Helper()
	id := "f~" + ulid.Make().String()
	st, err := p.l.Stage(p.Context(), ledger.Submission{Job: skeleton.Job{ID: id}, Key: key})
	p.no(err)
	return st, id
}

func (p *past) job(tasks ...skeleton.NewTask) string {
	p.Helper()
	st, id := p.stage("")
	p.no(st.Add(p.Context(), tasks))
	_, err := st.Commit(p.Context())
	p.no(err)
	return id
}

func (p *past) take(n int) []ledger.Lease {
	p.Helper()
	t, err := p.l.Take(p.Context(), "o", n)
	p.no(err)
	if len(t.Leases) != n {
		p.Fatalf("took %d of %d", len(t.Leases), n)
	}
	return t.Leases
}

func (p *past) settle(o ledger.Outcome) ledger.Verdict {
	p.Helper()
	s, err := p.l.Settle(p.Context(), []ledger.Outcome{o}, 0)
	p.no(err)
	return s.Verdicts[0]
}

func (p *past) page(id string, q ledger.Query) ledger.Page {
	p.Helper()
	page, err := p.l.Results(p.Context(), id, q)
	p.no(err)
	return page
}

func (p *past) sound() {
	p.Helper()
	a, err := p.l.Audit(context.Background())
	p.no(err)
	if len(a.Problems) > 0 {
		p.Errorf("audit: %v", a.Problems)
	}
}

// A repeated Settle wrote over a large result that was accepted, and the sweeper
// removed it two minutes later: the name of the key was the same.
func TestRepeatedSettleKeepsALargeResult(t *testing.T) {
	p := newPast(t, ledger.Limits{})
	id := p.job(skeleton.NewTask{})
	o := ledger.Outcome{Lease: p.take(1)[0], Kind: ledger.Success, Body: bytes.Repeat([]byte("a"), 10_000)}
	if v := p.settle(o); v != "done" {
		t.Fatal(v)
	}
	again := o
	again.Body = bytes.Repeat([]byte("b"), 9_000)
	for _, o := range []ledger.Outcome{o, again} {
		if v := p.settle(o); v != ledger.Refused {
			t.Fatal(v)
		}
	}
	p.shift += time.Hour
	_, err := p.l.Sweep(t.Context())
	p.no(err)
	if got := p.page(id, ledger.Query{}).Results[0].Body; !bytes.Equal(got, o.Body) {
		t.Fatalf("%d bytes", len(got))
	}
	p.no(p.l.Acknowledge(t.Context(), id, false, 1))
	if left, err := p.rdb.Keys(t.Context(), "farmhand:{f}:r:*").Result(); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	p.sound()
}

// A large submission whose last tasks met other stages' bytes was told that the
// queue is full, although it was committed, and its bodies were removed.
func TestFullIsNotCommitted(t *testing.T) {
	p := newPast(t, ledger.Limits{QueueBytes: 100_000})
	p.job() // the server knows all scripts
	other, _ := p.stage("")
	p.no(other.Add(t.Context(), heavy(ledger.MaxBatch, 100))) // written, but never committed
	mine, id := p.stage("")
	err := mine.Add(t.Context(), heavy(ledger.MaxBatch, 90)) // 50,000 + 45,000
	p.no(err)
	err = mine.Add(t.Context(), heavy(100, 100))
	if err == nil {
		_, err = mine.Commit(t.Context())
	}
	_, jobErr := p.l.Job(t.Context(), id)
	switch {
	case errors.Is(err, ledger.ErrFull):
		if !errors.Is(jobErr, ledger.ErrNotFound) {
			t.Errorf("refused, but there: %v", jobErr)
		}
	case err == nil:
		for _, l := range p.take(ledger.MaxBatch) {
			if l.Size == 0 {
				t.Fatal("a body is gone")
			}
		}
	default:
		t.Fatal(err)
	}
	p.sound()
}

func heavy(n, bytes int) []skeleton.NewTask {
	tasks := make([]skeleton.NewTask, n)
	for i := range tasks {
		tasks[i].Body = []byte(strings.Repeat("x", bytes))
	}
	return tasks
}

// A repeated submission was refused while the queue was full.
func TestRepeatedSubmissionNeedsNoRoom(t *testing.T) {
	p := newPast(t, ledger.Limits{QueueTasks: 2})
	var ids [2]string
	for i := range ids {
		st, id := p.stage("key")
		p.no(st.Add(t.Context(), make([]skeleton.NewTask, 2)))
		r, err := st.Commit(t.Context())
		p.no(err)
		ids[i] = id
		if r.Job.ID != ids[0] || r.Repeated != (i > 0) || r.Tasks != 2 {
			t.Errorf("%d: %+v", i, r)
		}
	}
	p.sound()
}

// Redriving the dead letters of a cancelled job made its tasks wait for ever
// after: neither were they cancelled nor could they be.
func TestRedriveLeavesCancelledJobsAlone(t *testing.T) {
	p := newPast(t, ledger.Limits{})
	cancelled, kept := p.job(make([]skeleton.NewTask, 3)...), p.job(skeleton.NewTask{})
	for _, l := range p.take(4)[1:] { // the first is cancelled while it runs
		if v := p.settle(ledger.Outcome{Lease: l, Kind: ledger.Rejected}); v != "dead" {
			t.Fatal(v)
		}
	}
	j, err := p.l.Cancel(t.Context(), cancelled)
	p.no(err)
	if j.Dead != 2 || j.Cancelled != 1 || j.Ended.IsZero() {
		t.Fatalf("%+v", j)
	}
	letters, _, err := p.l.Dead(t.Context(), "", 10)
	p.no(err)
	n, err := p.l.Redrive(t.Context(), []string{letters[0].Ref, letters[1].Ref}, 0)
	p.no(err)
	if n != 0 {
		t.Fatalf("%d tasks of a cancelled job were redriven by name", n)
	}
	n, err = p.l.Redrive(t.Context(), nil, 1) // not stopped by those before it
	p.no(err)
	if n != 1 {
		t.Fatalf("%d redriven", n)
	}
	if l := p.take(1); l[0].Job != kept {
		t.Errorf("redriven: %+v", l[0].Task)
	}
	p.sound()
}

// A client that came back with an old cursor after everything was acknowledged
// was never told that the job had ended.
func TestResumeBehindAcknowledged(t *testing.T) {
	p := newPast(t, ledger.Limits{})
	for _, ordered := range []bool{false, true} {
		id := p.job(make([]skeleton.NewTask, 3)...)
		for _, l := range p.take(3) {
			p.settle(ledger.Outcome{Lease: l, Kind: ledger.Success})
		}
		p.no(p.l.Acknowledge(t.Context(), id, ordered, 3))
		if page := p.page(id, ledger.Query{Ordered: ordered}); !page.End || page.Next != 3 || len(page.Results) > 0 {
			t.Errorf("ordered %v: %+v", ordered, page)
		}
	}
}

// A cancellation that was cut off, of a job that expired since, stopped every
// sweep.
func TestSweepOfACancelledJobThatExpired(t *testing.T) {
	p := newPast(t, ledger.Limits{})
	p.no(p.rdb.SAdd(t.Context(), "farmhand:{f}:cancelling", ulid.Make().String()).Err())
	for range 2 {
		_, err := p.l.Sweep(t.Context())
		p.no(err)
	}
	if n := p.rdb.Exists(t.Context(), "farmhand:{f}:cancelling").Val(); n != 0 {
		t.Error("still to be cancelled")
	}
}

// The lease of a cancelled task whose job expired could neither be settled nor
// told from a live one.
func TestAJobOutlivesItsLeases(t *testing.T) {
	p := newPast(t, ledger.Limits{Retention: ledger.LeaseTime})
	id := p.job(skeleton.NewTask{})
	leases := p.take(1)
	_, err := p.l.Cancel(t.Context(), id)
	p.no(err)
	for range 3 {
		p.shift += 10 * time.Second
		s, err := p.l.Renew(t.Context(), leases)
		p.no(err)
		if s[0] != ledger.WasCancel {
			t.Fatal(s[0])
		}
		_, err = p.l.Sweep(t.Context())
		p.no(err)
	}
	if v := p.settle(ledger.Outcome{Lease: leases[0], Kind: ledger.Success}); v != "cancelled" {
		t.Fatal(v)
	}
	p.shift += ledger.LeaseTime
	_, err = p.l.Sweep(t.Context())
	p.no(err)
	if _, err := p.l.Job(t.Context(), id); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
	p.sound()
}

// The first exchange with a server that knew how to take, but not yet how to
// settle, took before it settled.
func TestFirstExchangeSettlesFirst(t *testing.T) {
	p := newPast(t, ledger.Limits{})
	p.job(make([]skeleton.NewTask, 2)...)
	l := p.take(1)[0]
	s, taken, err := p.l.Exchange(t.Context(), "o", []ledger.Outcome{{Lease: l, Kind: ledger.Released}}, 0, 1)
	p.no(err)
	if s.Verdicts[0] != "waiting" || s.Live != 0 || s.Waiting != 2 || len(taken.Leases) != 1 || taken.Leases[0].Index != 0 {
		t.Errorf("%+v %+v", s, taken)
	}
	p.sound()
}
