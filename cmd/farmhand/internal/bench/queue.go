package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"farmhand/internal/redisproc"
	"farmhand/skeleton"
	"farmhand/skeleton/dispatch"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/redisledger"
)

// QueueConfig of the queue benchmark.
type QueueConfig struct {
	Tasks  int           // per run (100,000)
	Window int           // live leases at most (50)
	Runs   int           // counted runs of each side (5)
	Peer   string        // program that does the same with asynq; "" leaves it out
	Open   time.Duration // length of an open-loop run (4 s)
	Seed   uint64
	Log    func(format string, args ...any)
}

// gcPercent is what stack.yml gives the dispatcher as GOGC; the peer gets it too.
const gcPercent = 400

// Queue drains pre-filled no-op tasks through the production dispatcher and a
// real redis-server (append-only file, synced every second), in turn with the
// peer; then offers half of the peak in an open loop.
func Queue(ctx context.Context, c QueueConfig) (*Report, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	r := NewReport(c.Seed)
	var ours, theirs, ratios []float64
	for i := 0; i <= c.Runs; i++ { // the first is a warm-up
		rate, err := drainOurs(ctx, c)
		if err != nil {
			return nil, err
		}
		peer := 0.0
		if c.Peer != "" {
			if peer, err = drainPeer(ctx, c); err != nil {
				return nil, err
			}
		}
		c.Log("run %d of %d: %.0f tasks/s, asynq %.0f tasks/s", i, c.Runs, rate, peer)
		if i == 0 {
			continue
		}
		ours = append(ours, rate)
		if peer > 0 {
			theirs, ratios = append(theirs, peer), append(ratios, rate/peer)
		}
	}
	r.Add("queue_tasks_per_s", ours)
	if len(ratios) > 0 {
		r.Add("asynq_tasks_per_s", theirs)
		r.Add("queue_vs_asynq_ratio", ratios)
	} else {
		r.Note("asynq was left out: build it with (cd bench && go build -o ../bin/bench-asynq ./asynq)")
	}
	half := r.Figures["queue_tasks_per_s"] / 2
	var p50s, p99s []float64
	for i := range c.Runs {
		p50, p99, err := openLoop(ctx, c, half)
		if err != nil {
			return nil, err
		}
		c.Log("open loop %d of %d at %.0f/s: p50 %s, p99 %s", i+1, c.Runs, half, p50, p99)
		p50s, p99s = append(p50s, milliseconds(p50)), append(p99s, milliseconds(p99))
	}
	r.Add("queue_p50_ms_at_half", p50s)
	r.Add("queue_p99_ms_at_half", p99s)
	return r, nil
}

// rig is a redis-server with one farm on it.
type rig struct {
	server *redisproc.Server
	client *redis.Client
	store  *redisledger.Store
	farm   ledger.Ledger
	dir    string
}

const benchFarm = "bench"

