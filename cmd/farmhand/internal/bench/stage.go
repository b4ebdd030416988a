package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openfaas/faas-provider/types"
	"github.com/redis/go-redis/v9"

	"farmhand/controller"
	"farmhand/controller/redispast"
	"farmhand/gateway"
	"farmhand/platform"
	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
)

// stage is a local platform with farms of workers that sleep, so that many of them
// fit on a small machine.
type stage struct {
	platform *platform.Platform
	gateway  *gateway.Client
	client   *jobclient.Client
	redis    *redis.Client
	starts   startLog
	state    string
	command  string // of a worker
}

// arrival is a task to come: when, and for how long its worker sleeps.
type arrival struct {
	at      time.Duration
	seconds float64
}

// newStage starts the platform of a configuration, in a state folder of its own.
func newStage(ctx context.Context, c platform.Config) (_ *stage, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	g := &stage{command: self + " bench worker"}
	if g.state, err = os.MkdirTemp("", "farmhand-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	c.State, c.Listen, c.MetricsListen, c.NATSListen, c.Deploy = g.state, "127.0.0.1:0", "none", "none", true
	c.AllowDirs, c.Log = []string{filepath.Dir(self)}, slog.New(&g.starts)
	if g.platform, err = platform.Start(ctx, c); err != nil {
		return nil, err
	}
	user, password := g.platform.Credentials()
	if g.gateway, err = gateway.New(g.platform.URL(), &gateway.Credentials{User: user, Password: password}, gateway.Options{}); err != nil {
		return nil, err
	}
	token, err := g.platform.Token()
	if err != nil {
		return nil, err
	}
	if g.client, err = jobclient.New(g.platform.URL()+"/function/dispatcher", token); err != nil {
		return nil, err
	}
	url, err := g.platform.RedisURL()
	if err != nil {
		return nil, err
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	g.redis = redis.NewClient(o)
	return g, nil
}

func (g *stage) close() error {
	var err error
	if g.redis != nil {
		err = g.redis.Close()
	}
	if g.client != nil {
		g.client.Close()
	}
	if g.platform != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, g.platform.Stop(ctx))
	}
	return errors.Join(err, os.RemoveAll(g.state))
}

// farmName is that of the i-th farm.
func farmName(i int) string { return fmt.Sprintf("farm-%02d", i) }

// deploy makes a farm with one policy.
func (g *stage) deploy(ctx context.Context, name string, s skeleton.Settings) error {
	annotations := map[string]string{"farmhand.local.command": g.command,
		skeleton.AnnotationPolicy: s.Policy, skeleton.AnnotationDeadline: s.Deadline.String(), skeleton.AnnotationTimeout: s.Timeout.String(),
		skeleton.AnnotationInterval: s.Interval.String(), skeleton.AnnotationSlots: fmt.Sprint(s.Slots), skeleton.AnnotationTarget: fmt.Sprint(s.Target)}
	if s.Service > 0 {
		annotations[skeleton.AnnotationService] = s.Service.String()
	}
	err := g.gateway.Deploy(ctx, types.FunctionDeployment{
		Service: name, Image: "bench-worker:latest",
		EnvVars:     map[string]string{"max_inflight": fmt.Sprint(s.Slots), "write_timeout": "65s", "exec_timeout": "60s"},
		Labels:      &map[string]string{skeleton.LabelWorker: "true", "com.openfaas.scale.min": fmt.Sprint(s.Min), "com.openfaas.scale.max": fmt.Sprint(s.Max)},
		Annotations: &annotations,
	})
	if err != nil {
		return fmt.Errorf("bench: %s: %w", s.Policy, err)
	}
	return nil
}

