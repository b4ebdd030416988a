package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"farmhand/controller"
	"farmhand/skeleton"
)

// platform is scripted: what it shows, or why it fails.
type platform struct {
	mu      sync.Mutex
	workers []controller.Worker
	err     error
	lists   int
}

func (p *platform) Workers(context.Context) ([]controller.Worker, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists++
	return p.workers, p.err
}

// show changes what the platform shows and returns how often it was listed.
func (p *platform) show(err error, workers ...controller.Worker) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers, p.err = workers, err
	return p.lists
}

// board remembers what was published.
type board struct {
	roster  skeleton.Roster
	err     error
	publish int
}

func (b *board) Roster(context.Context) (skeleton.Roster, error) { return b.roster, b.err }

func (b *board) PublishWindows(context.Context, []skeleton.Farm) error { return b.err }

func (b *board) PublishRoster(_ context.Context, r skeleton.Roster) error {
	if b.err != nil {
		return b.err
	}
	b.publish++
	r.Published = time.Now()
	b.roster = r
	return nil
}

func worker(name string, annotations map[string]string) controller.Worker {
	return controller.Worker{Name: name, Labels: map[string]string{"farmhand.worker": "true"}, Annotations: annotations, Desired: 2, Ready: 1}
}

func step(t *testing.T, c *controller.Controller) skeleton.Roster {
	t.Helper()
	r, err := c.Step(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPublishesWhatThePlatformShows(t *testing.T) {
	p, b := &platform{workers: []controller.Worker{worker("b", map[string]string{"farmhand.slots": "4"}), worker("a", nil)}}, &board{}
	c, err := controller.New(controller.Config{Platform: p, Publisher: b})
	if err != nil {
		t.Fatal(err)
	}
	step(t, c)
	if len(b.roster.Farms) != 2 || b.roster.Farms[0].Name != "a" {
		t.Fatalf("%+v", b.roster)
	}
	if f := b.roster.Farms[1]; f.Settings.Slots != 4 || f.Ready != 1 || f.Target != 2 || len(f.Problems) > 0 {
		t.Errorf("%+v", f)
	}
}

// A platform that cannot be reached is no platform without workers: the last
// roster stays.
func TestUnknownIsNotEmpty(t *testing.T) {
	p, b := &platform{workers: []controller.Worker{worker("a", nil)}}, &board{}
	c, err := controller.New(controller.Config{Platform: p, Publisher: b})
	if err != nil {
		t.Fatal(err)
	}
	step(t, c)
	p.workers, p.err = nil, errors.New("gateway away")
	if _, err := c.Step(context.Background()); err == nil {
		t.Error("a failed list was no error")
	}
	if len(b.roster.Farms) != 1 || b.publish != 1 {
		t.Errorf("published %d times: %+v", b.publish, b.roster)
	}
	if s := c.Status(); s.Error == "" || len(s.Roster.Farms) != 1 {
		t.Errorf("%+v", s)
	}
}

// An invalid annotation is named and the last good settings stay.
func TestInvalidAnnotationKeepsTheLastGood(t *testing.T) {
	p, b := &platform{workers: []controller.Worker{worker("a", map[string]string{"farmhand.slots": "4"})}}, &board{}
	c, err := controller.New(controller.Config{Platform: p, Publisher: b})
	if err != nil {
		t.Fatal(err)
	}
	step(t, c)
	p.workers = []controller.Worker{worker("a", map[string]string{"farmhand.slots": "none"})}
	r := step(t, c)
	if f := r.Farms[0]; f.Settings.Slots != 4 || len(f.Problems) != 1 || !strings.Contains(f.Problems[0], "farmhand.slots") {
		t.Errorf("%+v", f)
	}
}

func TestTimeoutsMustFit(t *testing.T) {
	w := worker("a", map[string]string{"farmhand.timeout": "55s"})
	w.Env = map[string]string{"exec_timeout": "30s", "write_timeout": "60"}
	c, err := controller.New(controller.Config{Platform: &platform{workers: []controller.Worker{w}}, Publisher: &board{}})
	if err != nil {
		t.Fatal(err)
	}
	f := step(t, c).Farms[0]
	if len(f.Problems) != 1 || !strings.Contains(f.Problems[0], "exec_timeout") {
		t.Errorf("%q", f.Problems)
	}
}

// A worker that left the list stays in the roster, with the time it has been
// gone, also over a restart of the controller; when it comes back all is well.
func TestMissingWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, b := &platform{workers: []controller.Worker{worker("a", nil)}}, &board{}
		start := func() *controller.Controller {
			c, err := controller.New(controller.Config{Platform: p, Publisher: b})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		c := start()
		step(t, c)
		p.workers = nil
		if f := step(t, c).Farms[0]; f.Missing <= 0 || f.Missing > time.Second || f.Ready != 0 || f.Target != 0 {
			t.Errorf("first list without it: %+v", f)
		}
		<-time.After(31 * time.Second)
		if f := step(t, c).Farms[0]; f.Missing < 30*time.Second {
			t.Errorf("after 31 s: %s", f.Missing)
		}
		c = start() // a new process
		if f := step(t, c).Farms[0]; f.Missing < 30*time.Second {
			t.Errorf("after a restart: %s", f.Missing)
		}
		p.workers = []controller.Worker{worker("a", nil)}
		if f := step(t, c).Farms[0]; f.Missing != 0 || f.Ready != 1 {
			t.Errorf("back: %+v", f)
		}
		p.workers = nil
		step(t, c)
		<-time.After(2 * time.Hour)
		if r := step(t, c); len(r.Farms) != 0 {
			t.Errorf("two hours later: %+v", r)
		}
	})
}

// The loop goes on after errors, and looks every second while replicas start.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, b := &platform{err: errors.New("away")}, &board{}
		c, err := controller.New(controller.Config{Platform: p, Publisher: b})
		if err != nil {
			t.Fatal(err)
		}
		c.Start()
		<-time.After(9 * time.Second)
		if n := p.show(nil, worker("a", nil)); n != 5 { // 1 of 2 replicas is ready
			t.Errorf("%d lists in 9 s of failure", n)
		}
		<-time.After(10 * time.Second)
		c.Stop()
		c.Stop()
		if b.publish < 9 || b.publish > 11 {
			t.Errorf("%d rosters in 10 s with a replica starting", b.publish)
		}
	})
}

func TestHandler(t *testing.T) {
	p, b := &platform{workers: []controller.Worker{worker("a", nil)}}, &board{}
	c, err := controller.New(controller.Config{Platform: p, Publisher: b})
	if err != nil {
		t.Fatal(err)
	}
	h := c.Handler()
	call := func(method, path string) (int, map[string]any) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		var body map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return w.Code, body
	}
	if code, _ := call(http.MethodPost, "/"); code != 200 {
		t.Errorf("step: %d", code)
	}
	if code, body := call(http.MethodGet, "/?farm=a"); code != 200 || body["name"] != "a" {
		t.Errorf("one farm: %d %v", code, body)
	}
	if code, body := call(http.MethodGet, "/?farm=b"); code != 404 || body["field"] != "farm" {
		t.Errorf("unknown farm: %d %v", code, body)
	}
	p.err = errors.New("away")
	if code, body := call(http.MethodPost, "/"); code != 503 || body["retry"] == nil {
		t.Errorf("platform away: %d %v", code, body)
	}
	if code, _ := call(http.MethodGet, "/nothing"); code != 404 {
		t.Errorf("unknown path: %d", code)
	}
}
