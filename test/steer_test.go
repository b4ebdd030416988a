package test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/controller"
	"farmhand/controller/redispast"
	"farmhand/internal/redisproc"
	"farmhand/internal/redistest"
	"farmhand/skeleton/jobapi/jobclient"
)

// steer starts a farm that scales by itself, of one worker at first, with a
// decision every second. It has a redis-server of its own; the dispatcher and the
// controller are the platform's or, if cfg says so, started by control and begun.
//
// Nothing is scaled down before one long window of data, which is two minutes. To
// spare the tests these, Redis tells of two quiet minutes before.
func steer(t *testing.T, cfg config) (*farm, *redisproc.Server) {
	t.Helper()
	server := redistest.Start(t, "appendfsync always") // as in onRedis
	return steerOn(t, server.Addr, cfg), server
}

// steerOn is steer on a given redis-server.
func steerOn(t *testing.T, addr string, cfg config) *farm {
	t.Helper()
	seeds := quiet(t, addr)
	annotations := map[string]string{"farmhand.policy": "staffing:down=5", "farmhand.interval": "1s", "farmhand.deadline": "2s",
		"farmhand.min": "1", "farmhand.max": "8"}
	maps.Copy(annotations, cfg.farm)
	cfg.byHand = cfg.byHand || cfg.steered
	cfg.farm, cfg.redis, cfg.workers = annotations, "redis://"+addr+"/0", cmp.Or(cfg.workers, 1)
	f := start(t, cfg)
	f.seeds = seeds
	return f
}

// quiet writes seconds in which a dispatcher was alive and nothing happened: two
// minutes that are over and one to come, in which the real ones begin. It returns
// the keys.
func quiet(t *testing.T, addr string) (keys []string) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	pipe := rdb.Pipeline()
	now := time.Now().Unix()
	for sec := now - 130; sec < now+60; sec++ {
		key := fmt.Sprintf("farmhand:{worker}:sec:%d", sec)
		pipe.HSet(t.Context(), key, "n", fmt.Sprintf("%d,0,0,0,0,0,0,0,0,0,0", sec*1_000_000))
		pipe.Expire(t.Context(), key, 20*time.Minute)
		if sec >= now {
			keys = append(keys, key)
		}
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	return keys
}

// begun waits until a dispatcher serves the farm, and takes away the seconds that
// have not come yet.
func (f *farm) begun() {
	f.t.Helper()
	if f.client == nil {
		base, _ := f.dispatch("")
		f.connect(base)
	}
	until(f.t, patience, "the dispatcher knows the farm", func() bool {
		v, err := f.client.Farm(f.t.Context(), "worker")
		return err == nil && v.Missing == ""
	})
	for _, key := range f.seeds {
		var sec int64
		if _, err := fmt.Sscanf(path.Base(key), "farmhand:{worker}:sec:%d", &sec); err != nil {
			f.t.Fatal(err)
		}
		if sec > time.Now().Unix() {
			f.rdb.Del(f.t.Context(), key)
		}
	}
	until(f.t, patience, "a long window is covered", func() bool {
		r := f.last()
		return r != nil && r.Observation.Long.Covered >= 119
	})
}

// steerer is a controller of the test's own.
type steerer struct {
	f     *farm
	url   string
	owner string // of leases
	cmd   *exec.Cmd
}

// control starts one more controller, which scales over the gateway at url ("" =
// the platform's own). It ends with the test.
func (f *farm) control(url string) *steerer {
	f.t.Helper()
	s := &steerer{f: f}
	s.url, s.cmd = f.run("controller", url, "farmhand-token", "basic-auth-user", "basic-auth-password")
	var v controller.Overview
	s.ask(http.MethodGet, "/", "", &v)
	s.owner = v.Owner
	return s
}

// ask calls the controller's API and returns the status of its answer.
func (s *steerer) ask(method, path, body string, answer any) int {
	s.f.t.Helper()
	return s.f.ask(s.url, method, path, body, answer)
}

