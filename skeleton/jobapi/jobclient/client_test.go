package jobclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"farmhand/internal/fn"
	"farmhand/internal/problem"
	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/apitest"
	"farmhand/skeleton/jobapi/jobclient"
	"farmhand/skeleton/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mount = "/function/dispatcher"

// setup serves a dispatcher behind a gateway that does to calls what a test
// wants.
func setup(t *testing.T, o apitest.Options, gateway func(http.Handler) http.Handler) *jobclient.Client {
	t.Helper()
	_, api := apitest.Start(t, o)
	h := http.StripPrefix(mount, fn.RequireToken("s3cret", api))
	if gateway != nil {
		h = gateway(h)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(func() { api.Close(); srv.Close() })
	c, err := jobclient.New(srv.URL+mount, "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.Hurry()
	return c
}

func lines(n int) jobclient.Piece {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i)
	}
	return jobclient.Piece{Type: "application/x-ndjson", Body: []byte(b.String())}
}

// every lets n calls of a kind through, then gives the next one to fault, again
// and again.
func every(n int64, method string, fault func(next http.Handler, w http.ResponseWriter, r *http.Request)) func(http.Handler) http.Handler {
	var count atomic.Int64
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == method && count.Add(1)%(n+1) == 0 {
				fault(next, w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Answers get lost after the dispatcher has accepted the work: the client sends
// it again, and nothing is accepted twice.
func TestLostAnswersAreRepeatedExactlyOnce(t *testing.T) {
	lost := atomic.Int64{}
	c := setup(t, apitest.Options{Worker: apitest.Echo}, every(1, "POST", func(next http.Handler, _ http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		lost.Add(1)
		panic(http.ErrAbortHandler)
	}))
	ctx := t.Context()
	s, err := c.Submit(ctx, jobclient.Options{"worker": "echo", "open": "true"}, lines(10))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := c.Append(ctx, s.Job.ID, nil, lines(10)); err != nil {
			t.Fatal(err)
		}
	}
	j, err := c.CloseJob(ctx, s.Job.ID)
	if err != nil || j.Total != 60 || lost.Load() == 0 {
		t.Fatalf("%+v %v, %d answers lost", j, err, lost.Load())
	}
	seen := map[int]int{}
	_, end, err := c.Results(ctx, s.Job.ID, jobclient.Query{Follow: true}, func(r jobapi.Result) error {
		seen[r.Index]++
		return nil
	})
	if err != nil || !end || len(seen) != 60 {
		t.Errorf("%d results, end %v, %v", len(seen), end, err)
	}
}

// cut ends an answer in the middle of a line.
type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		_, _ = c.ResponseWriter.Write(b[:len(b)/2])
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(b)
}

func (c *cut) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// A stream that breaks is resumed: every result is handled once, in order, and
// acknowledged only then.
func TestResultsResume(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		c := setup(t, apitest.Options{Worker: apitest.Echo, Config: jobapi.Config{MaxWait: 100 * time.Millisecond}},
			every(1, "GET", func(next http.Handler, w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "/results") {
					next.ServeHTTP(w, r)
					return
				}
				next.ServeHTTP(&cut{ResponseWriter: w, left: 20_000}, r)
			}))
		ctx := t.Context()
		s, err := c.Submit(ctx, jobclient.Options{"worker": "echo"}, lines(3000))
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		seen := map[int]bool{}
		cursor, end, err := c.Results(ctx, s.Job.ID, jobclient.Query{Follow: true, Ordered: ordered, Ack: true}, func(r jobapi.Result) error {
			if seen[r.Index] {
				t.Errorf("result %d twice", r.Index)
			}
			seen[r.Index] = true
			order = append(order, r.Index)
			if string(r.Body) != fmt.Sprint(r.Index) {
				t.Errorf("result %d: %s", r.Index, r.Body)
			}
			return nil
		})
		if err != nil || !end || cursor != 3000 || len(seen) != 3000 {
			t.Fatalf("ordered %v: %d results, cursor %d, end %v, %v", ordered, len(seen), cursor, end, err)
		}
		for i, index := range order {
			if ordered && i != index {
				t.Fatalf("result %d came at place %d", index, i)
			}
		}
		f, err := c.Farm(ctx, "echo")
		if err != nil || f.Queue.KeptBytes != 0 {
			t.Errorf("%d bytes kept, %v", f.Queue.KeptBytes, err)
		}
	}
}