func newRig(ctx context.Context, window int) (*rig, error) {
	dir, err := os.MkdirTemp("", "farmhand-bench-")
	if err != nil {
		return nil, err
	}
	s, err := redisproc.Start(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	g := &rig{server: s, dir: dir, client: redis.NewClient(&redis.Options{Addr: s.Addr})}
	g.store = redisledger.New(g.client, redisledger.Options{Limits: ledger.Limits{QueueTasks: 10_000_000, KeptBytes: 1 << 40}})
	g.farm = g.store.Farm(benchFarm)
	settings := skeleton.DefaultSettings()
	settings.Slots = window
	roster := skeleton.Roster{Farms: []skeleton.Farm{{Name: benchFarm, Settings: settings, Ready: 1, Target: 1}}}
	if err := ledger.Publish(ctx, g.store, roster); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *rig) close() error {
	g.store.Close()
	err := g.client.Close()
	g.server.Kill()
	return errors.Join(err, os.RemoveAll(g.dir))
}

// counter is a Caller that answers at once and counts.
type counter struct {
	seen   atomic.Int64
	live   atomic.Int64
	most   atomic.Int64
	want   int64
	full   chan struct{} // closed when want tasks were seen
	once   sync.Once
	onTask func(body []byte)
}

// Call implements dispatch.Caller.
func (c *counter) Call(_ context.Context, _ skeleton.Task, body []byte, _ time.Duration) skeleton.Call {
	if n := c.live.Add(1); n > c.most.Load() {
		c.most.Store(n)
	}
	if c.onTask != nil {
		c.onTask(body)
	}
	c.live.Add(-1)
	if c.seen.Add(1) >= c.want {
		c.once.Do(func() { close(c.full) })
	}
	return skeleton.Call{Status: 200}
}

// drainOurs fills the queue, then measures the time from the dispatcher's start
// to the last accepted result.
func drainOurs(ctx context.Context, c QueueConfig) (rate float64, err error) {
	g, err := newRig(ctx, c.Window)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	job := skeleton.Job{ID: benchFarm + "~" + ulid.Make().String()}
	st, err := g.farm.Stage(ctx, ledger.Submission{Job: job})
	if err != nil {
		return 0, err
	}
	tasks := make([]skeleton.NewTask, 0, ledger.MaxBatch)
	for i := range c.Tasks {
		tasks = append(tasks, skeleton.NewTask{Body: binary.BigEndian.AppendUint64(nil, uint64(i)), Class: skeleton.DefaultClass})
		if len(tasks) == cap(tasks) || i == c.Tasks-1 {
			if err := st.Add(ctx, tasks); err != nil {
				return 0, err
			}
			tasks = tasks[:0]
		}
	}
	if _, err := st.Commit(ctx); err != nil {
		return 0, err
	}
	caller := &counter{want: int64(c.Tasks), full: make(chan struct{})}
	started := time.Now()
	d, err := dispatch.Start(dispatch.Config{Store: g.store, Caller: caller, Owner: "bench"})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Stop(ctx)) }()
	select {
	case <-caller.full:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	// The last results are being settled; nobody follows the job, as asynq's
	// tasks are not followed either.
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		j, err := g.farm.Job(ctx, job.ID)
		if err != nil {
			return 0, err
		}
		if j.Pending() == 0 {
			if j.Done != c.Tasks {
				return 0, fmt.Errorf("bench: %d of %d tasks done", j.Done, c.Tasks)
			}
			return float64(c.Tasks) / time.Since(started).Seconds(), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// drainPeer runs the peer's program on a redis-server of its own. The program
// prints {"tasks_per_s": …}.
func drainPeer(ctx context.Context, c QueueConfig) (rate float64, err error) {
	dir, err := os.MkdirTemp("", "farmhand-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := redisproc.Start(dir)
	if err != nil {
		return 0, err
	}
	defer s.Kill()
	cmd := exec.CommandContext(ctx, c.Peer, "-redis", s.Addr, "-tasks", strconv.Itoa(c.Tasks), "-concurrency", strconv.Itoa(c.Window))
	cmd.Env = append(os.Environ(), "GOGC="+strconv.Itoa(gcPercent))
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("bench: %s: %w", c.Peer, err)
	}
	var answer struct {
		Rate float64 `json:"tasks_per_s"`
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.Rate <= 0 {
		return 0, fmt.Errorf("bench: %s printed %q", c.Peer, out)
	}
	return answer.Rate, nil
}

// openLoop offers tasks at a fixed rate, whatever becomes of them, and returns
// quantiles of send time → handler start. What arrives within a millisecond is
// appended as one submission, as a client that streams does.
func openLoop(ctx context.Context, c QueueConfig, rate float64) (p50, p99 time.Duration, err error) {
	g, err := newRig(ctx, c.Window)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	job := skeleton.Job{ID: benchFarm + "~" + ulid.Make().String(), Open: true}
	st, err := g.farm.Stage(ctx, ledger.Submission{Job: job})
	if err != nil {
		return 0, 0, err
	}
	if _, err := st.Commit(ctx); err != nil {
		return 0, 0, err
	}
	total := int(rate * c.Open.Seconds())
	epoch := time.Now()
	latencies := make([]time.Duration, total)
	var n atomic.Int64
	caller := &counter{want: int64(total), full: make(chan struct{}), onTask: func(body []byte) {
		if i := n.Add(1) - 1; i < int64(total) {
			latencies[i] = time.Since(epoch) - time.Duration(binary.BigEndian.Uint64(body))
		}
	}}
	d, err := dispatch.Start(dispatch.Config{Store: g.store, Caller: caller, Owner: "bench"})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, d.Stop(ctx)) }()
	if err := offer(ctx, g.farm, job, total, rate, epoch); err != nil {
		return 0, 0, err
	}
	select {
	case <-caller.full:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	case <-time.After(30 * time.Second):
		return 0, 0, fmt.Errorf("bench: %d of %d tasks arrived", caller.seen.Load(), total)
	}
	return quantile(latencies, 0.5), quantile(latencies, 0.99), nil
}

// offer submits tasks at the given rate; each body is the time it was due to be
// sent, so that a late sender counts against us.
func offer(ctx context.Context, farm ledger.Ledger, job skeleton.Job, total int, rate float64, epoch time.Time) error {
	start := time.Since(epoch)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for sent := 0; sent < total; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		upTo := min(total, int(rate*(time.Since(epoch)-start).Seconds()))
		var tasks []skeleton.NewTask
		for ; sent < upTo; sent++ {
			due := start + time.Duration(float64(sent)/rate*float64(time.Second))
			tasks = append(tasks, skeleton.NewTask{Body: binary.BigEndian.AppendUint64(nil, uint64(due)), Class: skeleton.DefaultClass})
		}
		if len(tasks) == 0 {
			continue
		}
		st, err := farm.Stage(ctx, ledger.Submission{Job: job, Append: true})
		if err != nil {
			return err
		}
		if err := st.Add(ctx, tasks); err != nil {
			return err
		}
		if _, err := st.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}