// until asks ten times a second, for so long at most.
func until(ctx context.Context, limit time.Duration, what string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := ask(ctx)
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bench: %s: %w", what, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// known waits until the dispatcher knows n farms, with a worker ready.
func (g *stage) known(ctx context.Context, n int) error {
	return until(ctx, time.Minute, "not all farms are ready", func(ctx context.Context) (bool, error) {
		ready := 0
		list, err := g.client.Farms(ctx)
		for _, f := range list.Farms {
			if strings.HasPrefix(f.Name, "farm-") && f.Ready == f.Target && f.Ready > 0 {
				ready++
			}
		}
		return err == nil && ready == n, err
	})
}

// pause lets time go by.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// offer posts work to a farm as it comes, all that is due since the last look in
// one piece, and returns the job.
func (g *stage) offer(ctx context.Context, farm string, work []arrival, began time.Time, every time.Duration) (job string, err error) {
	s, err := g.client.Submit(ctx, jobclient.Options{"worker": farm, "open": "true"}, jobclient.Piece{Type: "application/x-ndjson"})
	if err != nil {
		return "", err
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for next := 0; next < len(work); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		var body strings.Builder
		for ; next < len(work) && work[next].at <= time.Since(began); next++ {
			fmt.Fprintf(&body, "%.6f\n", work[next].seconds)
		}
		if body.Len() == 0 {
			continue
		}
		if _, err := g.client.Append(ctx, s.Job.ID, nil, jobclient.Piece{Type: "application/x-ndjson", Body: []byte(body.String())}); err != nil {
			return "", err
		}
	}
	_, err = g.client.CloseJob(ctx, s.Job.ID)
	return s.Job.ID, err
}

// ended waits for the end of a job.
func (g *stage) ended(ctx context.Context, job string) (v jobapi.JobView, err error) {
	err = until(ctx, 5*time.Minute, "the job does not end", func(ctx context.Context) (bool, error) {
		v, err = g.client.Job(ctx, job)
		return err == nil && v.Ended != nil, err
	})
	return v, err
}

// mostReceipts of a farm that are read: nine hours of them at 2 s.
const mostReceipts = 16_384

// receipts are the decisions of a farm, oldest first, once there is one after an
// instant.
func (g *stage) receipts(ctx context.Context, farm string, after time.Time) (list []controller.Receipt, err error) {
	past := redispast.New(g.redis, nil)
	err = until(ctx, time.Minute, "the controller does not decide for "+farm, func(ctx context.Context) (bool, error) {
		raw, err := past.Tail(ctx, farm, mostReceipts)
		if err != nil || len(raw) == 0 {
			return false, err
		}
		list = make([]controller.Receipt, len(raw))
		for i, text := range raw {
			if err := json.Unmarshal(text, &list[i]); err != nil {
				return false, fmt.Errorf("a receipt of %s: %w", farm, err)
			}
		}
		return list[0].At.After(after), nil
	})
	slices.Reverse(list)
	return list, err
}

// paid is what a farm's workers came to.
type paid struct {
	Mean    float64
	Peak    int
	Actions int
	Starts  int
}

// paidFor sums up the scale calls between two instants. A worker is paid from the
// call that asked for it to the end of the one that did not any more; the drain
// that follows is unknown to a gateway.
func paidFor(receipts []controller.Receipt, from, to time.Time) (p paid, err error) {
	count, since := receipts[0].Before, from
	p.Peak = count
	for _, r := range receipts {
		if r.Foreign != nil {
			return p, fmt.Errorf("bench: somebody else scaled %s from %d to %d", r.Farm, r.Foreign.From, r.Foreign.To)
		}
		a := r.Acted
		if a == nil || a.ReadBack == a.From {
			continue
		}
		if a.From != count {
			return p, fmt.Errorf("bench: %s had %d workers and was scaled from %d: a call is missing in the receipts", r.Farm, count, a.From)
		}
		at := a.At
		if a.ReadBack < a.From {
			at = at.Add(time.Duration(a.Seconds * float64(time.Second)))
		}
		if at.After(to) {
			break
		}
		if at.After(from) {
			p.Mean += float64(count) * at.Sub(since).Seconds()
			since = at
			p.Actions++
			p.Starts += max(0, a.ReadBack-a.From)
			p.Peak = max(p.Peak, a.ReadBack)
		} else {
			p.Peak = a.ReadBack
		}
		count = a.ReadBack
	}
	p.Mean = (p.Mean + float64(count)*to.Sub(since).Seconds()) / to.Sub(from).Seconds()
	return p, nil
}
