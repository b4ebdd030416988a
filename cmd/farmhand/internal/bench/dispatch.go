package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"farmhand/gateway"
	"farmhand/platform"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
)

// DispatchConfig of the dispatch benchmark.
type DispatchConfig struct {
	Stack    string        // stack file
	Prebuilt string        // folder of built functions; "" builds them
	Replicas int           // of the worker (4)
	Tasks    int           // of a capacity run (5,000)
	Runs     int           // counted runs (5)
	Open     time.Duration // length of an open-loop run (5 s)
	Seed     uint64
	Log      func(format string, args ...any)
}

const (
	benchWorker = "montecarlo"
	// tinyTask costs the worker some microseconds: what is measured is the way.
	tinyTask = `{"spot":100,"strike":105,"rate":0.02,"volatility":0.25,"maturity":1,"kind":"call","paths":100,"seed":7}`
)

// Dispatch measures the way of a task through real processes: client, gateway,
// dispatcher, Redis, gateway, worker, and back.
func Dispatch(ctx context.Context, c DispatchConfig) (r *Report, err error) {
	g, err := newDispatchRig(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	r = NewReport(c.Seed)
	var direct, through, added, rates []float64
	for i := 0; i <= c.Runs; i++ { // the first is a warm-up
		d, p, err := g.proxy(ctx)
		if err != nil {
			return nil, err
		}
		rate, err := g.capacity(ctx, c.Tasks)
		if err != nil {
			return nil, err
		}
		c.Log("run %d of %d: %.0f tasks/s, a call direct %.3f ms, through the gateway %.3f ms", i, c.Runs, rate, d, p)
		if i > 0 {
			direct, through, added, rates = append(direct, d), append(through, p), append(added, p-d), append(rates, rate)
		}
	}
	r.Add("direct_p50_ms_at_10pct", direct)
	r.Add("gateway_p50_ms_at_10pct", through)
	r.Add("proxy_p50_ms_at_10pct", added)
	r.Add("dispatch_tasks_per_s", rates)
	for _, load := range []int{10, 50, 80} {
		rate := r.Figures["dispatch_tasks_per_s"] * float64(load) / 100
		var p50s, p99s []float64
		for range c.Runs {
			p50, p99, err := g.open(ctx, rate, c.Open)
			if err != nil {
				return nil, err
			}
			own := r.Figures["direct_p50_ms_at_10pct"]
			p50s, p99s = append(p50s, p50-own), append(p99s, p99-own)
		}
		c.Log("open loop at %d %% (%.0f/s): added p50 %.2f ms", load, rate, quantile(p50s, 0.5))
		r.Add(fmt.Sprintf("dispatch_added_p50_ms_at_%dpct", load), p50s)
		r.Add(fmt.Sprintf("dispatch_added_p99_ms_at_%dpct", load), p99s)
	}
	return r, nil
}

// dispatchRig is a platform with the suite on it.
type dispatchRig struct {
	state    string
	platform *platform.Platform
	gateway  *gateway.Client
	client   *jobclient.Client
	http     *http.Client
	token    string
	direct   string // URL of one replica of the worker
}

func newDispatchRig(ctx context.Context, c DispatchConfig) (_ *dispatchRig, err error) {
	g := &dispatchRig{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	if g.state, err = os.MkdirTemp("", "farmhand-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	g.platform, err = platform.Start(ctx, platform.Config{State: g.state, Listen: "127.0.0.1:0", MetricsListen: "none", Stack: c.Stack,
		Prebuilt: c.Prebuilt, Deploy: true, ColdStart: "none", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	user, password := g.platform.Credentials()
	if g.gateway, err = gateway.New(g.platform.URL(), &gateway.Credentials{User: user, Password: password}, gateway.Options{}); err != nil {
		return nil, err
	}
	if g.token, err = g.platform.Token(); err != nil {
		return nil, err
	}
	if g.client, err = jobclient.New(g.platform.URL()+"/function/dispatcher", g.token); err != nil {
		return nil, err
	}
	if err = g.byHand(ctx); err != nil {
		return nil, err
	}
	if err = g.gateway.Scale(ctx, benchWorker, c.Replicas); err != nil {
		return nil, err
	}
	if err = g.ready(ctx, c.Replicas); err != nil {
		return nil, err
	}
	g.direct, err = g.replica(ctx, user, password)
	return g, err
}

// byHand keeps the controller from scaling the worker.
func (g *dispatchRig) byHand(ctx context.Context) error {
	url := g.platform.URL() + "/function/controller/?farm=" + benchWorker
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, strings.NewReader(`{"policy":"manual"}`))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+g.token)
	resp, err := g.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("bench: the controller answered %s", resp.Status)
	}
	return nil
}