func (f *farm) ask(base, method, path, body string, answer any) int {
	f.t.Helper()
	var status int
	until(f.t, patience, "the controller answers", func() bool {
		req, err := http.NewRequestWithContext(f.t.Context(), method, base+path, bytes.NewReader([]byte(body)))
		if err != nil {
			f.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+f.read("secrets/farmhand-token"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if status = resp.StatusCode; err != nil || status >= http.StatusInternalServerError {
			return false
		}
		if answer != nil {
			if err := json.Unmarshal(raw, answer); err != nil {
				f.t.Fatalf("%s %s: %s: %v", method, path, raw, err)
			}
		}
		return true
	})
	return status
}

// view is the farm as this controller shows it.
func (s *steerer) view() (v controller.FarmView) {
	s.f.t.Helper()
	s.ask(http.MethodGet, "/?farm=worker", "", &v)
	return v
}

func (s *steerer) signal(sig syscall.Signal) {
	s.f.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.f.t.Fatal(err)
	}
}

// last is the newest receipt; nil where there is none.
func (f *farm) last() *controller.Receipt {
	f.t.Helper()
	return f.lastOf("worker")
}

func (f *farm) lastOf(worker string) *controller.Receipt {
	f.t.Helper()
	list := f.receipts(worker, 1)
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// all receipts: more than a test makes.
const all = 2000

// receipts are the newest n, the oldest of them first.
func (f *farm) receipts(worker string, n int) []controller.Receipt {
	f.t.Helper()
	raws, err := redispast.New(f.rdb, nil).Tail(context.Background(), worker, n)
	if err != nil {
		return nil // Redis is away: nothing is new
	}
	list := make([]controller.Receipt, len(raws))
	for i, raw := range raws {
		if err := json.Unmarshal(raw, &list[len(raws)-1-i]); err != nil {
			f.t.Fatal(err)
		}
	}
	return list
}

// more waits for n more receipts that hold what is asked for, and returns them
// and those between.
func (f *farm) more(n int, what string, holds func(r *controller.Receipt) bool) (list []controller.Receipt) {
	f.t.Helper()
	var from int64
	if r := f.last(); r != nil {
		from = r.Seq
	}
	until(f.t, patience, fmt.Sprintf("%d more decisions: %s", n, what), func() bool {
		r := f.last()
		if r == nil || r.Seq <= from {
			return false
		}
		from = r.Seq
		list = append(list, *r)
		if holds == nil || holds(r) {
			n--
		}
		return n <= 0
	})
	return list
}

// desired is how many replicas the platform was asked for.
func (f *farm) desired(worker string) int {
	f.t.Helper()
	d, err := f.gateway.Function(f.t.Context(), worker, false)
	if err != nil {
		f.t.Fatal(err)
	}
	return int(d.Replicas)
}

// told reads all receipts of a farm and checks what holds of any: each can be
// decided again from its own inputs with the same outcome (P81). Each goes on from
// the one before, whoever decided that one: what policies remember, spent tokens,
// the budget used (P31, P32). A fence belongs to one controller, and none of a
// lower fence follows (P64, P65).
func (f *farm) told(worker string) []controller.Receipt {
	f.t.Helper()
	list := f.receipts(worker, all)
	owners := map[int64]string{}
	for i := range list {
		r := &list[i]
		if err := r.Replay(); err != nil {
			f.t.Error(err)
		}
		if owner := owners[r.Fence]; owner != "" && owner != r.Controller {
			f.t.Errorf("receipt %d: fence %d is that of %s and of %s", r.Seq, r.Fence, owner, r.Controller)
		}
		owners[r.Fence] = r.Controller
		if i == 0 {
			continue
		}
		a := &list[i-1]
		if r.Seq <= a.Seq || r.Fence < a.Fence || r.At.Before(a.At) {
			f.t.Errorf("receipt %d (fence %d, %s) follows %d (fence %d, %s)", r.Seq, r.Fence, r.At, a.Seq, a.Fence, a.At)
		}
		if r.Seq == a.Seq+1 && r.Policy == a.Policy { // of a killed controller a receipt may be missing
			v := controller.Decide(a.Inputs)
			if then, now := text(f.t, v.After, v.Next), text(f.t, r.Memory, r.State); then != now {
				f.t.Errorf("receipt %d left behind\n%s\nbut %d goes on from\n%s", a.Seq, then, r.Seq, now)
			}
		}
	}
	return list
}

func text(t *testing.T, v ...any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// explained logs the course of a farm when its test has failed: one line a change.
func (f *farm) explained(worker string) {
	if !f.t.Failed() {
		return
	}
	before := ""
	for _, r := range f.receipts(worker, all) {
		line := fmt.Sprintf("%d→%d ready %d %s", r.Before, r.Replicas, r.Observation.Ready, r.Controller)
		if line != before || r.Acted != nil || r.Foreign != nil {
			f.t.Logf("%s #%d fence %d %s: waiting %v, running %v, age %.1f; %s; acted %s, foreign %s", r.At.Format("05.000"), r.Seq, r.Fence,
				line, r.Observation.Waiting, r.Observation.Running, r.Observation.Age, r.Why(), text(f.t, r.Acted), text(f.t, r.Foreign))
		}
		before = line
	}
}

// stream submits one task after the other, each of which takes so long, until end
// is called. That waits for their end and expects that all are done, none charged.
func (f *farm) stream(worker string, every time.Duration, service string) (end func() (jobs int)) {
	stop, jobs := make(chan struct{}), make(chan []string, 1)
	var once sync.Once
	close := func() { once.Do(func() { close(stop) }) }
	f.t.Cleanup(close)
	go func() {
		var ids []string
		defer func() { jobs <- ids }()
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			body := fmt.Appendf(nil, `{"sleep":%q}`, service)
			s, err := f.client.Submit(f.t.Context(), jobclient.Options{"worker": worker}, jobclient.Piece{Type: "application/x-ndjson", Body: body})
			if err != nil {
				if f.t.Context().Err() == nil {
					f.t.Errorf("a submission: %v", err)
				}
				return
			}
			ids = append(ids, s.Job.ID)
		}
	}()
	return func() int {
		f.t.Helper()
		close()
		ids := <-jobs
		for _, id := range ids {
			if v := f.ended(id); v.Done != 1 {
				f.t.Errorf("%+v", v)
			}
		}
		return len(ids)
	}
}

// asked is a scale call that reached a front.
type asked struct {
	at     time.Time
	worker string
	n      int
	mended int // what is passed on; changed by a front's scale
}

// front is a gateway before the platform's. It notes every scale call, and may
// answer it or change it.
type front struct {
	URL string

	mu    sync.Mutex
	calls []asked
	scale func(w http.ResponseWriter, r *http.Request, a *asked) (answered bool)
}

// front starts a gateway before the platform's.
func (f *farm) front() *front {
	f.t.Helper()
	to, err := url.Parse(f.url)
	if err != nil {
		f.t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ErrorLog: log.New(io.Discard, "", 0)}
	g := &front{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ok, _ := path.Match("/system/scale-function/*", r.URL.Path); !ok {
			forward.ServeHTTP(w, r)
			return
		}
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		n, _ := body["replicas"].(float64)
		a := asked{at: time.Now(), worker: path.Base(r.URL.Path), n: int(n), mended: int(n)}
		g.mu.Lock()
		g.calls = append(g.calls, a)
		scale := g.scale
		g.mu.Unlock()
		if scale != nil && scale(w, r, &a) {
			return
		}
		body["replicas"] = a.mended
		raw, _ := json.Marshal(body) // it was JSON before
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
		forward.ServeHTTP(w, r)
	}))
	f.t.Cleanup(func() {
		server.CloseClientConnections() // of calls that hang
		server.Close()
	})
	g.URL = server.URL
	return g
}

// do sets what happens to scale calls; nil forwards them.
func (g *front) do(scale func(w http.ResponseWriter, r *http.Request, a *asked) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.scale = scale
}

// of lists the scale calls of a worker.
func (g *front) of(worker string) (list []asked) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.calls {
		if a.worker == worker {
			list = append(list, a)
		}
	}
	return list
}

// bucket is the most scale calls that a farm may make in a time: ten at once, and
// 480 an hour; one more for the time that passes while they are counted.
func bucket(d time.Duration) int { return 10 + int(d.Hours()*480) + 1 }
