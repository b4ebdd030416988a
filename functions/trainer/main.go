// Command trainer is the function that learns policies for the farms, in slices that
// it posts to itself through the gateway's asynchronous route; docs/training.md
// describes it.
//
// Environment: farmhand_redis_url, farmhand_gateway_url, and config below.
// Secrets: farmhand-token, farmhand-redis (optional). It calls no route of the gateway
// but /async-function/trainer, and needs no credentials of it.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/caarlos0/env/v11"

	"farmhand/internal/fn"
	"farmhand/internal/redisurl"
	"farmhand/registry/redisregistry"
	"farmhand/skeleton/ledger/redisledger"
	"farmhand/telemetry/redistelemetry"
	"farmhand/train"
	"farmhand/trainer"
	"farmhand/trainer/redisruns"
	"farmhand/trainer/trainapi"
	"farmhand/trainer/work"
)

// config is read from the environment.
type config struct {
	GatewayURL string        `env:"farmhand_gateway_url,required"`
	Slice      time.Duration `env:"farmhand_slice" envDefault:"20s"` // well below exec_timeout
	Places     int           `env:"farmhand_slices" envDefault:"1"`  // at the same time
}

// Bounds of a slice.
const (
	minSlice  = 100 * time.Millisecond
	maxSlice  = time.Minute
	maxPlaces = 64
)

func main() { fn.Main("trainer", build) }

func build(_ context.Context, log *slog.Logger) (*fn.Service, error) {
	token, err := fn.Token(log)
	if err != nil {
		return nil, err
	}
	var cfg config
	if err := env.Parse(&cfg); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	if cfg.Slice < minSlice || cfg.Slice > maxSlice {
		return nil, fmt.Errorf("farmhand_slice: %s is not valid: want %s to %s", cfg.Slice, minSlice, maxSlice)
	}
	if cfg.Places < 1 || cfg.Places > maxPlaces {
		return nil, fmt.Errorf("farmhand_slices: %d is not valid: want 1 to %d", cfg.Places, maxPlaces)
	}
	rdb, err := redisurl.Client()
	if err != nil {
		return nil, err
	}
	queue, err := trainer.NewQueue(cfg.GatewayURL)
	if err != nil {
		return nil, fmt.Errorf("farmhand_gateway_url: %w", err)
	}
	farms, runs := redisledger.New(rdb, redisledger.Options{}), redisruns.New(rdb, nil)
	w := work.New(work.Config{
		Store: runs, Queue: queue, Key: trainer.Key(token), Registry: redisregistry.New(rdb, redisregistry.Limits{}),
		Farms: farms, Telemetry: redistelemetry.New(rdb, nil), Slice: cfg.Slice, Places: cfg.Places, Jobs: runtime.GOMAXPROCS(0), Now: time.Now, Log: log,
	})
	return &fn.Service{
		Handler: trainapi.New(trainapi.Config{
			Trainer: w, Store: runs, Key: trainer.Key(token), Learners: train.Learners(), Scenarios: work.Scenarios(),
			Protect:  func(next http.Handler) http.Handler { return fn.RequireToken(token, next) },
			Draining: work.ErrDraining, NoFarm: work.ErrUnknownFarm, Log: log,
		}),
		Ready: func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return rdb.Ping(ctx).Err() == nil
		},
		Drain: w.Drain,
		Stop: func(context.Context) error {
			queue.Close()
			farms.Close()
			return rdb.Close()
		},
	}, nil
}