// What the caller cannot handle is not acknowledged, and its error comes back.
func TestHandlerThatFails(t *testing.T) {
	c := setup(t, apitest.Options{Worker: apitest.Echo}, nil)
	s, err := c.Submit(t.Context(), jobclient.Options{"worker": "echo", "wait": "30s"}, lines(5))
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	if _, _, err := c.Results(t.Context(), s.Job.ID, jobclient.Query{Ack: true}, func(jobapi.Result) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	n := 0
	if _, _, err := c.Results(t.Context(), s.Job.ID, jobclient.Query{}, func(jobapi.Result) error { n++; return nil }); err != nil || n != 5 {
		t.Errorf("%d results left, %v", n, err)
	}
}

// Results are acknowledged only once the caller has said that they are kept.
func TestKeptBeforeAcknowledged(t *testing.T) {
	c := setup(t, apitest.Options{Worker: apitest.Echo}, nil)
	s, err := c.Submit(t.Context(), jobclient.Options{"worker": "echo", "wait": "30s"}, lines(2500))
	if err != nil {
		t.Fatal(err)
	}
	handled, kept := 0, 0
	full := errors.New("disk full")
	q := jobclient.Query{Ack: true, Kept: func() error {
		kept = handled
		if handled > 1500 {
			return full
		}
		return nil
	}}
	cursor, _, err := c.Results(t.Context(), s.Job.ID, q, func(jobapi.Result) error { handled++; return nil })
	if !errors.Is(err, full) || handled != 2000 || kept != 2000 || cursor != 1000 {
		t.Fatalf("%d handled, %d kept, cursor %d, %v", handled, kept, cursor, err)
	}
	n := 0
	if _, _, err := c.Results(t.Context(), s.Job.ID, jobclient.Query{}, func(jobapi.Result) error { n++; return nil }); err != nil || n != 1500 {
		t.Errorf("%d results are left, %v", n, err)
	}
}

// Busy answers are waited out; the time they name is kept.
func TestRetryAfterIsHonoured(t *testing.T) {
	c := setup(t, apitest.Options{}, every(1, "POST", func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, problem.New(503, "store-unavailable", "Redis is away").After(time.Second))
	}))
	var waits []time.Duration
	c.Notify = func(err error, wait time.Duration) {
		var p *problem.Problem
		if !errors.As(err, &p) || p.Type != "store-unavailable" {
			t.Errorf("told of %v", err)
		}
		waits = append(waits, wait)
	}
	for range 2 {
		if _, err := c.Submit(t.Context(), jobclient.Options{"worker": "echo"}, lines(1)); err != nil {
			t.Fatal(err)
		}
	}
	if len(waits) != 1 || waits[0] != time.Second {
		t.Errorf("waited %v", waits)
	}
}

// A client waits as long as it is told to, and for patience in all.
func TestPatienceIsOfTheClock(t *testing.T) {
	tries := atomic.Int64{}
	c := setup(t, apitest.Options{}, every(0, "POST", func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		problem.Write(w, problem.New(503, "store-unavailable", "Redis is away").After(7*time.Second))
	}))
	c.Patience = time.Minute
	if _, err := c.Submit(t.Context(), jobclient.Options{"worker": "echo"}, lines(1)); err == nil || tries.Load() != 10 { // after 0, 7, … 63 s
		t.Errorf("%v after %d tries", err, tries.Load())
	}
}

// A result that is too large is refused while it comes, not when it is here.
func TestEndlessResult(t *testing.T) {
	c := setup(t, apitest.Options{}, every(0, "GET", func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write([]byte(strings.Repeat("x", 1<<10))); err != nil {
				return
			}
		}
	}))
	c.SetMaxLine(100 << 10)
	_, _, err := c.Results(t.Context(), "echo~01ARZ3NDEKTSV4RRFFQ69G5FAV", jobclient.Query{}, func(jobapi.Result) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("%v", err)
	}
}

// When patience is over the dispatcher's own words come back.
func TestPatienceEnds(t *testing.T) {
	c := setup(t, apitest.Options{}, every(0, "POST", func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, problem.New(503, "store-unavailable", "Redis is away").After(time.Second))
	}))
	c.Patience = 0
	_, err := c.Submit(t.Context(), jobclient.Options{"worker": "echo"}, lines(1))
	var p *problem.Problem
	if !errors.As(err, &p) || p.Type != "store-unavailable" {
		t.Errorf("%v", err)
	}
}

// A full queue is no reason to give up, however long it lasts.
func TestFullQueueIsWaitedOut(t *testing.T) {
	release := make(chan struct{})
	c := setup(t, apitest.Options{Limits: ledger.Limits{QueueTasks: 10}, Worker: func(ctx context.Context, task skeleton.Task, body []byte) skeleton.Call {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return apitest.Echo(ctx, task, body)
	}}, nil)
	c.Patience = 0
	open := sync.OnceFunc(func() { close(release) })
	c.Notify = func(err error, wait time.Duration) {
		var p *problem.Problem
		if !errors.As(err, &p) || p.Type != "queue-full" || wait < time.Second {
			t.Errorf("told of %v, %s", err, wait)
		}
		open()
	}
	for range 2 {
		if _, err := c.Submit(t.Context(), jobclient.Options{"worker": "echo"}, lines(8)); err != nil {
			t.Fatal(err)
		}
	}
}

// Refusals come back at once, as problems.
func TestRefusals(t *testing.T) {
	c := setup(t, apitest.Options{}, nil)
	c.Notify = func(err error, _ time.Duration) { t.Errorf("repeated after %v", err) }
	var p *problem.Problem
	if _, err := c.Submit(t.Context(), jobclient.Options{"worker": "nobody"}, lines(1)); !errors.As(err, &p) || p.Field != "worker" {
		t.Errorf("%v", err)
	}
	if _, err := c.Job(t.Context(), "nonsense"); !errors.As(err, &p) || p.Status != 404 {
		t.Errorf("%v", err)
	}
	if _, err := jobclient.New("dispatcher", ""); err == nil {
		t.Error("no URL is taken")
	}
}

// Where nothing listens, or the gateway has no dispatcher, the error says so at
// once.
func TestNobodyThere(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	c, err := jobclient.New(srv.URL+mount, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Jobs(t.Context(), "", "", 1); err == nil || !strings.Contains(err.Error(), "no function dispatcher") {
		t.Errorf("%v", err)
	}
	srv.Close()
	fresh, err := jobclient.New(srv.URL+mount, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Jobs(t.Context(), "", "", 1); !errors.Is(err, jobclient.ErrUnreachable) || !strings.Contains(err.Error(), srv.URL+":") {
		t.Errorf("%v", err)
	}
}