func (g *dispatchRig) close() error {
	g.http.CloseIdleConnections()
	var err error
	if g.platform != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = g.platform.Stop(ctx)
	}
	return errors.Join(err, os.RemoveAll(g.state))
}

// ready waits until the dispatcher knows all replicas of the worker.
func (g *dispatchRig) ready(ctx context.Context, replicas int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := g.client.Farm(ctx, benchWorker)
		if err == nil && f.Ready == replicas {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bench: the worker did not become ready: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// replica finds the address of one replica, as the platform told the process.
func (g *dispatchRig) replica(ctx context.Context, user, password string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.platform.URL()+"/system/function/"+benchWorker+"?usage=1", nil)
	if err != nil {
		return "", err
	}
	req.SetBasicAuth(user, password)
	resp, err := g.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var status struct{ Instances []platform.Instance }
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		return "", err
	}
	for _, i := range status.Instances {
		env, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(i.Pid), "environ"))
		if err != nil {
			continue
		}
		for _, v := range strings.Split(string(env), "\x00") {
			if address, ok := strings.CutPrefix(v, "farmhand_listen="); ok {
				return "http://" + address, nil
			}
		}
	}
	return "", errors.New("bench: no replica of the worker was found")
}

// proxy times calls of the worker one after another, direct and through the
// gateway in turn, at a tenth of what one connection could do.
func (g *dispatchRig) proxy(ctx context.Context) (direct, through float64, err error) {
	const calls = 400
	var d, p []time.Duration
	for range calls {
		for _, side := range []struct {
			url  string
			into *[]time.Duration
		}{{g.direct, &d}, {g.platform.URL() + "/function/" + benchWorker, &p}} {
			took, err := g.timeCall(ctx, side.url)
			if err != nil {
				return 0, 0, err
			}
			*side.into = append(*side.into, took)
		}
	}
	return milliseconds(quantile(d, 0.5)), milliseconds(quantile(p, 0.5)), nil
}

func (g *dispatchRig) timeCall(ctx context.Context, url string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(tinyTask))
	if err != nil {
		return 0, err
	}
	started := time.Now()
	resp, err := g.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, err
	}
	took := time.Since(started)
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("bench: %s answers %d", url, resp.StatusCode)
	}
	return took, nil
}

// capacity posts many tiny tasks at once and returns how many a second came back.
func (g *dispatchRig) capacity(ctx context.Context, n int) (float64, error) {
	body := bytes.Repeat([]byte(tinyTask+"\n"), n)
	started := time.Now()
	s, err := g.client.Submit(ctx, jobclient.Options{"worker": benchWorker}, jobclient.Piece{Type: "application/x-ndjson", Body: body})
	if err != nil {
		return 0, err
	}
	done := 0
	_, _, err = g.client.Results(ctx, s.Job.ID, jobclient.Query{Follow: true, Ack: true}, func(jobapi.Result) error { done++; return nil })
	if err == nil && done != n {
		err = fmt.Errorf("bench: %d of %d results", done, n)
	}
	return float64(n) / time.Since(started).Seconds(), err
}

// open offers tasks at a fixed rate and returns quantiles of their sojourn, in
// milliseconds. What arrives within 5 ms is sent as one submission.
func (g *dispatchRig) open(ctx context.Context, rate float64, length time.Duration) (p50, p99 float64, err error) {
	s, err := g.client.Submit(ctx, jobclient.Options{"worker": benchWorker, "open": "true"}, jobclient.Piece{Type: "application/x-ndjson", Body: []byte(tinyTask + "\n")})
	if err != nil {
		return 0, 0, err
	}
	total := int(rate * length.Seconds())
	started := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for sent := 0; sent < total; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
		due := min(total, int(rate*time.Since(started).Seconds()))
		if due == sent {
			continue
		}
		piece := jobclient.Piece{Type: "application/x-ndjson", Body: bytes.Repeat([]byte(tinyTask+"\n"), due-sent)}
		if _, err := g.client.Append(ctx, s.Job.ID, nil, piece); err != nil {
			return 0, 0, err
		}
		sent = due
	}
	if _, err := g.client.CloseJob(ctx, s.Job.ID); err != nil {
		return 0, 0, err
	}
	var sojourns []float64
	_, _, err = g.client.Results(ctx, s.Job.ID, jobclient.Query{Follow: true, Ack: true}, func(r jobapi.Result) error {
		sojourns = append(sojourns, 1000*r.Sojourn)
		return nil
	})
	return quantile(sojourns, 0.5), quantile(sojourns, 0.99), err
}
