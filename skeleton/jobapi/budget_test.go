package jobapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"farmhand/skeleton/ledger"
)

// Claims are served in turn; one that is given up makes way for those behind.
func TestBudgetServesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{total: 10, wait: time.Minute}
		var got [4]bool
		claim := func(i int, ctx context.Context, n int64) {
			go func() { got[i] = b.take(ctx, n) }()
			synctest.Wait()
		}
		claim(0, t.Context(), 8)
		ctx, cancel := context.WithCancel(t.Context())
		claim(1, ctx, 9)
		claim(2, t.Context(), 2) // would fit, but is behind
		if got != [4]bool{true} {
			t.Fatalf("%v", got)
		}
		cancel()
		synctest.Wait()
		if got != [4]bool{0: true, 2: true} {
			t.Fatalf("%v", got)
		}
		claim(3, t.Context(), 8)
		b.give(8)
		synctest.Wait()
		if got != [4]bool{0: true, 2: true, 3: true} || b.used != 10 {
			t.Fatalf("%v, %d used", got, b.used)
		}
		begin := time.Now()
		if b.take(t.Context(), 1) || time.Since(begin) != time.Minute {
			t.Errorf("gave up after %s", time.Since(begin))
		}
		s := share{budget: b}
		b.give(10)
		if err := s.grow(t.Context(), 99); err != nil || s.held != 10 {
			t.Errorf("%d held, %v", s.held, err)
		}
		s.shrink(0)
		if b.used != 0 || len(b.queue) != 0 {
			t.Errorf("%+v", b)
		}
	})
}

// When the memory is full bodies and results are refused for now, and nothing
// is accepted; what was taken of it comes back.
func TestMemoryIsBounded(t *testing.T) {
	a, store := inside(t, Config{MemoryWait: time.Nanosecond})
	post := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest("POST", "/jobs?worker=echo", strings.NewReader(strings.Repeat("x", 1<<20))))
		return w
	}
	w := post()
	var s Submitted
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != 201 || a.memory.used != 0 {
		t.Fatalf("%d %s, %d bytes held", w.Code, w.Body, a.memory.used)
	}
	work(t, store, 1, make([]byte, 1<<20))
	for _, free := range []int64{0, 512 << 10} { // neither has room for all of it
		if !a.memory.take(t.Context(), a.memory.total-free) {
			t.Fatal("there is no room")
		}
		read := httptest.NewRecorder()
		a.ServeHTTP(read, httptest.NewRequest("GET", "/jobs/"+s.Job.ID+"/results", nil))
		for what, w := range map[string]*httptest.ResponseRecorder{"body": post(), "results": read} {
			if w.Code != 429 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"busy"`) {
				t.Errorf("%s: %d %.200s", what, w.Code, w.Body)
			}
		}
		a.memory.give(a.memory.total - free)
	}
	if g, err := store.Farm("echo").Gauges(t.Context()); err != nil || g.Submitted != 1 {
		t.Errorf("%+v %v", g, err)
	}
	read := httptest.NewRecorder()
	a.ServeHTTP(read, httptest.NewRequest("GET", "/jobs/"+s.Job.ID+"/results", nil))
	if read.Code != 200 || read.Body.Len() < 1<<20 || a.memory.used != 0 {
		t.Errorf("%d, %d bytes, %d held", read.Code, read.Body.Len(), a.memory.used)
	}
}

// A body is charged for what it takes: as it came, and decoded.
func TestBodiesAreChargedTwice(t *testing.T) {
	b := &budget{total: 10 << 20, used: 1 << 20, wait: time.Nanosecond}
	m := &meter{r: strings.NewReader(strings.Repeat("x", 6<<20)), ctx: t.Context(), share: &share{budget: b}}
	n, err := io.Copy(io.Discard, struct{ io.Reader }{m})
	if err == nil {
		t.Errorf("%d bytes were read", n)
	}
	m.passed()
	if more, err := io.Copy(io.Discard, struct{ io.Reader }{m}); err != nil || n+more != 6<<20 {
		t.Errorf("%d, then %d bytes, %v", n, more, err)
	}
}

// stuck is a client that does not read.
type stuck struct {
	header  http.Header
	writing func()
	release <-chan struct{}
}

func (s *stuck) Header() http.Header { return s.header }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Write([]byte) (int, error) {
	s.writing()
	<-s.release
	return 0, io.ErrClosedPipe
}

// Clients that do not read hold a small page each.
func TestStuckReadersHoldLittle(t *testing.T) {
	a, store := inside(t, Config{})
	job := finished(t, a, store, 100, make([]byte, 50<<10))
	const readers = 100
	release := make(chan struct{})
	var begun, over sync.WaitGroup
	begun.Add(readers)
	for i := range readers {
		query := []string{"", "?follow=1", "?limit=10000"}[i%3]
		over.Go(func() {
			once := sync.OnceFunc(begun.Done)
			a.ServeHTTP(&stuck{header: http.Header{}, writing: once, release: release}, httptest.NewRequest("GET", "/jobs/"+job+"/results"+query, nil))
		})
	}
	begun.Wait()
	if most := int64(readers * (pageBytes + pageResults*resultBytes)); a.memory.used == 0 || a.memory.used > most {
		t.Errorf("%d bytes are held, want at most %d", a.memory.used, most)
	}
	close(release)
	over.Wait()
	if a.memory.used != 0 {
		t.Errorf("%d bytes are held at the end", a.memory.used)
	}
}

// Pages are small, and an answer holds what was asked for all the same.
func TestAnswersAreMadeOfSmallPages(t *testing.T) {
	store := &recorded{}
	a, mem := inside(t, Config{Store: store})
	store.Store = mem
	job := finished(t, a, mem, 60, make([]byte, 50<<10))
	for query, want := range map[string]int{"": 60, "?limit=7": 7, "?follow=1": 60, "?follow=1&limit=7": 60} {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest("GET", "/jobs/"+job+"/results"+query, nil))
		if n := strings.Count(w.Body.String(), "\n") - 1; n != want {
			t.Errorf("%q: %d results, want %d", query, n, want)
		}
	}
	for _, q := range store.queries {
		if q.MaxBytes > pageBytes || q.MaxBytes == 0 || q.Limit > pageResults {
			t.Errorf("%+v", q)
		}
	}
}

// recorded remembers what was asked for.
type recorded struct {
	ledger.Store
	queries []ledger.Query
}

func (r *recorded) Farm(name string) ledger.Ledger { return &recordedFarm{r.Store.Farm(name), r} }

type recordedFarm struct {
	ledger.Ledger
	r *recorded
}

func (f *recordedFarm) Results(ctx context.Context, job string, q ledger.Query) (ledger.Page, error) {
	f.r.queries = append(f.r.queries, q)
	return f.Ledger.Results(ctx, job, q)
}
