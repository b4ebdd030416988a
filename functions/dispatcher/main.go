// Command dispatcher is the function that takes jobs and hands their tasks to
// workers; docs/api.md describes its HTTP API.
//
// Environment: farmhand_redis_url, farmhand_gateway_url, farmhand_metrics_listen
// (address of GET /metrics; none = no metrics), and config below.
// Secrets: farmhand-token; farmhand-redis, farmhand-callback and farmhand-nats
// (optional).
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/google/uuid"

	"farmhand/gateway"
	"farmhand/internal/fn"
	"farmhand/internal/promserve"
	"farmhand/internal/redisurl"
	"farmhand/internal/secret"
	"farmhand/skeleton/callback"
	"farmhand/skeleton/dispatch"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/redisledger"
	"farmhand/skeleton/metrics"
	"farmhand/skeleton/signal"
	"farmhand/skeleton/signal/redissignal"
)

// config is read from the environment; zero of a limit means its default.
type config struct {
	GatewayURL string        `env:"farmhand_gateway_url,required"`
	MaxBody    int           `env:"farmhand_max_body" envDefault:"16777216"`   // bytes of a task
	MaxResult  int           `env:"farmhand_max_result" envDefault:"16777216"` // bytes of a result
	MaxWait    time.Duration `env:"farmhand_max_wait" envDefault:"50s"`        // of a held answer; below the gateway's upstream_timeout
	Running    int           `env:"farmhand_running"`                          // tasks of one farm at once
	Bytes      int           `env:"farmhand_running_bytes"`                    // of their large bodies in memory
	QueueTasks int           `env:"farmhand_queue_tasks"`
	QueueBytes int           `env:"farmhand_queue_bytes"`
	KeptBytes  int           `env:"farmhand_kept_bytes"`
	TimeToLive time.Duration `env:"farmhand_time_to_live"`                    // with nothing but busy workers
	Memory     int           `env:"farmhand_memory"`                          // bytes of submissions and results in work
	Missing    time.Duration `env:"farmhand_missing"`                         // until a worker that is gone counts as deleted
	Callbacks  []string      `env:"farmhand_callback_allow" envSeparator:","` // hosts, *.domains or URL prefixes
	Stream     streamConfig
}

func main() { fn.Main("dispatcher", build) }

func build(_ context.Context, log *slog.Logger) (*fn.Service, error) {
	token, err := fn.Token(log)
	if err != nil {
		return nil, err
	}
	var cfg config
	if err := env.Parse(&cfg); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	rdb, err := redisurl.Client()
	if err != nil {
		return nil, err
	}
	invoker, err := gateway.NewInvoker(cfg.GatewayURL, gateway.InvokerOptions{MaxAnswer: int64(cfg.MaxResult)})
	if err != nil {
		return nil, fmt.Errorf("farmhand_gateway_url: %w", err)
	}
	callbacks, err := notifier(cfg.Callbacks, token)
	if err != nil {
		return nil, err
	}
	store := redisledger.New(rdb, redisledger.Options{Limits: ledger.Limits{
		QueueTasks: cfg.QueueTasks, QueueBytes: cfg.QueueBytes, KeptBytes: cfg.KeptBytes}})
	name := owner()
	recorder := signal.NewRecorder(time.Now)
	counted := metrics.New(recorder, func() ([]string, bool) { return farms(store) })
	registry, err := promserve.NewRegistry(counted)
	if err != nil {
		return nil, err
	}
	scraped, err := promserve.Start(registry, log)
	if err != nil {
		return nil, err
	}
	d, err := dispatch.Start(dispatch.Config{
		Observer:   counted,
		Store:      store,
		Caller:     &caller{invoker: invoker, limit: cfg.MaxResult},
		Owner:      name,
		Running:    cfg.Running,
		Bytes:      cfg.Bytes,
		TimeToLive: cfg.TimeToLive,
		Missing:    cfg.Missing,
		Notifier:   callbacks,
		Log:        log,
	})
	if err != nil {
		return nil, err
	}
	flusher, err := redissignal.Start(redissignal.Config{
		Store: redissignal.New(rdb, redissignal.Options{}), Recorder: recorder, Farms: d.Farms, Log: log,
	})
	if err != nil {
		return nil, err
	}
	nats, err := startStream(cfg.Stream, name, cfg.MaxBody, store, log)
	if err != nil {
		return nil, err
	}
	api := jobapi.New(jobapi.Config{
		Store: store, MaxBody: cfg.MaxBody, MaxWait: cfg.MaxWait, Missing: cfg.Missing, Memory: cfg.Memory, Callback: callbacks.Check, Log: log,
		Running: func(farm string) []jobapi.Running { return running(d, farm) },
	})
	sound := &schema{store: store}
	return &fn.Service{
		Handler: api.Guard(func(next http.Handler) http.Handler { return fn.RequireToken(token, next) }),
		Ready:   func() bool { return sound.known(log) && d.Ready() },
		Drain: func() {
			d.Drain()
			api.Close()
		},
		Stop: func(ctx context.Context) error {
			err := errors.Join(nats.stop(ctx), d.Stop(ctx), flusher.Stop(ctx), scraped.Stop(ctx))
			store.Close()
			invoker.CloseIdle()
			return errors.Join(err, rdb.Close())
		},
	}, nil
}

// farms lists the farms of the roster, for a scrape; Redis may be away.
func farms(store *redisledger.Store) (names []string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	roster, err := store.Roster(ctx)
	if err != nil {
		return nil, false
	}
	for _, f := range roster.Farms {
		names = append(names, f.Name)
	}
	return names, true
}

// notifier makes what delivers callbacks.
func notifier(allow []string, token string) (*callback.Sender, error) {
	key, err := secret.CallbackKey(token)
	if err != nil {
		return nil, err
	}
	s, err := callback.New(callback.Config{Allow: allow, Secret: key})
	if err != nil {
		return nil, fmt.Errorf("farmhand_callback_allow: %w", err)
	}
	return s, nil
}

// owner names this process in leases and heartbeats.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "dispatcher"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:8])
}

func running(d *dispatch.Dispatcher, farm string) []jobapi.Running {
	list := d.Running(farm)
	views := make([]jobapi.Running, len(list))
	for i, r := range list {
		views[i] = jobapi.Running{Job: r.Job, Index: r.Index, Attempt: r.Attempt, For: r.For.Seconds(), Busy: r.Busy}
	}
	return views
}

// schema checks once that the data in Redis is of our version.
type schema struct {
	store *redisledger.Store
	ok    atomic.Bool
}

func (s *schema) known(log *slog.Logger) bool {
	if s.ok.Load() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.store.Check(ctx); err != nil {
		log.Warn("not ready", "error", err)
		return false
	}
	s.ok.Store(true)
	return true
}
